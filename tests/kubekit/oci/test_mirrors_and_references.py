"""Where an image may be had besides where it says, and what a pull spec is."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kubekit.oci.access import Mirror, mirrors_of_object, read_mirrors, references_to_try
from kubekit.oci.reference import Reference, digest_of, is_digest, is_tag, parse
from kubekit.oci.registry_errors import BadMirrors, InvalidReference

DIGEST = "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("mirrors", "expected"),
    [
        pytest.param([], ["quay.io/ocp/release"], id="none"),
        pytest.param([("quay.io/ocp/release", ["m.io/r"])], ["m.io/r", "quay.io/ocp/release"], id="of the repository"),
        pytest.param([("quay.io/ocp", ["m.io/x"])], ["m.io/x/release", "quay.io/ocp/release"], id="of its path"),
        pytest.param([("quay.io", ["m.io"])], ["m.io/ocp/release", "quay.io/ocp/release"], id="of the registry"),
        pytest.param([("*.io", ["m.org"])], ["m.org/ocp/release", "quay.io/ocp/release"], id="of a domain"),
        pytest.param([("*.quay.io", ["m.org"])], ["quay.io/ocp/release"], id="a domain is not its own subdomain"),
        pytest.param([("*.io", ["m.org/x"])], ["m.org/x/ocp/release", "quay.io/ocp/release"], id="below a path"),
        pytest.param([("*.org", ["m.org"])], ["quay.io/ocp/release"], id="of another domain"),
        pytest.param([("quay.io/oc", ["m.io"])], ["quay.io/ocp/release"], id="not of half a name"),
        pytest.param([("quay.io/ocp/release/more", ["m.io"])], ["quay.io/ocp/release"], id="not of what is below"),
        pytest.param(
            [("quay.io", ["far.io"]), ("quay.io/ocp", ["near.io"])],
            ["near.io/release", "quay.io/ocp/release"],
            id="the longest source counts alone",
        ),
        pytest.param(
            [("quay.io/ocp", ["a.io", "b.io"]), ("quay.io/ocp", ["c.io", "a.io"])],
            ["a.io/release", "b.io/release", "c.io/release", "quay.io/ocp/release"],
            id="several, in order and once each",
        ),
    ],
)
def test_where_to_ask(mirrors: list[tuple[str, list[str]]], expected: list[str]) -> None:
    """Mirrors first, the source last (ImageDigestMirrorSet)."""
    known = [Mirror(source, tuple(places)) for source, places in mirrors]
    found = references_to_try(parse(f"quay.io/ocp/release@{DIGEST}"), known)
    assert [str(place) for place in found] == [f"{place}@{DIGEST}" for place in expected]


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        pytest.param("quay.io/kmods/gpu:6.1", ["tags.io/gpu:6.1", "quay.io/kmods/gpu:6.1"], id="a tag"),
        pytest.param("quay.io/kmods/gpu", ["tags.io/gpu:latest", "quay.io/kmods/gpu"], id="neither, which is latest"),
        pytest.param(
            f"quay.io/kmods/gpu:6.1@{DIGEST}",
            [f"digests.io/gpu@{DIGEST}", f"quay.io/kmods/gpu:6.1@{DIGEST}"],
            id="both: the digest counts",
        ),
    ],
)
def test_tags_have_mirrors_of_their_own(image: str, expected: list[str]) -> None:
    """Whoever mirrors by digest is not trusted with tags (ImageTagMirrorSet)."""
    known = [Mirror("quay.io/kmods", ("digests.io",)), Mirror("quay.io/kmods", ("tags.io",), of_tags=True)]
    assert [str(place) for place in references_to_try(parse(image), known)] == expected


def test_a_source_that_is_never_asked() -> None:
    """Only its mirrors are; without any there is nowhere to ask, which is the error."""
    image = parse(f"quay.io/ocp/release@{DIGEST}")
    assert [
        place.registry for place in references_to_try(image, [Mirror("quay.io", ("m.io",), never_source=True)])
    ] == ["m.io"]
    both = [Mirror("quay.io", ("a.io",)), Mirror("quay.io", ("b.io",), never_source=True)]
    assert [place.registry for place in references_to_try(image, both)] == ["a.io", "b.io"]
    far = [Mirror("quay.io", ("a.io",), never_source=True), Mirror("quay.io/ocp", ("b.io",))]
    assert [place.registry for place in references_to_try(image, far)] == ["b.io", "quay.io"]
    with pytest.raises(BadMirrors, match=r"NeverContactSource is set for quay\.io, which has no mirrors"):
        references_to_try(image, [Mirror("quay.io", (), never_source=True)])


def test_a_mirror_that_is_no_repository() -> None:
    """The error names image and mirror."""
    with pytest.raises(BadMirrors, match=r"its mirror m\.io/UPPER is not a repository"):
        references_to_try(parse(f"quay.io/a@{DIGEST}"), [Mirror("quay.io/a", ("m.io/UPPER",))])


def idms(*entries: Any) -> dict[str, Any]:
    """An ImageDigestMirrorSet."""
    return {"kind": "ImageDigestMirrorSet", "spec": {"imageDigestMirrors": list(entries)}}


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        pytest.param(
            {"kind": "ImageTagMirrorSet", "spec": {"imageTagMirrors": [{"source": "a.io", "mirrors": ["b.io"]}]}},
            [Mirror("a.io", ("b.io",), of_tags=True)],
            id="of tags",
        ),
        pytest.param(
            idms({"source": "a.io", "mirrors": ["b.io", "c.io/"]}), [Mirror("a.io", ("b.io", "c.io"))], id="two"
        ),
        pytest.param(
            idms({"source": "a.io/", "mirrors": ["b.io"], "mirrorSourcePolicy": "NeverContactSource"}),
            [Mirror("a.io", ("b.io",), never_source=True)],
            id="never the source",
        ),
        pytest.param(
            idms({"source": "a.io", "mirrors": ["b.io"], "mirrorSourcePolicy": "AllowContactingSource"}),
            [Mirror("a.io", ("b.io",))],
            id="the source too",
        ),
        pytest.param(idms({"source": "a.io"}), [Mirror("a.io", ())], id="no mirrors"),
        pytest.param({"kind": "ImageDigestMirrorSet", "spec": {}}, [], id="nothing in it"),
        pytest.param({"kind": "ImageDigestMirrorSet"}, [], id="no spec"),
        pytest.param(
            {
                "kind": "ImageContentSourcePolicy",
                "spec": {"repositoryDigestMirrors": [{"source": "a.io/b", "mirrors": ["c.io/b"]}]},
            },
            [Mirror("a.io/b", ("c.io/b",))],
            id="the older kind",
        ),
    ],
)
def test_objects(document: dict[str, Any], expected: list[Mirror]) -> None:
    """What the cluster's objects say."""
    assert list(mirrors_of_object(document, "f")) == expected
    assert list(read_mirrors(yaml.safe_dump_all([document, None, document]).encode(), "f")) == expected * 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "f: holds no ImageDigestMirrorSet or ImageContentSourcePolicy", id="empty"),
        pytest.param("a: [", "f, line 2", id="no YAML"),
        pytest.param(
            "- a",
            "f: expected ImageDigestMirrorSet or ImageContentSourcePolicy or ImageTagMirrorSet, found no object",
            id="a list",
        ),
        pytest.param("kind: ImagePolicy", "found ImagePolicy", id="another kind"),
        pytest.param(
            "kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: {}}", "imageDigestMirrors is not a list", id="a map"
        ),
        pytest.param(
            "kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: [{mirrors: [a]}]}",
            "f: spec.imageDigestMirrors[0] has no source",
            id="no source",
        ),
        pytest.param(
            "kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: [{source: a, mirrors: b}]}",
            "f: spec.imageDigestMirrors[0]: mirrors is not a list of repositories",
            id="mirrors as text",
        ),
        pytest.param(
            "kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: [{source: a}, {source: 7}]}",
            "f: spec.imageDigestMirrors[1] has no source",
            id="a number for a source",
        ),
        pytest.param(
            "kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: [{source: ''}]}",
            "f: spec.imageDigestMirrors[0] has no source",
            id="nothing for a source",
        ),
        pytest.param(
            "kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: [a]}",
            "f: spec.imageDigestMirrors[0] has no source",
            id="an entry as text",
        ),
        *(
            pytest.param(
                f"kind: ImageTagMirrorSet\nspec: {{imageTagMirrors: [{{source: a, mirrors: [b, {odd}]}}]}}",
                "f: spec.imageTagMirrors[0]: mirrors is not a list of repositories",
                id=f"{odd} for a mirror",
            )
            for odd in ("7", "''")
        ),
        pytest.param("null", "f: holds no ImageDigestMirrorSet or ImageContentSourcePolicy", id="null"),
    ],
)
def test_a_file_of_mirrors_that_is_none(text: str, said: str) -> None:
    """The error names file and entry."""
    with pytest.raises(BadMirrors) as refused:
        read_mirrors(text.encode(), "f")
    assert said in refused.value.message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("quay.io/ocp/release:5.2.0", Reference("quay.io", "ocp/release", "5.2.0")),
        (f"quay.io/ocp/release@{DIGEST}", Reference("quay.io", "ocp/release", "", DIGEST)),
        (f"quay.io/ocp/release:5.2.0@{DIGEST}", Reference("quay.io", "ocp/release", "5.2.0", DIGEST)),
        ("localhost/a", Reference("localhost", "a")),
        ("localhost:5000/a:1", Reference("localhost:5000", "a", "1")),
        ("[::1]:5000/a", Reference("[::1]:5000", "a")),
        ("ocp/release", Reference("", "ocp/release")),
        ("release:1", Reference("", "release", "1")),
        ("a.b/c__d/e-f.g", Reference("a.b", "c__d/e-f.g")),
        ("REG/a", Reference("REG", "a")),
    ],
)
def test_references(text: str, expected: Reference) -> None:
    """By the grammar of the distribution project; written back they are the same text."""
    assert parse(text) == expected
    assert str(parse(text)) == text


@pytest.mark.parametrize(
    ("text", "host", "path"),
    [
        ("busybox:1", "docker.io", "library/busybox"),
        ("docker.io/busybox", "docker.io", "library/busybox"),
        ("some/image", "docker.io", "some/image"),
        ("quay.io/image", "quay.io", "image"),
        ("quay.io/some/image", "quay.io", "some/image"),
    ],
)
def test_where_an_image_is_asked_for(text: str, host: str, path: str) -> None:
    """Docker Hub where no registry is written, and its own images below `library`."""
    assert (parse(text).host, parse(text).path) == (host, path)


def test_another_image_of_the_same_repository() -> None:
    """By its digest alone."""
    assert parse("quay.io/a:1").at(DIGEST) == Reference("quay.io", "a", "", DIGEST)


def test_how_long_a_repository_may_be() -> None:
    """255 characters without the registry."""
    assert len(parse(f"quay.io/{'a' * 127}/{'b' * 127}").repository) == 255
    with pytest.raises(InvalidReference):
        parse(f"quay.io/{'a' * 127}/{'b' * 128}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("quay.io/a@sha256:abc", "invalid reference format: 'sha256:abc' is not a digest such as sha256:<64 hex>"),
        ("quay.io/a:-x", "invalid reference format: '-x' is not a tag"),
        ("quay.io/A", "invalid reference format: expected registry/repository:tag or @digest"),
        ("-x.io/a", "invalid reference format: expected registry/repository:tag or @digest"),
    ],
)
def test_what_is_wrong_with_a_reference(text: str, said: str) -> None:
    """Which part of it is reported."""
    with pytest.raises(InvalidReference) as refused:
        parse(text)
    assert refused.value.message == f"{text!r}: {said}"


@pytest.mark.parametrize(
    ("text", "holds"),
    [("a", True), ("_1.2-3", True), ("a" * 128, True), ("a" * 129, False), (".a", False), ("", False), ("a+b", False)],
)
def test_tags(text: str, holds: bool) -> None:
    """By the grammar of the distribution project."""
    assert is_tag(text) is holds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "quay.io/",
        "quay.io/A",
        "quay.io/a:",
        "quay.io/a:-x",
        "quay.io/a b",
        "quay.io/a@sha256:abc",
        "quay.io/a@",
        f"quay.io/a@{DIGEST}@{DIGEST}",
        f"quay.io/a@{DIGEST.upper()}",
        "https://quay.io/a",
        "quay.io//a",
        "../a",
        "quay.io:port/a",
        "-x.io/a",
        f"quay.io/{'a' * 256}",
        f"quay.io/a:{'1' * 129}",
        "quay.io/a\n",
    ],
)
def test_what_is_no_reference(text: str) -> None:
    """One error with the text."""
    with pytest.raises(InvalidReference) as refused:
        parse(text)
    assert repr(text) in refused.value.message


@pytest.mark.parametrize(
    ("pullspec", "expected"),
    [
        (f"quay.io/a@{DIGEST}", DIGEST),
        (f"quay.io/a:1@{DIGEST}", DIGEST),
        ("quay.io/a:1", ""),
        (f"quay.io/a@{DIGEST}@{DIGEST}", ""),
        ("quay.io/a@sha256:abc", ""),
        ("", ""),
    ],
)
def test_the_digest_of_a_pull_spec(pullspec: str, expected: str) -> None:
    """Nothing where there is a tag alone, or more than one."""
    assert digest_of(pullspec) == expected


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (DIGEST, True),
        ("sha256:" + "a" * 63, False),
        ("sha256:" + "A" * 64, False),
        ("sha512:" + "a" * 128, True),
        ("sha512:" + "a" * 64, False),
        ("blake3:abc", True),
        ("sha256:" + "a" * 63 + "/", False),
        (DIGEST + "\n", False),
        ("", False),
    ],
)
def test_digests(text: str, holds: bool) -> None:
    """The form, and for what can be checked also the length."""
    assert is_digest(text) is holds
