"""Versions and pull specs are read as oc's libraries read them, error texts included."""

from __future__ import annotations

from datetime import datetime

import pytest

from kubekit.lang.gotext import quote_go
from kubekit.lang.oc_pull_spec import PullSpec, pull_spec
from kubekit.lang.oc_version import newest_first, parse_as_oc
from kubekit.lang.text import timestamp
from runup.cli.render.text import columns, shorten

D = "sha256:" + "a" * 64

BAD_VERSIONS = {
    "": "Version string empty",
    "4": "No Major.Minor.Patch elements found",
    "4.0": "No Major.Minor.Patch elements found",
    "v4.0.1": 'Invalid character(s) found in major number "v4"',
    "4.x.1": 'Invalid character(s) found in minor number "x"',
    "4.0.1x": 'Invalid character(s) found in patch number "1x"',
    "01.0.0": 'Major number must not contain leading zeroes "01"',
    "1.01.0": 'Minor number must not contain leading zeroes "01"',
    "1.0.01": 'Patch number must not contain leading zeroes "01"',
    ".1.0": 'strconv.ParseUint: parsing "": invalid syntax',
    "1..0": 'strconv.ParseUint: parsing "": invalid syntax',
    "1.0.": 'strconv.ParseUint: parsing "": invalid syntax',
    "1.0.-rc": 'strconv.ParseUint: parsing "": invalid syntax',
    "00.0.0": 'Major number must not contain leading zeroes "00"',
    "1.0.0.0": 'Invalid character(s) found in patch number "0.0"',
    "1.0.0-": "Prerelease is empty",
    "1.0.0-rc.": "Prerelease is empty",
    "1.0.0-rc..1": "Prerelease is empty",
    "1.0.0-+a": "Prerelease is empty",
    "1.0.0-00": 'Numeric PreRelease version must not contain leading zeroes "00"',
    "1.0.0+a..b": "Build meta data is empty",
    "1.0.0+a+b": 'Invalid character(s) found in build meta data "a+b"',
    "1.0.0-rc.01": 'Numeric PreRelease version must not contain leading zeroes "01"',
    "1.0.0-rc_1": 'Invalid character(s) found in prerelease "rc_1"',
    "1.0.0+": "Build meta data is empty",
    "1.0.0+a_b": 'Invalid character(s) found in build meta data "a_b"',
}


@pytest.mark.parametrize(("text", "message"), BAD_VERSIONS.items())
def test_bad_versions(text: str, message: str) -> None:
    """Each mistake has blang/semver's words."""
    with pytest.raises(ValueError) as caught:
        parse_as_oc(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text",
    [
        "4.0.1",
        "4.1.0-nightly-20181104",
        "5.2.0-rc.1+build.7",
        "0.0.0",
        "1.0.0-0",
        "1.0.0-0a",
        "1.0.0-01a",
        "1.0.0+001",
        "1.0.0+a-b",
    ],
)
def test_good_versions(text: str) -> None:
    """Accepts the pull specs that oc accepts."""
    assert str(parse_as_oc(text)) == text


def test_order_of_versions() -> None:
    """Descending; a pre-release below its release; what is no version last, in descending text order."""
    order = newest_first(["a", "4.9.0", "4.10.0", "b", "4.10.0-rc.1"], str)
    assert order == ["4.10.0", "4.10.0-rc.1", "4.9.0", "b", "a"]


@pytest.mark.parametrize(
    "ascending",
    [
        ["", "4", "4.0.0-", "4.9.0", "4.9.1", "4.10.0", "10.0.0"],
        ["1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11",
         "1.0.0-rc.1", "1.0.0"],
        ["1.0.0-2", "1.0.0-10", "1.0.0-a", "1.0.0"],
    ],
    ids=["what is none comes first", "the example of SemVer 2.0.0, section 11", "numbers before words"],
)  # fmt: skip
def test_precedence(ascending: list[str]) -> None:
    """Whatever the order in which they come."""
    assert newest_first(ascending[::-1], str) == ascending[::-1]
    assert newest_first(ascending, str) == ascending[::-1]


def test_build_metadata_does_not_count() -> None:
    """Two builds of one version are as new as each other."""
    assert parse_as_oc("1.0.0+a") == parse_as_oc("1.0.0+b") == parse_as_oc("1.0.0")
    assert parse_as_oc("1.0.0-rc.1+a-b") == parse_as_oc("1.0.0-rc.1")


PULL_SPECS = {
    f"quay.io/ocp/release@{D}": PullSpec(registry="quay.io", namespace="ocp", name="release", tag="", digest=D),
    "quay.io/ocp/release:4.0": PullSpec(registry="quay.io", namespace="ocp", name="release", tag="4.0", digest=""),
    "localhost:5000/release:x": PullSpec(registry="localhost:5000", namespace="", name="release", tag="x", digest=""),
    "ocp/release:x": PullSpec(registry="", namespace="ocp", name="release", tag="x", digest=""),
    "4.0.1": PullSpec(registry="4.0.1", namespace="", name="", tag="", digest=""),
    "release:x": PullSpec(registry="", namespace="", name="release", tag="x", digest=""),
    "release": PullSpec(registry="", namespace="", name="release", tag="", digest=""),
    "localhost": PullSpec(registry="localhost", namespace="", name="", tag="", digest=""),
    "localhosts/ocp/x": PullSpec(registry="", namespace="localhosts/ocp", name="x", tag="", digest=""),
    "localhost/x": PullSpec(registry="localhost", namespace="", name="x", tag="", digest=""),
    "a.b/x": PullSpec(registry="a.b", namespace="", name="x", tag="", digest=""),
    "a:1/x": PullSpec(registry="a:1", namespace="", name="x", tag="", digest=""),
    "a.b/c/d/e:t": PullSpec(registry="a.b", namespace="c/d", name="e", tag="t", digest=""),
    f"a.b/c:t@{D}": PullSpec(registry="a.b", namespace="", name="c", tag="t", digest=D),
    f"c@sha512:{'0' * 128}": PullSpec(registry="", namespace="", name="c", tag="", digest=f"sha512:{'0' * 128}"),
    f"c@sha384:{'0' * 96}": PullSpec(registry="", namespace="", name="c", tag="", digest=f"sha384:{'0' * 96}"),
}


@pytest.mark.parametrize(("text", "spec"), PULL_SPECS.items())
def test_pull_specs(text: str, spec: PullSpec) -> None:
    """A bare word with a dot counts as a registry, as in openshift/library-go."""
    assert pull_spec(text) == spec


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b", "invalid reference format"),
        ("quay.io/OCP/release@sha256:1", "invalid reference format"),
        ("ocp/Release:x", "repository name must be lowercase"),
        ("a.b/" + "c" * 252, "repository name must not be more than 255 characters"),
        (f"quay.io/r@{D}0", "invalid checksum digest length"),
        ("quay.io/r@md4:" + "a" * 32, "unsupported digest algorithm"),
        ("", "repository name must have at least one component"),
        (f"quay.io/r@{D[:-1]}", "invalid checksum digest length"),
        ("quay.io/r@sha256:" + "A" * 64, "invalid checksum digest format"),
        ("quay.io/r@sha256:" + "a" * 31, "invalid reference format"),
        ("r:" + "t" * 129, "invalid reference format"),
        ("R", "repository name must be lowercase"),
    ],
)
def test_bad_pull_specs(text: str, message: str) -> None:
    """The words of distribution/reference."""
    with pytest.raises(ValueError) as caught:
        pull_spec(text)
    assert str(caught.value) == message


def test_columns_as_tabwriter_aligns_them() -> None:
    """minwidth 14, padding 1: a short first column still ends at 14; a row without tabs starts a new block."""
    rows = [("  VERSION", "IMAGE"), ("  4.14.11", "x"), ("alone",), ("  4.14.11-a-long-one", "y")]
    assert columns(rows, minwidth=14, padding=1) == (
        "  VERSION     IMAGE\n  4.14.11     x\nalone\n  4.14.11-a-long-one y\n"
    )


def test_an_empty_column_takes_its_padding() -> None:
    """Table A: minwidth 0, padding 3."""
    assert columns([("a", "", "b"), ("cc", "", "d")]) == "a       b\ncc      d\n"


def test_go_quoting() -> None:
    """`%q`: escapes for control characters, printable Unicode as it is."""
    assert quote_go('a"b\\\n\x01é\u200b') == '"a\\"b\\\\\\n\\x01é\\u200b"'


def test_shortened_at_a_word() -> None:
    """A long line is cut between words, a short one is left alone."""
    assert shorten("one two three four", 12) == "one two…"
    assert shorten("one two\nthree", 12) == "one two"


def test_times_are_told_in_utc() -> None:
    """With the Z that says so, whatever zone they came in."""
    assert timestamp(datetime.fromisoformat("2026-01-14T12:30:00+02:30")) == "2026-01-14T10:00:00Z"


def test_a_name_of_255_characters_is_taken() -> None:
    """As distribution has it (reference.NameTotalLengthMax)."""
    assert pull_spec("a.b/ns/" + "c" * 248 + ":t").name == "c" * 248
