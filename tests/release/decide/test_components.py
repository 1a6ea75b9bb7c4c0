"""Component images gathered into a release: names, substituted images and versions, and what does not fit."""

from __future__ import annotations

import json

import pytest

from runup.release.decide.components import Component, ComponentError, check_name, gather_files

REAL = "registry.example/tool@sha256:" + "1" * 64
STREAM = {"apiVersion": "image.openshift.io/v1", "kind": "ImageStream"}


def component(name: str = "tool", sources: dict[str, str] | None = None, **files: str) -> Component:
    """A component; in names of files two underscores at the start are the folder of checks."""
    found = {f"manifests/{path}": text.encode() for path, text in files.items()}
    if sources is not None:
        tags = [{"name": each, "from": {"kind": "DockerImage", "name": spec}} for each, spec in sources.items()]
        found["manifests/image-references"] = json.dumps(STREAM | {"spec": {"tags": tags}}).encode()
    return Component(name, REAL, found)


@pytest.mark.parametrize(
    ("name", "placed"),
    [
        pytest.param("deployment.yaml", "0000_50_tool_deployment.yaml", id="in a bucket of its own"),
        pytest.param("0000_30_tool_01.yaml", "0000_30_tool_01.yaml", id="in the place that it asks for"),
    ],
)
def test_where_a_file_goes(name: str, placed: str) -> None:
    """Only who asks for a place in the global order has one."""
    assert list(gather_files((component(**{name: "a: b"}),), {}, "5.2.0")) == [f"release-manifests/{placed}"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("image: quay.io/dev/tool:latest", f"image: {REAL}", id="the pull spec of its development"),
        pytest.param(
            "image: quay.io/dev/tool:latest-2", "image: quay.io/dev/tool:latest-2", id="not one that only begins so"
        ),
        pytest.param('"quay.io/dev/tool:latest"', f'"{REAL}"', id="in quotes"),
        pytest.param("version: 0.0.1-snapshot", "version: 5.2.0", id="the version"),
        pytest.param(
            "version: 0.0.1-snapshot-kubernetes", "version: 0.0.1-snapshot-kubernetes", id="not another component's"
        ),
    ],
)
def test_what_is_put_in(text: str, expected: str) -> None:
    """Images by what the component's own image-references call them."""
    made = component(sources={"tool": "quay.io/dev/tool:latest"}, **{"a.yaml": text})
    assert gather_files((made,), {"tool": REAL}, "5.2.0")["release-manifests/0000_50_tool_a.yaml"].decode() == expected


@pytest.mark.parametrize("sources", [("x/tool", "x/tool:1"), ("x/tool:1", "x/tool")], ids=["short first", "long first"])
def test_one_pull_spec_that_begins_like_another(sources: tuple[str, str]) -> None:
    """Each is replaced by its own, in whichever order they are named."""
    images = {name: f"registry.example/{name}@sha256:" + "2" * 64 for name in ("a", "b")}
    made = component(sources=dict(zip(("a", "b"), sources, strict=True)), **{"a.yaml": "x: x/tool\ny: x/tool:1"})
    text = gather_files((made,), images, "5.2.0")["release-manifests/0000_50_tool_a.yaml"].decode()
    own = {source: images[name] for name, source in zip(("a", "b"), sources, strict=True)}
    assert text == f"x: {own['x/tool']}\ny: {own['x/tool:1']}"


@pytest.mark.parametrize(
    ("components", "said"),
    [
        pytest.param(
            (component(sources={"other": "x/y"}),),
            "needs image other, which the release does not have; add --component other=IMAGE",
            id="an image that nobody brings",
        ),
        pytest.param(
            (component("a", **{"0000_10_x_1.yaml": ""}), component("b", **{"0000_10_x_1.yaml": ""})),
            "components a and b both bring release-manifests/0000_10_x_1.yaml",
            id="two files in one place",
        ),
        pytest.param(
            (Component("a", REAL, {"manifests/image-references": b"kind: List"}),),
            "component a: manifests/image-references: image-references: is List",
            id="no stream of images",
        ),
    ],
)
def test_what_does_not_fit(components: tuple[Component, ...], said: str) -> None:
    """One error that names component and file."""
    with pytest.raises(ComponentError, match=said.replace("(", "\\(")):
        gather_files(components, {"tool": REAL}, "5.2.0")


@pytest.mark.parametrize("name", ["", "A", "a_b", "a--b", "../a"])
def test_names_that_no_file_could_carry(name: str) -> None:
    """They would become part of a file's name."""
    with pytest.raises(ComponentError, match="a name is of"):
        check_name(name)
