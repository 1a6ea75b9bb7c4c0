"""What makes files a release, and what in one is legal and yet likely a mistake."""

from __future__ import annotations

import json

import pytest

from runup.release.decide.listing import check, likely_mistakes, missing_parts
from runup.release.decide.payload import PayloadError, load_payload

OK = "0000_50_a_0.yaml"
ANNOTATED = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a, annotations: {x: z}}\n"
METADATA = ("release-manifests/release-metadata", "release-manifests/image-references")


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        pytest.param(["manifests/a", "release-manifests/b", *METADATA], [], id="whole"),
        pytest.param(METADATA, ["manifests/ is missing: the operator's own manifests are there"], id="no operator"),
        pytest.param(
            ["manifests/a"],
            [
                "release-manifests/ is missing: everybody else's manifests are there",
                "release-manifests/release-metadata is missing",
                "release-manifests/image-references is missing",
            ],
            id="nothing but the operator",
        ),
        pytest.param(
            ["manifests/a", METADATA[0]], ["release-manifests/image-references is missing"], id="no image-references"
        ),
    ],
)
def test_what_is_missing(paths: list[str], said: list[str]) -> None:
    """Each part by name."""
    assert list(missing_parts(paths)) == said


def odd(**files: str) -> list[str]:
    """The oddities of a release of these files of release-manifests, without those of the operator."""
    stream = {"apiVersion": "image.openshift.io/v1", "kind": "ImageStream", "metadata": {"name": "5.0.0"}}
    known = {
        METADATA[0]: json.dumps({"kind": "cincinnati-metadata-v0", "version": "5.0.0"}),
        METADATA[1]: json.dumps(stream),
    }
    known |= {f"release-manifests/{name}": text for name, text in files.items()} | {"manifests/0000_00_a_0.yaml": OWN}
    return list(likely_mistakes(load_payload({name: text.encode() for name, text in known.items()}, source="test")))


OWN = ANNOTATED.replace("name: a", "name: own")
SET = ANNOTATED.replace("x: z", "release.openshift.io/feature-set: Default")


@pytest.mark.parametrize(
    ("files", "said"),
    [
        pytest.param({OK: ANNOTATED}, [], id="as it should be"),
        pytest.param(
            {OK: "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n"},
            ["release-manifests/0000_50_a_0.yaml: ConfigMap a has no annotations, so no cluster gets it"],
            id="no annotations",
        ),
        pytest.param(
            {"50-a.yaml": ANNOTATED},
            [
                "release-manifests/50-a.yaml: its name is not 0000_NN_COMPONENT_..., so it is applied with its "
                "neighbours, in no component"
            ],
            id="a name outside the grammar",
        ),
        pytest.param(
            {OK: ANNOTATED, "0000_50_a_1.yaml": ANNOTATED},
            [
                "release-manifests/0000_50_a_1.yaml: ConfigMap a is in release-manifests/0000_50_a_0.yaml for the same "
                "clusters; the later one wins"
            ],
            id="one object in two files",
        ),
        pytest.param(
            {OK: "kind: ConfigMap\napiVersion: v1\nmetadata: {name: b}\n", "x.yaml": ANNOTATED, "y.yaml": ANNOTATED},
            [
                *(
                    f"release-manifests/{name}.yaml: its name is not 0000_NN_COMPONENT_..., so it is applied with its "
                    "neighbours, in no component"
                    for name in "xy"
                ),
                "release-manifests/0000_50_a_0.yaml: ConfigMap b has no annotations, so no cluster gets it",
                "release-manifests/y.yaml: ConfigMap a is in release-manifests/x.yaml for the same clusters; the later "
                "one wins",
            ],
            id="several at a time",
        ),
        pytest.param({OK: ANNOTATED, "0000_50_a_1.yaml": SET}, [], id="one object for two sorts of clusters"),
    ],
)
def test_what_is_odd(files: dict[str, str], said: list[str]) -> None:
    """Each names its file."""
    assert odd(**files) == said


def test_what_is_no_release_is_refused_with_all_that_is_missing() -> None:
    """In one text, and one by one."""
    check(["manifests/a", "release-manifests/b", *METADATA], "folder")
    with pytest.raises(
        PayloadError, match=r"^folder is not a release image: manifests/ is missing: .*; release-m"
    ) as said:
        check(METADATA[:1], "folder")
    assert said.value.errors == missing_parts(METADATA[:1])
