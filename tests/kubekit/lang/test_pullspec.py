"""Whether two pull specs name one image."""

from __future__ import annotations

import pytest

from kubekit.lang.oc_pull_spec import is_same_image


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        pytest.param("a/b@sha256:1", "a/b@sha256:1", True, id="word for word"),
        pytest.param("a/b@sha256:1", "mirror/b@sha256:1", True, id="from a mirror"),
        pytest.param("a/b:1@sha256:1", "a/b@sha256:1", True, id="with a tag besides"),
        pytest.param("a/b@sha256:1", "a/b@sha256:2", False, id="a later digest"),
        pytest.param("a/b@sha256:2", "a/b@sha256:1", False, id="an earlier digest"),
        pytest.param("a/b:1", "a/b:1", True, id="one tag"),
        pytest.param("a/b:1", "c/b:1", False, id="one tag of two"),
        pytest.param("a/b:1", "a/b:2", False, id="two tags"),
        pytest.param("a/b@sha256:1", "a/b:1", False, id="a digest and a tag"),
        pytest.param("a/b@", "c/b@", False, id="no digest behind the sign for it"),
        pytest.param("", "", False, id="none"),
        pytest.param("", "a/b@", False, id="none, and no digest"),
    ],
)
def test_two_pull_specs_of_one_image(one: str, other: str, same: bool) -> None:
    """By digest, wherever it was pulled from; whichever comes first."""
    assert (is_same_image(one, other), is_same_image(other, one)) == (same, same)
