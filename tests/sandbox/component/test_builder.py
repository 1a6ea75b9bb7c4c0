"""The sandbox's builder: images out of Dockerfiles without RUN, put together for real and pushed for real."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kernelmodules.control.world import push
from tests.kubekit.oci.registries import sandbox_registry, writing

from kubekit.oci.reference import parse
from kubekit.oci.registry import RegistryClient
from runup.sandbox.component import builder


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A registry with an image to build from, and the login that may push."""
    with sandbox_registry(tmp_path) as found:
        push(tmp_path, found, "source:source", {"src/a.ko": b"a", "src/more/b.ko": b"b"})
        auth = tmp_path / "auth.json"
        auth.write_text(f'{{"auths": {{"{found}": {{"username": "writer", "password": "word"}}}}}}')
        monkeypatch.setenv("REGISTRY_AUTH_FILE", str(auth))
        yield found


def built(tmp_path: Path, host: str, dockerfile: str, *arguments: str) -> dict[str, bytes]:
    """The files of the image, after a build and a push."""
    file = tmp_path / "dockerfile"
    file.write_text(dockerfile.replace("HOST", host))
    root = ["--root", str(tmp_path / "storage")]
    given = [f"--build-arg={each}" for each in arguments]
    builder.main([*root, "build", f"--file={file}", *given, f"--tag={host}/made:made", str(tmp_path)])
    builder.main([*root, "push", f"{host}/made:made"])
    return RegistryClient(writing(host)).read_folders(parse(f"{host}/made:made"), ("opt", "src"))


DOCKERFILES = [
    pytest.param(
        "ARG V\nFROM HOST/source:source AS s\nFROM scratch\nCOPY --from=s /src/a.ko /opt/${V}/kmod.ko\n",
        {"opt/5.1/kmod.ko": b"a"},
        id="a file under another name",
    ),
    pytest.param(
        "ARG V\nFROM scratch\nCOPY --from=HOST/source:source /src/a.ko /opt/$V/\n",
        {"opt/5.1/a.ko": b"a"},
        id="a file into a folder, from an image that is no stage",
    ),
    pytest.param(
        'FROM HOST/source:source AS s\nFROM scratch\n# a comment\nCOPY --from=s ["/src", \\\n "/opt"]\n',
        {"opt/a.ko": b"a", "opt/more/b.ko": b"b"},
        id="a folder, in the form of JSON, over two lines",
    ),
    pytest.param(
        "FROM HOST/source:source AS s\nFROM s\nLABEL a=b\nCOPY --from=s /src/a.ko /opt/c.ko\n",
        {"src/a.ko": b"a", "src/more/b.ko": b"b", "opt/c.ko": b"a"},
        id="upon another image",
    ),
]


@pytest.mark.parametrize(("dockerfile", "expected"), DOCKERFILES)
def test_what_is_built_is_what_is_pushed(
    tmp_path: Path, host: str, dockerfile: str, expected: dict[str, bytes]
) -> None:
    """From the Dockerfile to the files of the image in the registry."""
    assert built(tmp_path, host, dockerfile, "V=5.1") == expected


REFUSED = [
    pytest.param("FROM scratch\nRUN make\n", "Error: RUN make: a sandbox does not run programs of an image", id="RUN"),
    pytest.param("FROM scratch\nADD a b\n", "Error: ADD: a sandbox builds of ARG, FROM and COPY alone", id="ADD"),
    pytest.param("COPY a b\n", "Error: COPY: no FROM statement found before it", id="COPY before FROM"),
    pytest.param(
        "FROM scratch\nCOPY a b\n", "Error: COPY a b: the context of a build is empty", id="COPY of the context"
    ),
    pytest.param("# nothing\n", "Error: no FROM statement found", id="no FROM"),
    pytest.param("ARG X\nFROM $X\n", "Error: FROM: the name of an image is empty", id="a variable that nobody gave"),
    pytest.param(
        "FROM scratch\nCOPY --from=HOST/source:source /no /opt\n",
        'Error: COPY: "/no": no such file or directory',
        id="a path that is not there",
    ),
    pytest.param("FROM HOST/no:no\nFROM HOST/no:no\n", "manifest unknown", id="an image that is not there"),
]


@pytest.mark.parametrize(("dockerfile", "expected"), REFUSED)
def test_what_cannot_be_built_says_why(
    tmp_path: Path, host: str, capsys: pytest.CaptureFixture[str], dockerfile: str, expected: str
) -> None:
    """The log ends with the reason, which is what a validation then shows."""
    with pytest.raises(SystemExit) as ended:
        built(tmp_path, host, dockerfile)
    assert ended.value.code == 125
    assert expected in capsys.readouterr().out.splitlines()[-1]
