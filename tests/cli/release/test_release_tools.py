"""`runup release`: component images gathered, files extracted, two releases compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.cli.release.typed import config_map, release, run
from tests.kubekit.oci.registries import sandbox_registry, writing

from kubekit.oci.images import Execution
from kubekit.oci.layout import Layout
from kubekit.oci.reference import parse
from kubekit.oci.registry import RegistryClient
from runup.release.control.image_build import build_image, layer_of

DEVELOPED = "quay.io/dev/tool:latest"


def test_a_release_of_component_images(tmp_path: Path) -> None:
    """From the registry: each component's manifests in its own bucket, with the release's pull specs and version."""
    deployment = "\n".join(
        (
            "kind: Deployment",
            "apiVersion: apps/v1",
            "metadata: {name: tool, annotations: {a: 0.0.1-snapshot}}",
            f"spec: {{image: {DEVELOPED}}}",
        )
    )
    stream = {
        "kind": "ImageStream",
        "apiVersion": "image.openshift.io/v1",
        "spec": {"tags": [{"name": "tool", "from": {"kind": "DockerImage", "name": DEVELOPED}}]},
    }
    files = {
        "manifests/01-deployment.yaml": deployment.encode(),
        "manifests/image-references": json.dumps(stream).encode(),
        "manifests/0000_20_tool_crd.yaml": b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: early}\n",
        "bin/tool": b"x",
    }
    built = build_image(tmp_path / "tool", [layer_of(files)], tag="t", config=Execution())
    with sandbox_registry(tmp_path) as host:
        client = RegistryClient(writing(host))
        client.push(Layout.open(tmp_path / "tool"), built.digest, parse(f"{host}/ocp/tool:t"))
        made = run(
            "new", "--component", f"tool={host}/ocp/tool:t", "--version", "5.2.0", "--to", f"oci:{tmp_path / 'release'}"
        )
    assert made.code == 0, made.err
    done = run("extract", f"oci:{tmp_path / 'release'}", "--to", str(tmp_path / "files"))
    assert done.code == 0, done.err
    found = tmp_path / "files" / "release-manifests"
    assert sorted(path.name for path in found.iterdir()) == [
        "0000_20_tool_crd.yaml",
        "0000_50_tool_01-deployment.yaml",
        "image-references",
        "release-metadata",
    ]
    pinned = f"{host}/ocp/tool@{built.digest}"
    assert yaml.safe_load((found / "0000_50_tool_01-deployment.yaml").read_text())["spec"] == {"image": pinned}
    assert "5.2.0" in (found / "0000_50_tool_01-deployment.yaml").read_text()
    assert json.loads(run("info", f"oci:{tmp_path / 'release'}", "-o", "json").out)["images"] == {"tool": pinned}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param((), "there is nothing to make a release of", id="nothing"),
        pytest.param(
            ("--component", "tool=oci:LAYOUT"), "no cluster pulls from a layout", id="a layout without a name"
        ),
        pytest.param(
            ("--component", "tool=oci:LAYOUT", "--image-reference", "tool=h/r@x"),
            "has no /manifests",
            id="no manifests",
        ),
        pytest.param(("--component", "Tool=oci:LAYOUT"), "a name is of a-z", id="a name that no file has"),
    ],
)
def test_components_that_are_none(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """One error, and no image."""
    build_image(tmp_path / "tool", [layer_of({"bin/tool": b"x"})], tag="t", config=Execution())
    words = tuple(word.replace("LAYOUT", str(tmp_path / "tool")) for word in words)
    done = run("new", *words, "--version", "5.2.0", "--to", f"oci:{tmp_path / 'image'}")
    assert done.code == 1
    assert said in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "image").exists()


def test_extracting_leaves_what_is_there_alone(tmp_path: Path) -> None:
    """A folder that holds something, a file that the release has not."""
    folder = release(tmp_path / "release")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x").write_text("mine")
    done = run("extract", str(folder), "--to", str(tmp_path / "mine"))
    assert (done.code, "exists already and is not empty" in done.err) == (1, True)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["x"]
    assert "has no file nope" in run("extract", str(folder), "--file", "nope").err
    one = run("extract", str(folder), "--file", "release-metadata")
    assert (one.code, json.loads(one.out)["version"]) == (0, "5.2.0")
    assert "give --to DIR for all files, or --file PATH for one" in run("extract", str(folder)).err


def test_what_changes_between_two_releases(tmp_path: Path) -> None:
    """As text, and as data."""
    old = release(
        tmp_path / "old", config_map("a", x="1"), config_map("gone"), version="5.1.0", images={"tool": "h/t:1"}
    )
    new = release(tmp_path / "new", config_map("a", x="2"), config_map("b"), images={"tool": "h/t:2"})
    done = run("diff", str(old), str(new))
    assert done.code == 0, done.err
    assert done.out == (
        "5.1.0 -> 5.2.0\n"
        "\n"
        "Images: 1 changed\n"
        "  changed   tool   h/t:1 -> h/t:2\n"
        "Manifests: 1 added, 1 changed, 1 removed, 0 the same\n"
        "  changed   ConfigMap default/a      data.x: 1 -> 2\n"
        "  added     ConfigMap default/b      release-manifests/0000_50_a_01.yaml\n"
        "  removed   ConfigMap default/gone   nothing deletes it: clusters that have it keep it\n"
        "Checks: no change\n"
        "Feature gates: no change\n"
        "Access: no roles and bindings changed\n"
    )
    shown = yaml.safe_load(run("diff", str(old), str(new), "-o", "yaml").out)
    assert shown["manifests"][0]["changes"] == [{"path": "data.x", "from": "1", "to": "2"}]
    assert "give two releases" in run("diff", str(old)).err


@pytest.mark.parametrize(
    ("base", "said"),
    [
        pytest.param({"preflight-checks/reads": b"{"}, "--base: ", id="rights that nobody can read"),
        pytest.param(None, "nowhere", id="no image at all"),
    ],
)
def test_an_operator_image_that_cannot_be_built_upon(tmp_path: Path, base: dict[str, bytes] | None, said: str) -> None:
    """One error, and no image."""
    place = tmp_path / "nowhere"
    if base is not None:
        build_image(place, [layer_of(base)], tag="t", config=Execution())
    words = ("--from-dir", str(release(tmp_path / "release")), "--base", f"oci:{place}", "--version", "5.2.0")
    done = run("new", *words, "--to", f"oci:{tmp_path / 'image'}")
    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert not (tmp_path / "image").exists()


def test_extracting_says_how_much_from_where_to_where(tmp_path: Path) -> None:
    """Of a folder by its name, of an image by its digest."""
    folder = release(tmp_path / "release", config_map("a"))
    done = run("extract", str(folder), "--to", str(tmp_path / "files"))
    assert (done.code, done.out) == (0, f"3 files of {folder} in {tmp_path / 'files'}\n")
    (folder / "release-manifests" / "release-metadata").unlink()
    (folder / "release-manifests" / "image-references").unlink()
    made = run("new", "--from-dir", str(folder), "--version", "5.2.0", "--to", f"oci:{tmp_path / 'image'}")
    digest = made.out.splitlines()[0]
    done = run("extract", f"oci:{tmp_path / 'image'}", "--to", str(tmp_path / "others"))
    assert f" files of {digest} in {tmp_path / 'others'}\n" in done.out


def test_which_fields_a_line_names_and_how_many_more_there_are(tmp_path: Path) -> None:
    """Four are enough for a line; the data has all."""
    old = release(tmp_path / "old", config_map("a", **{f"k{number}": "1" for number in range(6)}), version="5.1.0")
    new = release(tmp_path / "new", config_map("a", **{f"k{number}": "2" for number in range(6)}))
    line = next(line for line in run("diff", str(old), str(new)).out.splitlines() if "ConfigMap" in line)
    fields = ", ".join(f"data.k{number}: 1 -> 2" for number in range(4))
    assert line == f"  changed   ConfigMap default/a   {fields}, and 2 more"
    shown = json.loads(run("diff", str(old), str(new), "-o", "json").out)
    assert len(shown["manifests"][0]["changes"]) == 6
