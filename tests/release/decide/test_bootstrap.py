"""What `cluster-version-operator render` makes of a release: which files, which objects, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from runup.api.config_v1 import ComponentOverride
from runup.release.decide.bootstrap import Cluster, RenderError, feature_gate, overrides, render_release

IMAGE = "registry.example/release@sha256:" + "5" * 64
P = "include.release.openshift.io/self-managed-high-availability: 'true'"


def manifest(name: str, more: str = "", api: str = "v1", kind: str = "ConfigMap") -> str:
    """A manifest."""
    annotations = ", ".join(filter(None, (P, more)))
    return f"apiVersion: {api}\nkind: {kind}\nmetadata: {{name: {name}, annotations: {{{annotations}}}}}\n"


def files(**more: str) -> dict[str, bytes]:
    """A release; in names two underscores are the slash."""
    stream = {"apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": {"name": "5.0.0"}}
    known = {
        "release-manifests/release-metadata": json.dumps({"kind": "cincinnati-metadata-v0", "version": "5.0.0"}),
        "release-manifests/image-references": json.dumps(stream),
        **{
            name.replace("release__", "release-manifests/").replace("own__", "manifests/"): t
            for name, t in more.items()
        },
    }
    return {name.replace("boot__", "bootstrap/"): text.encode() for name, text in known.items()}


GATED = "release.openshift.io/feature-gate: New"
SET = "release.openshift.io/feature-set: TechPreviewNoUpgrade"
MAJOR = "release.openshift.io/major-version: '4'"
CAPABILITY = "capability.openshift.io/name: Nope"
EXCLUDED = "exclude.release.openshift.io/internal-openshift-hosted: 'true'"
POLICY = {"api": "config.openshift.io/v1", "kind": "ClusterImagePolicy"}


@pytest.mark.parametrize(
    ("release", "cluster", "expected"),
    [
        pytest.param({"own__a.yaml": manifest("a")}, Cluster(), ["manifests/a.yaml"], id="the operator's own"),
        pytest.param({"release__a.yaml": manifest("a")}, Cluster(), [], id="nobody else's"),
        pytest.param(
            {"release__a.yaml": manifest("a", **POLICY)}, Cluster(), ["manifests/a.yaml"], id="but policies of images"
        ),
        pytest.param({"boot__a.yaml": manifest("a")}, Cluster(), ["bootstrap/a.yaml"], id="what only bootstrap needs"),
        pytest.param(
            {"own__0000_90_cluster-version-operator_02_servicemonitor.yaml": manifest("a")},
            Cluster(),
            [],
            id="what needs kinds that are not there yet",
        ),
        pytest.param({"own__a.yaml": manifest("a", GATED)}, Cluster(), [], id="a gate that nobody opened"),
        pytest.param(
            {"own__a.yaml": manifest("a", GATED)},
            Cluster(gates=frozenset({"New"})),
            ["manifests/a.yaml"],
            id="an open gate",
        ),
        pytest.param({"own__a.yaml": manifest("a", SET)}, Cluster(), [], id="another feature set"),
        pytest.param(
            {"own__a.yaml": manifest("a", MAJOR, "apiextensions.k8s.io/v1", "CustomResourceDefinition")},
            Cluster(),
            [],
            id="another major version",
        ),
        pytest.param({"own__a.yaml": manifest("a")}, Cluster(profile="other"), [], id="another profile"),
        pytest.param(
            {"own__a.yaml": manifest("a")},
            Cluster(overrides=(ComponentOverride(kind="ConfigMap", name="a", unmanaged=True),)),
            [],
            id="overridden",
        ),
        pytest.param(
            {"own__a.yaml": manifest("a", CAPABILITY)}, Cluster(), ["manifests/a.yaml"], id="capabilities do not count"
        ),
        pytest.param(
            {"own__a.yaml": manifest("a", EXCLUDED)}, Cluster(), ["manifests/a.yaml"], id="nor does the identifier"
        ),
        pytest.param({"own__a.txt": "{{"}, Cluster(), [], id="no manifest"),
    ],
)
def test_which_files_are_written(release: dict[str, str], cluster: Cluster, expected: list[str]) -> None:
    """By the same rules as manifests are applied, except for capabilities and the excluded identifier."""
    assert list(render_release(files(**release), IMAGE, cluster)) == expected


def test_templates_are_filled_in() -> None:
    """Of the operator's files and of bootstrap's."""
    found = render_release(files(own__a=""), IMAGE, Cluster())
    assert found == {}
    text = manifest("'{{.ClusterProfile}}'") + "data: {image: '{{.ReleaseImage}}'}\n"
    found = render_release(files(**{"own__a.yaml": text}), IMAGE, Cluster())
    assert found["manifests/a.yaml"].decode() == text.replace("{{.ReleaseImage}}", IMAGE).replace(
        "{{.ClusterProfile}}", "self-managed-high-availability"
    )


def test_of_a_file_with_several_objects_those_that_are_in_are_written() -> None:
    """A file that is written as a whole stays as it was, comments included."""
    both = render_release(files(**{"own__a.yaml": manifest("a") + "---\n" + manifest("b", GATED)}), IMAGE, Cluster())
    assert json.loads(both["manifests/a.yaml"])["metadata"]["name"] == "a"
    whole = "# why\n" + manifest("a") + "---\n" + manifest("b")
    assert render_release(files(**{"own__a.yaml": whole}), IMAGE, Cluster())["manifests/a.yaml"].decode() == whole


@pytest.mark.parametrize(
    ("release", "said"),
    [
        pytest.param({"own__a.yaml": "a: '{{.Nope}}'"}, "manifests/a.yaml: line 1: ", id="a field that nobody knows"),
        pytest.param({"own__a.yaml": "kind: ["}, "manifests/a.yaml", id="no YAML"),
        pytest.param({"release__image-references": "kind: List"}, "image-references: is List", id="no images"),
    ],
)
def test_what_cannot_be_rendered_is_an_error(release: dict[str, str], said: str) -> None:
    """Unlike when a release is loaded: nobody would apply the file later."""
    with pytest.raises(RenderError) as raised:
        render_release(files(**release), IMAGE, Cluster())
    assert said in str(raised.value)


GATE = {"apiVersion": "config.openshift.io/v1", "kind": "FeatureGate", "spec": {"featureSet": "TechPreviewNoUpgrade"}}
ENTRY = {"version": "5.0.0", "enabled": [{"name": "New"}]}


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        pytest.param([GATE], ("TechPreviewNoUpgrade", frozenset()), id="a feature set and no gates"),
        pytest.param([GATE | {"status": {"featureGates": [ENTRY]}}], ("TechPreviewNoUpgrade", {"New"}), id="gates"),
        pytest.param([GATE | {"status": {"featureGates": [ENTRY, ENTRY]}}], "has 2 entries", id="of two versions"),
        pytest.param([GATE, GATE], "has 2 documents", id="two documents"),
        pytest.param([{**GATE, "kind": "Proxy"}], "g.yaml: is Proxy of config.openshift.io/v1", id="another kind"),
        pytest.param([], "has 0 documents", id="an empty file"),
    ],
)
def test_the_installers_feature_gate(documents: list[dict[str, object]], expected: object) -> None:
    """What it says, or why it says nothing."""
    data = "\n---\n".join(map(json.dumps, documents)).encode()
    if isinstance(expected, str):
        with pytest.raises(RenderError, match=expected):
            feature_gate(data, "g.yaml")
    else:
        assert feature_gate(data, "g.yaml") == expected


@pytest.mark.parametrize("read", [feature_gate, overrides], ids=["FeatureGate", "ClusterVersion"])
@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(b"{", "from-the-installer.yaml", id="no YAML"),
        pytest.param(b"- a\n- b\n", "from-the-installer.yaml", id="a list"),
        pytest.param(b"kind: Secret\n", "from-the-installer.yaml", id="another kind"),
        pytest.param(b"---\n", "has 0 documents", id="nothing"),
    ],
)
def test_what_the_installer_did_not_write(read: Callable[[bytes, str], object], data: bytes, words: str) -> None:
    """One error that names the file, whichever of the two it was meant to be."""
    with pytest.raises(RenderError, match=words):
        read(data, "from-the-installer.yaml")


def test_the_installers_overrides() -> None:
    """As ClusterVersion has them."""
    entry = {"kind": "ConfigMap", "group": "", "namespace": "", "name": "a", "unmanaged": True}
    version = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "spec": {"overrides": [entry]}}
    assert overrides(json.dumps(version).encode(), "v") == (
        ComponentOverride(kind="ConfigMap", name="a", unmanaged=True),
    )
    with pytest.raises(RenderError, match=r"spec\.overrides"):
        overrides(json.dumps(version | {"spec": {"overrides": ["x"]}}).encode(), "v")
