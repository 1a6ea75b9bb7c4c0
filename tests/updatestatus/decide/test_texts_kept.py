"""Texts of a cluster that has room for them stay whole."""

from __future__ import annotations

import pytest
from tests.updatestatus.decide import builders as b

from kubekit.api import codec
from runup.updatestatus.decide.assess import assess


@pytest.mark.parametrize(
    ("length", "max_bytes", "whole"),
    [
        pytest.param(2048, 256 * 1024, True, id="short"),
        pytest.param(2049, 256 * 1024, True, id="longer than is kept where there is little room"),
        pytest.param(32768, 256 * 1024, True, id="as long as may be"),
        pytest.param(32769, 256 * 1024, False, id="one longer"),
        pytest.param(32769, None, True, id="room without end"),
    ],
)
def test_how_much_of_a_text_is_kept(length: int, max_bytes: int | None, whole: bool) -> None:
    """All of it, unless it is very long or the object would be."""
    degraded = b.operator(degraded=b.cond("Degraded", "True", "R", "m" * length))
    status = assess(b.snapshot(cluster_operators=(degraded,), nodes=()), None, b.NOW, max_bytes=max_bytes)
    made = codec.encode(status).decode()
    assert ("m" * length in made) is whole
    assert max_bytes is None or len(made) <= max_bytes


@pytest.mark.parametrize("lacking", [0, 1], ids=["just room", "a byte too little"])
def test_to_the_byte(lacking: int) -> None:
    """Texts that fit are kept, up to the last byte."""
    snapshot = b.snapshot(cluster_operators=(b.operator(degraded=b.cond("Degraded", "True", "R", "m" * 3000)),))
    whole = assess(snapshot, None, b.NOW, max_bytes=None)
    found = assess(snapshot, None, b.NOW, max_bytes=len(codec.encode(whole)) - lacking)
    assert (found == whole) is (not lacking)
    assert len(codec.encode(found)) <= len(codec.encode(whole)) - lacking
