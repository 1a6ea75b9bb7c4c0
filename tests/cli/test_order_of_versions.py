"""The order of any versions: the commands have one of their own, and the operator has a library's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubekit.lang.oc_version import newest_first
from kubekit.lang.version import Version

_NUMBER = st.integers(0, 30).map(str)
_PIECE = st.one_of(_NUMBER, st.from_regex(r"[a-z-][0-9a-z-]{0,3}", fullmatch=True))
_PRERELEASE = st.one_of(st.just(""), st.lists(_PIECE, min_size=1, max_size=3).map(lambda found: f"-{'.'.join(found)}"))
_VERSIONS = st.tuples(_NUMBER, _NUMBER, _NUMBER, _PRERELEASE).map(lambda part: f"{'.'.join(part[:3])}{part[3]}")


@given(st.lists(_VERSIONS, max_size=8))
def test_versions_are_ordered_as_the_operator_orders_them(found: list[str]) -> None:
    """The command's own order is that of the library."""
    ours = newest_first(found, lambda version: version)
    theirs = sorted(map(Version, found), reverse=True)
    assert [Version(text) for text in ours] == theirs
