"""`runup release` reports an invalid release with one error, the file's name, and exit code 1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import Ran
from tests.cli.release.typed import run

MANIFEST = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: NAME, annotations: {a: b}}\n"
REFERENCES = {"apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": {"name": "5.2.0"}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A release of 401 manifests."""
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "0000_00_a_0.yaml").write_text(MANIFEST.replace("NAME", "own"))
    others = tmp_path / "release-manifests"
    others.mkdir()
    for number in range(400):
        (others / f"0000_50_b_{number:03}.yaml").write_text(MANIFEST.replace("NAME", f"m{number}"))
    (others / "release-metadata").write_text(json.dumps({"kind": "cincinnati-metadata-v0", "version": "5.2.0"}))
    (others / "image-references").write_text(json.dumps(REFERENCES))
    return tmp_path


def info(folder: Path, *words: str) -> Ran:
    """`runup release info`."""
    return run("info", str(folder), *words)


OTHER = json.dumps(REFERENCES).replace("5.2.0", "5.1.0")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        pytest.param("release-manifests/0000_50_b_399.yaml", "kind: [", "0000_50_b_399.yaml", id="YAML in the 400th"),
        pytest.param(
            "release-manifests/0000_50_b_007.yaml",
            f"{MANIFEST}---\n{MANIFEST}",
            "0000_50_b_007.yaml, document 2: ConfigMap NAME is there twice",
            id="an object twice",
        ),
        pytest.param(
            "release-manifests/image-references",
            OTHER,
            "version from image-references (5.1.0) differs from release-metadata (5.2.0)",
            id="another version",
        ),
        pytest.param("release-manifests/release-metadata", None, "release-metadata is missing", id="no metadata"),
        pytest.param("release-manifests/image-references", None, "image-references is missing", id="no references"),
    ],
)
def test_what_is_no_release_is_one_error(folder: Path, name: str, text: str | None, said: str) -> None:
    """It names the file, and nothing else is printed."""
    if text is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(text)
    done = info(folder)
    assert (done.code, done.out) == (1, "")
    assert said in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        pytest.param("manifests/0000_00_a_0.yaml", None, "manifests/ is missing", id="a missing folder"),
        pytest.param(
            "manifests/0000_00_a_1.yaml",
            "a: '{{.Nope}}'",
            "manifests/0000_00_a_1.yaml: skipped, its template cannot be rendered: line 1",
            id="an unknown template field",
        ),
        pytest.param(
            "release-manifests/0000_50_b_007.yaml",
            MANIFEST.replace(", annotations: {a: b}", ""),
            "release-manifests/0000_50_b_007.yaml: ConfigMap NAME has no annotations, so no cluster gets it",
            id="no annotations",
        ),
        pytest.param(
            "release-manifests/z.yaml",
            MANIFEST,
            "release-manifests/z.yaml: its name is not 0000_NN_COMPONENT_...",
            id="a name that nobody can parse",
        ),
    ],
)
def test_what_is_odd_is_a_warning(folder: Path, name: str, text: str | None, said: str) -> None:
    """It names the file; the rest of the release is reported."""
    if text is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(text)
    done = info(folder, "-o", "json")
    assert done.code == 0, done.err
    (warning,) = json.loads(done.out)["warnings"]
    assert said in warning
