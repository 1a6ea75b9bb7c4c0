"""A release out of its files: names, order, templates, what is wrong with it, and its hash."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runup.release.decide.manifest import FileName, Identity, file_name, parse_manifests
from runup.release.decide.payload import (
    Payload,
    PayloadError,
    TemplateError,
    Values,
    load_payload,
    render,
    version_hash,
)

IMAGE = "registry.example/release@sha256:" + "1" * 64
TOOL = "registry.example/tool@sha256:" + "2" * 64
METADATA = {"kind": "cincinnati-metadata-v0", "version": "5.2.0"}
REFERENCES = {
    "kind": "ImageStream",
    "apiVersion": "image.openshift.io/v1",
    "metadata": {"name": "5.2.0"},
    "spec": {
        "tags": [
            {"name": "tool", "from": {"kind": "DockerImage", "name": TOOL}},
            {"name": "must-gather", "from": {"kind": "DockerImage", "name": IMAGE}},
            {"name": "other", "from": {"kind": "ImageStreamTag", "name": "other:1"}},
        ]
    },
}
OBJECT = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: NAME}\n"


def config_map(name: str, more: str = "") -> bytes:
    """A manifest."""
    return (OBJECT.replace("NAME", name) + more).encode()


def release(
    *, metadata: Any = METADATA, references: Any = REFERENCES, strict: bool = False, **files: bytes | str
) -> Payload:
    """The release of these files; in their names, two underscores are a slash and one is a dash."""
    named = {name: data.encode() if isinstance(data, str) else data for name, data in files.items()}
    for name, document in (("release-metadata", metadata), ("image-references", references)):
        if document is not None:
            named[f"release-manifests/{name}"] = (
                document if isinstance(document, bytes) else json.dumps(document).encode()
            )
    return load_payload(named, source="the test", release_image=IMAGE, strict_templates=strict)


def names(payload: Payload) -> list[str]:
    """The names of its manifests."""
    return [manifest.identity.name for manifest in payload.manifests]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("0000_30_machine-api_00_a.yaml", FileName("30", "machine-api"), id="a usual one"),
        pytest.param("release-manifests/0000_03_config_b.json", FileName("03", "config"), id="in a folder"),
        pytest.param("0000_3_a_b.yaml", FileName("3", "a"), id="one digit"),
        pytest.param("0000_000123_a_b.yaml", FileName("000123", "a"), id="many digits, kept as text"),
        pytest.param("0000_30_a-b-c_d.yaml", FileName("30", "a-b-c"), id="dashes in the component"),
        pytest.param("0000_30_A1_d.yaml", FileName("30", "A1"), id="capitals and digits"),
        pytest.param("0000_30_a--b_d.yaml", None, id="two dashes"),
        pytest.param("0000_30_-a_d.yaml", None, id="a dash first"),
        pytest.param("0000_30_a.b_d.yaml", None, id="a dot in the component"),
        pytest.param("0000_30_a.yaml", None, id="nothing after the component"),
        pytest.param("0001_30_a_b.yaml", None, id="another beginning"),
        pytest.param("0000_xx_a_b.yaml", None, id="no digits"),
        pytest.param("x0000_30_a_b.yaml", None, id="not at the start"),
    ],
)  # fmt: skip
def test_file_names(name: str, expected: FileName | None) -> None:
    """Run level and component as in docs/reference/upstream.md 1.3; other names are legal and have neither."""
    assert file_name(name) == expected


def test_the_operators_own_manifests_come_first() -> None:
    """/manifests whole, then /release-manifests whole, each by file name, byte by byte; not by run level."""
    payload = release(
        **{
            "release-manifests/0000_03_b_x.yaml": config_map("third"),
            "manifests/0000_90_a_x.yaml": config_map("second"),
            "manifests/0000_100_a_x.yaml": config_map("first"),
            "release-manifests/0000_03_b_é.yaml": config_map("last"),
            "release-manifests/0000_03_b_z.yaml": config_map("fourth"),
        }
    )
    assert names(payload) == ["first", "second", "third", "fourth", "last"]


def test_only_manifests_in_the_folders_themselves_are_read() -> None:
    """Other endings, other folders and folders within are ignored, whatever is in them."""
    payload = release(
        **{
            "manifests/a.yaml": config_map("a"),
            "manifests/b.yml": config_map("b"),
            "manifests/c.json": b'{"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c"}}',
            "manifests/README.md": b"kind: [",
            "manifests/d.YAML": b"kind: [",
            "manifests/more/e.yaml": b"kind: [",
            "bootstrap/f.yaml": b"kind: [",
            "usr/bin/cluster-version-operator": b"\x7fELF",
        }
    )
    assert names(payload) == ["a", "b", "c"]


def test_checks_are_apart() -> None:
    """What is in /preflight-checks is no manifest that anybody applies."""
    payload = release(**{"preflight-checks/a.yaml": config_map("check"), "manifests/a.yaml": config_map("a")})
    assert names(payload) == ["a"]
    assert [check.identity.name for check in payload.checks] == ["check"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        pytest.param("{{.ReleaseImage}}", IMAGE, id="the release's image"),
        pytest.param("{{ .ClusterProfile }}", "single-node", id="the profile"),
        pytest.param("{{.Images.tool}}", TOOL, id="an image by field"),
        pytest.param('{{index .Images "must-gather"}}', IMAGE, id="an image whose name is no field"),
        pytest.param("{{index .Images `tool`}}", TOOL, id="a raw string"),
        pytest.param('{{ "{{ $labels.pod }}" }}', "{{ $labels.pod }}", id="braces for Prometheus"),
        pytest.param("{{ `a\r\nb` }}", "a\nb", id="carriage returns in a raw string, which Go drops"),
        pytest.param("{{ `{{ $value }}` }}", "{{ $value }}", id="braces in a raw string"),
        pytest.param(r'{{ "a\"b\tc\u00e9" }}', 'a"b\tcé', id="escapes"),
        pytest.param("a {{- /* nothing */ -}} b", "ab", id="a comment that trims both sides"),
        pytest.param("a\n  {{- .ClusterProfile}}\nb", "asingle-node\nb", id="trimmed before"),
        pytest.param("{{.ClusterProfile -}}\n\n b", "single-nodeb", id="trimmed behind"),
        pytest.param("no action", "no action", id="nothing to do"),
        pytest.param("a }} b", "a }} b", id="closing braces alone"),
    ],
)
def test_templates(written: str, meant: str) -> None:
    """The part of Go's language that manifests use, with Go's meaning."""
    assert render(written, Values(IMAGE, "single-node", {"tool": TOOL, "must-gather": IMAGE})) == meant


@pytest.mark.parametrize(
    ("written", "said"),
    [
        pytest.param("\n\n{{.Images.nobody}}", "line 3: image 'nobody' is not in image-references", id="no such image"),
        pytest.param("{{.NewField}}", "is more than this reads", id="a field of a newer operator"),
        pytest.param("{{if .ReleaseImage}}a{{end}}", "is more than this reads", id="a condition"),
        pytest.param("{{ .ReleaseImage | quote }}", "is more than this reads", id="a pipe"),
        pytest.param("a\n{{.ReleaseImage", "line 2: an action is not closed", id="no end"),
        pytest.param('{{ "a }}', "an action is not closed", id="text without an end"),
        pytest.param(r'{{ "\q\x" }}', "is not text", id="an escape that is none"),
        pytest.param("{{}}", "is more than this reads", id="nothing"),
    ],
)  # fmt: skip
def test_templates_that_cannot_be_rendered(written: str, said: str) -> None:
    """Refused with the line, rather than guessed."""
    with pytest.raises(TemplateError) as refused:
        render(written, Values(IMAGE, "p", {}))
    assert said in str(refused.value)


def test_a_template_of_a_newer_release_is_skipped_with_a_warning() -> None:
    """An older operator reads on (docs/reference/upstream.md 1.2); whoever renders strictly gets an error."""
    files = {"manifests/a.yaml": config_map("a", "data: {x: '{{.NewField}}'}\n"), "manifests/b.yaml": config_map("b")}
    payload = release(**files)
    assert names(payload) == ["b"]
    assert len(payload.warnings) == 1
    assert payload.warnings[0].startswith("manifests/a.yaml: skipped, its template cannot be rendered: line ")
    with pytest.raises(PayloadError, match=r"manifests/a\.yaml: skipped"):
        release(strict=True, **files)


def test_only_the_operators_own_manifests_are_templates() -> None:
    """Components' manifests keep their braces; alert rules are full of them."""
    braces = "data: {x: '{{.Images.tool}}'}\n"
    payload = release(
        **{"manifests/a.yaml": config_map("a", braces), "release-manifests/a.yaml": config_map("b", braces)}
    )
    assert [manifest.object["data"]["x"] for manifest in payload.manifests] == [TOOL, "{{.Images.tool}}"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param("kind: [", "a.yaml, line 2", id="no YAML"),
        pytest.param(b"kind: \xff", "a.yaml, line 1: is not UTF-8", id="no text"),
        pytest.param("[" * 1000, "nested more than 200 levels", id="brackets without end"),
        pytest.param("- a", "a.yaml, document 1: is a list, not an object", id="a list"),
        pytest.param("just words", "a.yaml, document 1: is a str, not an object", id="words"),
        pytest.param("metadata: {name: a}", "a.yaml, document 1: has no kind", id="no kind"),
        pytest.param("kind: ''\nmetadata: {name: a}", "a.yaml, document 1: has no kind", id="an empty kind"),
        pytest.param("kind: 3\nmetadata: {name: a}", "a.yaml, document 1: has no kind", id="a kind that is not text"),
        pytest.param("kind: A\napiVersion: 1\nmetadata: {name: a}", "an apiVersion that is not text", id="a number"),
        pytest.param("kind: A", "a.yaml, document 1: A has no metadata.name", id="no metadata"),
        pytest.param("kind: A\nmetadata: {name: ''}", "document 1: A has no metadata.name", id="an empty name"),
        pytest.param("kind: A\nmetadata: {generateName: a-}", "A has no metadata.name", id="a generated name"),
        pytest.param("kind: A\nmetadata: {name: a, namespace: 3}", "namespace that is not text", id="a namespace"),
        pytest.param(config_map("a") + b"---\nkind: A\n", "a.yaml, document 2: A has no", id="the second document"),
        pytest.param(b"---\n---\n# nothing\n---\nkind: A\n", "a.yaml, document", id="after empty ones"),
        pytest.param(
            config_map("a") + b"---\n" + config_map("a"), "a.yaml, document 2: ConfigMap a is there twice", id="twice"
        ),
        pytest.param(
            "{kind: A, apiVersion: x/v1, metadata: {name: a}}\n---\n{kind: A, apiVersion: x/v2, metadata: {name: a}}",
            "a.yaml, document 2: A.x a is there twice",
            id="twice, in two versions of its group",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_file(data: bytes | str, said: str) -> None:
    """File and document are named."""
    with pytest.raises(PayloadError) as refused:
        release(**{"manifests/a.yaml": data})
    assert len(refused.value.errors) == 1
    assert said in refused.value.errors[0]
    assert refused.value.reason == "UpdatePayloadIntegrity"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", [], id="an empty file"),
        pytest.param(b"---\n---\nnull\n", [], id="empty documents"),
        pytest.param(config_map("a") + b"---\n---\n" + config_map("b"), ["a", "b"], id="one between two"),
        pytest.param(b'{"kind":\t"A",\n\t"metadata": {"name": "a"}}', ["a"], id="JSON with tabs"),
        pytest.param(b"\xef\xbb\xbf" + config_map("a"), ["a"], id="a byte order mark"),
        pytest.param(config_map("a").replace(b"\n", b"\r\n"), ["a"], id="lines of Windows"),
        pytest.param(
            b"{kind: A, apiVersion: x/v1, metadata: {name: a}}\n---\n{kind: A, apiVersion: y/v1, metadata: {name: a}}",
            ["a", "a"],
            id="one name in two groups",
        ),
        pytest.param(
            b"{kind: A, metadata: {name: a, namespace: x}}\n---\n{kind: A, metadata: {name: a, namespace: z}}",
            ["a", "a"],
            id="one name in two namespaces",
        ),
    ],
)
def test_what_a_file_may_hold(data: bytes, expected: list[str]) -> None:
    """Its objects, in order."""
    assert names(release(**{"manifests/a.yaml": data})) == expected


def test_an_object_in_two_files_is_legal() -> None:
    """Identity leaves out the version; within one file it is an error (docs/reference/upstream.md 1.2)."""
    files = {"manifests/a.yaml": config_map("a"), "manifests/b.yaml": config_map("a")}
    assert names(release(**files)) == ["a", "a"]


def test_everything_wrong_is_said_at_once() -> None:
    """A release is fixed in one go: two broken files, metadata and references."""
    files = {"manifests/a.yaml": "kind: [", "release-manifests/b.yaml": "kind: B\n---\nkind: C\n"}
    with pytest.raises(PayloadError) as refused:
        release(metadata={"kind": "x"}, references=None, **files)
    assert [error.partition(":")[0] for error in refused.value.errors] == [
        "release-manifests/image-references is missing",
        "release-metadata",
        "manifests/a.yaml, line 2, column 1",
        "release-manifests/b.yaml, document 1",
        "release-manifests/b.yaml, document 2",
    ]
    assert str(refused.value).startswith("Error loading manifests from the test: ")


@pytest.mark.parametrize(
    ("metadata", "references", "said"),
    [
        pytest.param(None, REFERENCES, "release-manifests/release-metadata is missing", id="no metadata"),
        pytest.param(b"{", REFERENCES, "release-metadata", id="metadata that is not JSON"),
        pytest.param([], REFERENCES, "release-metadata: is not an object", id="a list"),
        pytest.param({**METADATA, "kind": "v1"}, REFERENCES, "unrecognized kind 'v1'", id="another kind"),
        pytest.param({"kind": METADATA["kind"]}, REFERENCES, "has no version", id="no version"),
        pytest.param(
            {**METADATA, "version": "v5.2.0"}, REFERENCES, "'v5.2.0' is not a semantic version", id="a v before it"
        ),
        pytest.param({**METADATA, "version": 5.2}, REFERENCES, "has no version", id="a number"),
        pytest.param({**METADATA, "previous": "5.1.0"}, REFERENCES, "previous is not a list", id="previous as text"),
        pytest.param({**METADATA, "metadata": []}, REFERENCES, "metadata is not a map", id="metadata as a list"),
        pytest.param(METADATA, {**REFERENCES, "kind": "List"}, "expected an ImageStream", id="another list of images"),
        pytest.param(METADATA, {**REFERENCES, "metadata": {}}, "has no metadata.name", id="images without a version"),
        pytest.param(
            METADATA,
            {**REFERENCES, "metadata": {"name": "5.1.0"}},
            "version from image-references (5.1.0) differs from release-metadata (5.2.0)",
            id="two versions",
        ),
    ],
)
def test_metadata_that_makes_a_release_unusable(metadata: Any, references: Any, said: str) -> None:
    """One error that says what."""
    with pytest.raises(PayloadError) as refused:
        release(metadata=metadata, references=references)
    assert said in "; ".join(refused.value.errors)


def test_metadata() -> None:
    """What it says is kept; what is only odd is collected (docs/reference/upstream.md 1.1)."""
    details = {
        "url": "https://errata.example/5.2.0",
        "release.openshift.io/architecture": "multi",
        "io.openshift.upgrades.graph.release.channels": "stable-5.2,,candidate-5.2",
    }
    found = release(metadata={**METADATA, "previous": ["5.1.0"], "next": None, "metadata": details}).metadata
    assert (found.url, found.architecture) == ("https://errata.example/5.2.0", "Multi")
    assert (found.channels, found.previous, found.next) == (("candidate-5.2", "stable-5.2"), ("5.1.0",), ())
    assert found.problems == ()
    odd = {
        "url": "http://[",
        "release.openshift.io/architecture": "s390x",
        "io.openshift.upgrades.graph.release.channels": 3,
    }
    problems = release(metadata={**METADATA, "metadata": odd}).metadata.problems
    assert [problem.partition(" ")[0] for problem in problems] == [
        "metadata.url",
        "metadata[release.openshift.io/architecture]",
        "metadata[io.openshift.upgrades.graph.release.channels]",
    ]


def test_image_references() -> None:
    """Names to pull specs, of Docker images alone; YAML is read as well."""
    assert dict(release().image_references.images) == {"tool": TOOL, "must-gather": IMAGE}
    text = "kind: ImageStream\napiVersion: v1\nmetadata: {name: 5.2.0, creationTimestamp: '2026-11-21T10:00:00Z'}\n"
    found = release(references=text.encode()).image_references
    assert dict(found.images) == {}
    assert found.created is not None
    assert found.created.isoformat() == "2026-11-21T10:00:00+00:00"


def test_the_verification_config_map_is_found_by_its_annotation() -> None:
    """The first that carries it, whatever its value."""
    annotated = "metadata: {name: keys, annotations: {release.openshift.io/verification-config-map: ''}}\n"
    payload = release(
        **{
            "manifests/a.yaml": b"kind: ConfigMap\napiVersion: v1\nmetadata: {name: other}\n",
            "manifests/b.yaml": f"kind: Secret\napiVersion: v1\n{annotated}",
            "manifests/c.yaml": f"kind: ConfigMap\napiVersion: v1\n{annotated}",
        }
    )
    assert payload.verification is not None
    assert payload.verification.file == "manifests/c.yaml"
    assert release().verification is None


def fnv1(data: bytes) -> int:
    """FNV-1, 64 bits, by its published parameters."""
    value = 14695981039346656037
    for byte in data:
        value = value * 1099511628211 % 2**64 ^ byte
    return value


def test_fnv_by_its_published_vectors() -> None:
    """The test's own function is the algorithm: FNV-1 and not FNV-1a."""
    assert [fnv1(b""), fnv1(b"a"), fnv1(b"foobar")] == [0xCBF29CE484222325, 0xAF63BD4C8601B7BE, 0x340D8765A4DDA9C2]


def expected_hash(documents: Iterable[str]) -> str:
    """FNV-1 over the documents, as URL-safe base64 with padding."""
    return base64.urlsafe_b64encode(fnv1("".join(documents).encode()).to_bytes(8, "big")).decode()


def test_the_hash_is_that_of_compact_json_in_order() -> None:
    """Keys sorted, and what Go escapes escaped; the order of manifests counts, the form of their files does not."""
    files = {"manifests/a.yaml": "metadata: {name: b}\nkind: A\nx: '<&>\u2028'\n", "manifests/b.yaml": config_map("b")}
    first = r'{"kind":"A","metadata":{"name":"b"},"x":"\u003c\u0026\u003e\u2028"}'
    second = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}'
    manifests = release(**files).manifests
    assert version_hash(manifests) == expected_hash([first, second])
    assert version_hash(reversed(manifests)) == expected_hash([second, first])
    as_json = {
        "manifests/a.json": json.dumps(manifests[0].object, indent=2),
        "manifests/b.yaml": files["manifests/b.yaml"],
    }
    assert version_hash(release(**as_json).manifests) == version_hash(manifests)
    assert version_hash(()) == expected_hash([])


@given(
    st.lists(
        st.tuples(*map(st.sampled_from, (["", "a", "b.io"], "KL", ["", "n"], ["a", "b", "ab"]))),
        max_size=6,
        unique=True,
    )
)  # fmt: skip
def test_every_document_comes_out_once_and_in_order(identities: list[tuple[str, str, str, str]]) -> None:
    """Whatever the objects are called, as long as they are different ones."""
    documents = []
    for group, kind, namespace, name in identities:
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
        documents.append({"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": metadata})
    found, errors = parse_manifests("a.yaml", "\n---\n".join(json.dumps(document) for document in documents))
    assert errors == []
    assert [manifest.identity for manifest in found] == [Identity(*identity) for identity in identities]
    assert [manifest.object for manifest in found] == documents


BASES = {
    "a base": ("https://docs.example/5.2/", "https://docs.example/5.2", ""),
    "none": ("", "", ""),
    "no text": (3, "", "metadata[docs.runup.dev/base] is not text"),
    "no web page": (
        "file:///x",
        "",
        "metadata[docs.runup.dev/base] 'file:///x' is not an http or https URL to which a path can be added",
    ),
    "too long for every risk": (
        "https://" + "x" * 250,
        "",
        f"metadata[docs.runup.dev/base] 'https://{'x' * 250}' is longer than 256 characters",
    ),
}


@pytest.mark.parametrize("name", BASES)
def test_where_a_release_has_its_documentation(name: str) -> None:
    """Its metadata says so; what no link can lead to is left out and named, and spoils nothing else."""
    value, base, problem = BASES[name]
    found = release(metadata={**METADATA, "metadata": {"docs.runup.dev/base": value}}).metadata
    assert (found.documentation_base, found.problems) == (base, (problem,) if problem else ())
