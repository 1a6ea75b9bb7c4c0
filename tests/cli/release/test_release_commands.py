"""`runup release` as typed: an image made, looked into, filtered, and what is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.cli.commands import Ran
from tests.cli.release.typed import run

from kubekit.oci.signatures import Keyring, generate_key, verify_signatures

MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  namespace: default
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
    {more}
"""
TECH_PREVIEW = "release.openshift.io/feature-set: TechPreviewNoUpgrade"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A release with one manifest for all and one for technology preview."""
    manifests = tmp_path / "release" / "release-manifests"
    manifests.mkdir(parents=True)
    (manifests / "0000_50_a_00-all.yaml").write_text(MANIFEST.format(name="all", more=""))
    (manifests / "0000_50_a_01-preview.yaml").write_text(MANIFEST.format(name="preview", more=TECH_PREVIEW))
    return tmp_path / "release"


def made(folder: Path, target: str, *more: str) -> Ran:
    """`release new` of the folder."""
    return run("new", "--from-dir", str(folder), "--version", "5.2.0", "--to", target, *more)


def test_an_image_is_made_signed_and_looked_into(folder: Path, tmp_path: Path) -> None:
    """The digest is reproducible, and the signature verifies for it."""
    key = generate_key()
    (tmp_path / "key").write_bytes(key.secret)
    signed = ("--sign-key", str(tmp_path / "key"), "--signature-store", str(tmp_path / "store"))
    first = made(folder, f"oci:{tmp_path / 'one'}", *signed)
    second = made(folder, f"oci:{tmp_path / 'two'}")
    assert (first.code, second.code) == (0, 0), first.err + second.err
    digest = first.out.splitlines()[0]
    assert digest == second.out.splitlines()[0]
    signature = (tmp_path / "store" / digest.replace(":", "=") / "signature-1").read_bytes()
    verify_signatures(digest, [Keyring("k", key.public)], [signature], now=datetime.now(UTC))
    shown = json.loads(run("info", f"oci:{tmp_path / 'one'}", "-o", "json").out)
    assert (shown["name"], shown["digest"], shown["manifests"]) == ("5.2.0", digest, 2)


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        pytest.param((), ["ConfigMap default/all"], id="the default feature set"),
        pytest.param(
            ("--feature-set", "TechPreviewNoUpgrade"),
            ["ConfigMap default/all", "ConfigMap default/preview"],
            id="technology preview",
        ),
        pytest.param(("--profile", "single-node-developer"), [], id="another profile"),
    ],
)
def test_which_manifests_a_cluster_would_get(
    folder: Path, tmp_path: Path, flags: tuple[str, ...], names: list[str]
) -> None:
    """Decided from the image alone."""
    assert made(folder, f"oci:{tmp_path / 'image'}").code == 0
    done = run("manifests", f"oci:{tmp_path / 'image'}", "-o", "name", *flags)
    assert done.code == 0, done.err
    assert [line for line in done.out.splitlines() if line] == names


@pytest.mark.parametrize(
    ("words", "named"),
    [
        pytest.param(("manifests", "/nowhere"), "/nowhere", id="no such folder"),
        pytest.param(("info", "oci:/nowhere"), "/nowhere", id="no such layout"),
        pytest.param(
            ("new", "--from-dir", "/nowhere", "--version", "5.2.0", "--to", "oci:x"), "/nowhere", id="no input"
        ),
        pytest.param(("new", "--from-dir", "/", "--version", "v5", "--to", "oci:x"), "'v5'", id="no version"),
    ],
)
def test_what_cannot_be_used_is_one_error(words: tuple[str, ...], named: str) -> None:
    """It names the input; nothing is written."""
    done = run(*words)
    assert done.code == 1
    assert named in done.err
    assert "Traceback" not in done.err


def test_a_broken_manifest_leaves_nothing_behind(folder: Path, tmp_path: Path) -> None:
    """The error names the file, and there is no half-made layout."""
    (folder / "release-manifests" / "0000_50_a_02-broken.yaml").write_text("kind: [")
    done = made(folder, f"oci:{tmp_path / 'image'}")
    assert done.code == 1
    assert "0000_50_a_02-broken.yaml" in done.err
    assert not (tmp_path / "image").exists()


METADATA = json.dumps({"kind": "cincinnati-metadata-v0", "version": "5.1.0"})
REFERENCES = '{"kind": "ImageStream", "apiVersion": "image.openshift.io/v1", "metadata": {"name": "VERSION"}}'


@pytest.mark.parametrize(
    ("brought", "flags", "said"),
    [
        pytest.param(
            {"release-metadata": METADATA, "image-references": REFERENCES.replace("VERSION", "5.1.0")},
            (),
            "error: --version: release-manifests/release-metadata of the folders says 5.1.0, not 5.2.0\n",
            id="another version",
        ),
        pytest.param(
            {"image-references": REFERENCES.replace("VERSION", "5.1.0")},
            (),
            "version from image-references (5.1.0) differs from release-metadata (5.2.0)",
            id="references of another version",
        ),
        pytest.param(
            {"release-metadata": METADATA.replace("5.1.0", "5.2.0")},
            ("--previous", "5.1.0", "--metadata", "url=https://x"),
            "error: --previous, --metadata: the folders bring release-manifests/release-metadata; say it there",
            id="flags that nobody would hear",
        ),
        pytest.param(
            {"image-references": REFERENCES.replace("VERSION", "5.2.0")},
            ("--image-reference", "a=b/c"),
            "error: --image-reference: the folders bring release-manifests/image-references",
            id="an image that nobody would see",
        ),
        pytest.param({}, ("--previous", "4.x"), "error: --previous: ", id="a previous version that is none"),
        pytest.param(
            {},
            ("--metadata", "docs.runup.dev/base=ftp://x"),
            "--metadata: docs.runup.dev/base 'ftp://x' is not an http or https URL to which a path can be added",
            id="documentation that no link can lead to",
        ),
        pytest.param({}, ("--metadata", "url"), "--metadata: 'url' is not of the form NAME=VALUE", id="no value"),
        pytest.param({}, ("--image-reference", "a=b", "--image-reference", "a=c"), "a is given twice", id="twice"),
        pytest.param({}, ("--entrypoint", "/gone"), "--entrypoint: /gone cannot be read", id="no such operator"),
        pytest.param({}, ("--sign-key", "/gone", "--signature-store", "s"), "--sign-key: /gone", id="no such key"),
        pytest.param({}, ("--sign-key", "/dev/null", "--signature-store", "s"), "--sign-key: /dev/null: ", id="no key"),
        pytest.param({}, ("--sign-key", "k"), "--sign-key and --signature-store belong together", id="no store"),
        pytest.param({}, ("--base", "x/y", "--entrypoint", "z"), "--base brings the operator", id="two operators"),
    ],
)
def test_a_release_that_contradicts_itself(
    folder: Path, tmp_path: Path, brought: dict[str, str], flags: tuple[str, ...], said: str
) -> None:
    """One error that names flag or file; no image, no signature."""
    for name, text in brought.items():
        (folder / "release-manifests" / name).write_text(text)
    done = made(folder, f"oci:{tmp_path / 'image'}", *flags)
    assert done.code == 1
    assert said in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "image").exists()


def test_no_signature_stays_for_an_image_that_found_no_place(folder: Path, tmp_path: Path) -> None:
    """The tag is another image's; neither that nor the store changes."""
    (tmp_path / "key").write_bytes(generate_key().secret)
    place = f"oci:{tmp_path / 'image'}"
    assert made(folder, place).code == 0
    (folder / "release-manifests" / "0000_50_a_02-more.yaml").write_text(MANIFEST.format(name="more", more=""))
    flags = ("--sign-key", str(tmp_path / "key"), "--signature-store", str(tmp_path / "store"))
    done = made(folder, place, *flags)
    assert done.code == 1
    assert "exists already and is another image" in done.err
    assert [path for path in (tmp_path / "store").rglob("*") if path.is_file()] == []
    assert made(folder, place, "--overwrite", *flags).code == 0
    assert len(list((tmp_path / "store").rglob("signature-1"))) == 1


def test_where_a_signature_cannot_be_kept_no_image_is_made(folder: Path, tmp_path: Path) -> None:
    """A release that others could pull and not verify would be worse than none."""
    (tmp_path / "key").write_bytes(generate_key().secret)
    (tmp_path / "store").touch()
    flags = ("--sign-key", str(tmp_path / "key"), "--signature-store", str(tmp_path / "store"))
    done = made(folder, f"oci:{tmp_path / 'image'}", *flags)
    assert done.code == 1
    assert "the signature cannot be written" in done.err
    assert not (tmp_path / "image").exists()


def test_what_info_prints(folder: Path, tmp_path: Path) -> None:
    """As text: one line each, and the images by name."""
    assert made(folder, f"oci:{tmp_path / 'i'}", "--image-reference", "tool=q.io/t@x", "--previous", "5.1.0").code == 0
    shown = run("info", str(tmp_path / "i"))
    lines = shown.out.splitlines()
    assert shown.code == 0, shown.err
    assert lines[0] == "name:         5.2.0"
    assert "previous:     5.1.0" in lines
    assert lines[lines.index("images:       1") + 1] == "  tool  q.io/t@x"
    assert "verifies:     no" in lines


def test_the_table_of_manifests(folder: Path) -> None:
    """Which is in, which is out, and why; a folder needs the two files of a release too."""
    assert "release-manifests/release-metadata is missing" in run("manifests", str(folder)).err
    (folder / "release-manifests" / "release-metadata").write_text(METADATA)
    (folder / "release-manifests" / "image-references").write_text(REFERENCES.replace("VERSION", "5.1.0"))
    assert run("manifests", str(folder)).out == (
        "     MANIFEST                   FILE                                         REASON\n"
        "in   ConfigMap default/all      release-manifests/0000_50_a_00-all.yaml\n"
        'out  ConfigMap default/preview  release-manifests/0000_50_a_01-preview.yaml  "Default" is required, and '
        "release.openshift.io/feature-set=TechPreviewNoUpgrade\n"
    )
    wide = run("manifests", str(folder), "-o", "wide", "--feature-set", "TechPreviewNoUpgrade").out
    assert wide == (
        "    MANIFEST                   FILE                                         REASON\n"
        "in  ConfigMap default/all      release-manifests/0000_50_a_00-all.yaml\n"
        "in  ConfigMap default/preview  release-manifests/0000_50_a_01-preview.yaml\n"
    )


@pytest.fixture
def odd(folder: Path) -> Path:
    """A release with templates, a file that cannot be rendered, one that is no YAML, and names that obey nobody."""
    (folder / "release-manifests" / "release-metadata").write_text(METADATA)
    (folder / "release-manifests" / "image-references").write_text(REFERENCES.replace("VERSION", "5.1.0"))
    own = folder / "manifests"
    own.mkdir(exist_ok=True)
    (own / "0000_00_a_0-profile.yaml").write_text(MANIFEST.format(name="of-{{.ClusterProfile}}", more=""))
    (own / "0000_00_a_1-go.yaml").write_text("{{if .ReleaseImage}}a: b{{end}}")
    (own / "0000_00_a_2-image.yaml").write_text("a: '{{.Images.none}}'")
    broken = folder / "release-manifests"
    (broken / "0000_60_b_0-broken.yaml").write_text("kind: [")
    (broken / "0000_60_b_1-nameless.yaml").write_text("kind: A\n---\n" + MANIFEST.format(name="named", more=""))
    (broken / "0000_60_b_2-\x1b]0;owned\x07.yaml").write_text("kind: [")
    return folder


def test_a_file_that_is_skipped_or_refused_hides_nothing(odd: Path) -> None:
    """Each bad document is a row with its reason; other documents, even in the same file, are kept."""
    done = run("manifests", str(odd))
    assert done.code == 0, done.err
    rows = {line.split()[0] + " " + line.split("/")[-1].split()[0]: line for line in done.out.splitlines()[1:]}
    assert "is more than this reads" in rows["skipped 0000_00_a_1-go.yaml"]
    assert "image 'none' is not in image-references" in rows["skipped 0000_00_a_2-image.yaml"]
    assert "did not find expected node content" in rows["refused 0000_60_b_0-broken.yaml"]
    assert "document 1: A has no metadata.name" in rows["refused 0000_60_b_1-nameless.yaml"]
    assert "ConfigMap default/named" in rows["in 0000_60_b_1-nameless.yaml"]
    assert "ConfigMap default/all" in done.out
    assert "\x1b" not in done.out
    assert "0000_60_b_2-\\x1b]0;owned\\x07.yaml" in done.out


def test_the_profile_reaches_templates(odd: Path) -> None:
    """As the operator of such a cluster renders them."""
    done = run("manifests", str(odd), "--profile", "single-node-developer", "-o", "json")
    assert "ConfigMap default/of-single-node-developer" in [row["object"] for row in json.loads(done.out)["manifests"]]
    assert "ConfigMap default/of-self-managed-high-availability" in run("manifests", str(odd)).out


def test_what_nothing_in_the_release_knows_is_said(odd: Path) -> None:
    """A word that was typed wrong excludes everything, or nothing, without an error."""
    flags = ("--profile", "single-nod", "--gates", "Some", "--major", "7")
    done = run("manifests", str(odd), *flags, "-o", "json")
    shown = json.loads(done.out)
    assert shown["notes"] == [
        "no manifest is for profile single-nod; there are self-managed-high-availability",
        "no manifest names gate Some; none is named",
        "the release is 5.1.0; manifests are filtered as of major version 7",
    ]
    assert done.err == "".join(f"note: {note}\n" for note in shown["notes"])
    assert run("manifests", str(odd)).err == ""


def test_the_data_has_version_filters_and_skipped_files(odd: Path, tmp_path: Path) -> None:
    """A program sees the same as the reader of the table; the value of a name is the name."""
    entry = {"kind": "ConfigMap", "group": "", "namespace": "default", "name": "all", "unmanaged": True}
    (tmp_path / "overrides.yaml").write_text(json.dumps([entry]))
    shown = json.loads(run("manifests", str(odd), "-o", "json", "--overrides", str(tmp_path / "overrides.yaml")).out)
    assert (shown["version"], shown["digest"]) == ("5.1.0", "")
    assert shown["filters"] == {
        "featureSet": "Default",
        "gates": [],
        "profile": "self-managed-high-availability",
        "major": 5,
        "capabilities": None,
        "overrides": [{"kind": "ConfigMap", "namespace": "default", "name": "all", "unmanaged": True}],
    }
    assert [(row["file"].split("/")[-1], row["state"]) for row in shown["skipped"]] == [
        ("0000_00_a_1-go.yaml", "skipped"),
        ("0000_00_a_2-image.yaml", "skipped"),
        ("0000_60_b_0-broken.yaml", "refused"),
        ("0000_60_b_1-nameless.yaml", "refused"),
        ("0000_60_b_2-\x1b]0;owned\x07.yaml", "refused"),
    ]
    (row,) = [row for row in shown["manifests"] if row["object"] == "ConfigMap default/all"]
    assert (row["state"], row["included"], row["reason"]) == ("out", False, "overridden")


ENTRY = "{kind: ConfigMap, namespace: default, name: all, unmanaged: true}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(f"[{ENTRY}]", "overridden", id="a list"),
        pytest.param(f"overrides: [{ENTRY}]", "overridden", id="an object"),
        pytest.param(f"kind: ClusterVersion\nspec: {{overrides: [{ENTRY}]}}", "overridden", id="a ClusterVersion"),
        pytest.param("kind: ClusterVersion\nspec: {}", "ConfigMap default/all", id="a ClusterVersion without any"),
        pytest.param("kind: [", "error: ", id="no YAML"),
        pytest.param("a: b", "expected a ClusterVersion, or a list of overrides", id="something else"),
        pytest.param("[{kind: A, nme: x}]", "override 1: has an unknown field 'nme'", id="a word typed wrong"),
        pytest.param("[{kind: A}]", "override 1: has no name", id="no name"),
        pytest.param("[1]", "override 1: ", id="no object"),
    ],
)
def test_overrides_are_read_from_a_file(odd: Path, tmp_path: Path, text: str, said: str) -> None:
    """In the forms in which one has them; what is wrong is said with the file's name."""
    file = tmp_path / "overrides.yaml"
    file.write_text(text)
    done = run("manifests", str(odd), "--overrides", str(file))
    assert said in done.out + done.err
    assert ("overridden" in done.out) == (said == "overridden")
    assert (done.code == 1) == ("error: " in done.err)
    if done.code:
        assert "overrides.yaml" in done.err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        pytest.param(
            ("--feature-set", "Preview"), "unknown feature set Preview; known are CustomNoUpgrade", id="a set"
        ),
        pytest.param(("--capabilities", "Consol"), "unknown capabilities Consol; known are ", id="a capability"),
        pytest.param(("--profile", ""), "the profile is empty; the usual one is self-managed", id="no profile"),
        pytest.param(("--major", "-1"), "major version -1 is below 0", id="a major version"),
        pytest.param(("--registry-config", "/gone"), "/gone: the credential file cannot be read", id="no credentials"),
        pytest.param(("--idms-file", "/gone"), "--idms-file: /gone cannot be read", id="no mirrors"),
    ],
)
def test_a_cluster_that_is_described_wrongly(folder: Path, flags: tuple[str, ...], said: str) -> None:
    """The word that nobody knows, and those that are known."""
    done = run("manifests", str(folder), *flags)
    assert (done.code, done.out) == (1, "")
    assert said in done.err
