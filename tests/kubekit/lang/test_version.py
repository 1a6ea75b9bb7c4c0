"""Versions compare as SemVer says; anything else is refused, not guessed."""

from __future__ import annotations

import pytest

from kubekit.lang.version import Version, VersionError, is_minor_or_major, leaves_minor, parse


@pytest.mark.parametrize(
    "text", ["", "v5.2.0", "5.2", "5.02.0", "5.2.0-", "latest", "5.2.0.1", "5.2.0\n", "5.2.0-" + "1" * 5000]
)
def test_what_is_no_version(text: str) -> None:
    """The error quotes the input and shows what a version looks like."""
    with pytest.raises(VersionError, match="is not a semantic version such as"):
        Version(text)
    assert parse(text) is None


def test_order_is_that_of_semver() -> None:
    """Candidates come before the release; numeric parts compare as numbers; build metadata does not count."""
    texts = ["5.0.0-ec.2", "5.0.0-rc.1", "5.0.0-rc.10", "5.0.0", "5.0.1", "5.2.0", "5.10.0", "6.0.0"]
    assert sorted(map(Version, reversed(texts))) == [Version(text) for text in texts]
    assert Version("5.0.0+a") == Version("5.0.0+b")
    assert hash(Version("5.0.0+a")) == hash(Version("5.0.0+b"))


@pytest.mark.parametrize(
    ("current", "target", "expected"),
    [
        ("5.0.1", "5.0.2", False),
        ("5.0.1", "5.1.0", True),
        ("5.9.0", "6.0.0", True),
        ("5.1.0", "5.0.9", False),
        ("5.0.0-rc.1", "5.0.0", False),
    ],
)
def test_minor_or_major(current: str, target: str, expected: bool) -> None:
    """Only a step up of the minor or major version counts."""
    assert is_minor_or_major(Version(current), Version(target)) is expected


@pytest.mark.parametrize(
    ("current", "target", "expected"),
    [
        ("5.0.0", "5.0.9", False),
        ("5.0.0", "5.1.0", True),
        ("5.0.0", "6.0.0", True),
        ("five", "5.0.9", True),
        ("5.0.0", "five", True),
    ],
)
def test_whether_an_update_leaves_the_minor_version(current: str, target: str, expected: bool) -> None:
    """What cannot be read counts as leaving it."""
    assert leaves_minor(current, target) is expected
