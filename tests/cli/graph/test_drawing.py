"""Ways as text, where there is more than one of a sort."""

from __future__ import annotations

from runup.cli.graph.drawing import drawn
from runup.domain.updates.ways import Ways


def test_what_is_blocked_is_shown_newest_first() -> None:
    """By version, not by name and not as it was found."""
    blocked = {"4.9.0": ("a.yaml",), "4.11.0": ("b.yaml", "c.yaml"), "4.10.0": ("a.yaml",)}
    text = drawn(Ways("4.8.0", "4.11.0", (), blocked, (), {}), "stable-4.11", "text")
    assert text == (
        "4.8.0 in stable-4.11: 0 updates, 0 with known risks, 3 blocked\n"
        "\nBlocked:\n"
        "  VERSION   BLOCKED BY\n"
        "  4.11.0    b.yaml, c.yaml\n"
        "  4.10.0    a.yaml\n"
        "  4.9.0     a.yaml\n"
        "\nNo way leads to 4.11.0.\n"
    )
