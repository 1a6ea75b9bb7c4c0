"""An installed wheel, in a separate environment and away from the checkout, does what the README shows.

Building and installing need the package index, as `make test` itself did.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name
from packaging.version import Version
from tests.journeys.install.checkouts import clone, copy
from tools.advisories import pins

from runup import __version__

ROOT = Path(__file__).parents[3]
LIMIT_S = 300
Run = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel"), pytest.mark.timeout(240)]


def _call(*words: str, cwd: Path, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=LIMIT_S)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds the built wheels and what they depend on, nothing else; its folder of programs."""
    folder = tmp_path_factory.mktemp("wheel")
    done = _call("tools/install-wheel", str(Path(sys.executable).parent), str(folder / "venv"), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return folder / "venv" / "bin"


@pytest.fixture
def run(installed: Path, tmp_path: Path) -> Run:
    """A program of the installation, as a new user would start it: another folder, an empty home."""

    def started(*words: str) -> subprocess.CompletedProcess[str]:
        kept = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TMPDIR") if name in os.environ}
        env = {**kept, "PATH": f"{installed}:{os.environ['PATH']}", "HOME": str(tmp_path)}
        return _call(str(installed / words[0]), *words[1:], cwd=tmp_path, env=env)

    return started


def test_the_demo_runs_from_the_wheel(run: Run) -> None:
    """The whole main job: sandbox, signed releases, operator, target, fix, acceptance."""
    done = run("runup", "demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Preflight of 5.2.0 from 5.0.0" in done.stdout


def test_an_installation_has_every_file_of_the_packages(installed: Path) -> None:
    """Also those to which a link in `deploy/` leads: such a file was once in the wheel's `deploy/` alone."""
    (libraries,) = installed.parent.glob("lib/python*/site-packages")
    listed = _call("git", "ls-files", "-z", "packages/*/src/*", cwd=ROOT).stdout
    names = ["/".join(name.split("/")[3:]) for name in filter(None, listed.split("\0"))]
    assert len(names) > 1000
    assert [name for name in names if not (libraries / name).is_file()] == []


def _wheel(checkout: Path, **env: str) -> Path:
    uv = str(Path(sys.executable).with_name("uv"))
    build = (uv, "build", "-q", "--wheel", "--package", "kube-runup", "--out-dir", "dist")
    backend = ("--build-constraints", "requirements-build.lock", "--require-build-hashes")
    done = _call(*build, *backend, cwd=checkout, env={"UV_SYSTEM_CERTS": "true", **os.environ, **env})
    assert done.returncode == 0, done.stderr
    return next((checkout / "dist").glob("*.whl"))


def test_the_wheel_is_reproducible(tmp_path: Path) -> None:
    """Built from a copy elsewhere, made at another time by another user's habits, it is the same to the byte."""
    checkout = copy(tmp_path / "first")
    first = _wheel(checkout)
    again = _wheel(clone(checkout, tmp_path / "elsewhere"), TZ="Pacific/Auckland")
    assert again.name == first.name
    assert again.read_bytes() == first.read_bytes()


def _built_of(wheel: Path) -> dict[str, str]:
    values: dict[str, str] = {}
    with zipfile.ZipFile(wheel) as archive:
        exec(archive.read("runup/build_info.py").decode(), values)
    return {name: values[name] for name in ("VERSION", "REVISION", "IMAGE")}


def test_a_tags_wheel_says_what_it_was_built_from(tmp_path: Path) -> None:
    """Version, commit, and the image that was named; there is one such module in it."""
    wheel = _wheel(copy(tmp_path / "tagged", "v1.2.3"), RUNUP_IMAGE="registry.example/runup:1.2.3")
    built = _built_of(wheel)
    assert built["VERSION"] == "1.2.3" == wheel.name.split("-")[1]
    assert len(built["REVISION"]) == 40
    assert built["IMAGE"] == "registry.example/runup:1.2.3"
    with zipfile.ZipFile(wheel) as archive:
        assert archive.namelist().count("runup/build_info.py") == 1


def test_without_a_tag_it_is_a_version_in_development(tmp_path: Path) -> None:
    """Of the release to come, and of no commit where there is no repository."""
    checkout = copy(tmp_path / "untagged")
    assert Version(_built_of(_wheel(checkout))["VERSION"]).is_devrelease
    shutil.rmtree(checkout / ".git")
    shutil.rmtree(checkout / "dist")
    built = _built_of(_wheel(checkout))
    assert Version(built["VERSION"]) == Version(__version__)
    assert (built["REVISION"], built["IMAGE"]) == ("", "")


def test_what_an_installation_consists_of(installed: Path, tmp_path: Path) -> None:
    """CycloneDX, valid by its schema: each package of the lock file by name and version, each with a licence."""
    bill = tmp_path / "runup.cdx.json"
    program = str(Path(sys.executable).with_name("cyclonedx-py"))
    words = (
        "environment",
        str(installed / "python"),
        "--pyproject",
        "packages/runup/pyproject.toml",
        "--output-reproducible",
    )
    done = _call(program, *words, "--validate", "--of", "JSON", "-o", str(bill), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    shown = json.loads(bill.read_text(encoding="utf-8"))
    assert shown["metadata"]["component"]["name"] == "kube-runup"
    found = {canonicalize_name(each["name"]): each["version"] for each in shown["components"]}
    ours = {name: found.pop(name) for name in ("kubekit", "kubesandbox")}
    assert found == pins((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    assert all(map(Version, ours.values()))
    assert all(each.get("licenses") for each in shown["components"])


def test_type_checkers_find_the_types(run: Run) -> None:
    """The mark of PEP 561 is in each of the packages."""
    text = "import kubekit, kubesandbox, runup; from pathlib import Path; print(*(package.__name__ for package in "
    text += "(kubekit, kubesandbox, runup) if Path(package.__file__).with_name('py.typed').is_file()))"
    assert run("python", "-c", text).stdout == "kubekit kubesandbox runup\n"


def test_scenarios_releases_and_pages_come_along(run: Run, tmp_path: Path) -> None:
    """What reads files next to the code finds them."""
    assert "skip-level" in run("runup", "sandbox", "list").stdout
    page = run("python", "-c", "from runup.checks.risk_pages import find; print(find('KubeletSkew'))").stdout
    assert page.startswith("# KubeletSkew")
    (tmp_path / "new" / "manifests").mkdir(parents=True)
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
    (tmp_path / "new" / "manifests" / "0000_10_shop_namespace.yaml").write_text(namespace)
    made = run("runup", "release", "new", "--from-dir", "new", "--version", "5.3.0", "--to", "oci:made")
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "made" / "index.json").is_file()


def test_an_operator_runs_without_the_sandbox(installed: Path, tmp_path: Path) -> None:
    """The operator's image leaves out the sandbox and what only it needs: no command of the operator may miss it."""
    absent = ("runup.sandbox", "kubesandbox", "cryptography", "orjson")
    hide = f"import sys; sys.modules.update(dict.fromkeys({absent})); "
    hide += "from runup.cli.operator.main import main; sys.exit(main())"
    for words in (("version",), ("start", "--help"), ("preflight", "--help"), ("update-status-controller", "--help")):
        done = _call(str(installed / "python"), "-c", hide, *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
