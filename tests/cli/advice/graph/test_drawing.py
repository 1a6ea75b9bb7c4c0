"""Ways as text, where there is more than one of a sort."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from runup.advice.decide.update_paths import UpdatePaths, UpdateStep
from runup.cli.advice.graph_drawing import render_graph

SVG = "{http://www.w3.org/2000/svg}"


def test_what_is_blocked_is_shown_newest_first() -> None:
    """By version, not by name and not as it was found."""
    blocked = {"4.9.0": ("a.yaml",), "4.11.0": ("b.yaml", "c.yaml"), "4.10.0": ("a.yaml",)}
    text = render_graph(
        UpdatePaths(origin="4.8.0", goal="4.11.0", updates=(), blocked=blocked, way=(), risks={}), "stable-4.11", "text"
    )
    assert text == (
        "4.8.0 in stable-4.11: 0 updates, 0 with known risks, 3 blocked\n"
        "\nBlocked:\n"
        "  VERSION   BLOCKED BY\n"
        "  4.11.0    b.yaml, c.yaml\n"
        "  4.10.0    a.yaml\n"
        "  4.9.0     a.yaml\n"
        "\nNo way leads to 4.11.0 in channel stable-4.11.\n"
    )


def test_whoever_has_the_newest_release_is_told_so() -> None:
    """There is no way to draw, which is not that none leads there."""
    text = render_graph(
        UpdatePaths(origin="4.8.0", goal="4.8.0", updates=(), blocked={}, way=(), risks={}), "stable-4.8", "text"
    )
    assert text.endswith("\n4.8.0 is the newest release there.\n")


def test_a_picture_has_a_column_for_each_minor_version_and_the_newest_on_top() -> None:
    """All of it inside the picture, and a line within a column bends next to it."""
    ways = UpdatePaths(
        origin="4.8.0",
        goal="4.9.0",
        updates=(UpdateStep("4.8.0", "4.8.2"), UpdateStep("4.8.0", "4.9.0", ("Slow",))),
        blocked={},
        way=(),
        risks={},
    )
    picture = ET.fromstring(render_graph(ways, "stable-4.9", "svg"))
    names = [each.text for each in picture.iter(f"{SVG}text")][1:]
    at = {
        name: (int(each.get("cx") or 0), int(each.get("cy") or 0))
        for name, each in zip(names, picture.iter(f"{SVG}circle"), strict=True)
    }
    assert at["4.8.0"][0] == at["4.8.2"][0] < at["4.9.0"][0]
    assert at["4.8.2"][1] == at["4.9.0"][1] < at["4.8.0"][1]
    within, between = (each.get("d", "").split() for each in picture.iter(f"{SVG}path"))
    assert within[1].rpartition("C")[2] != within[5]
    assert (within[0], within[-2:]) == (f"M{at['4.8.0'][0]}", [str(number) for number in at["4.8.2"]])
    assert between[-2:] == [str(number) for number in at["4.9.0"]]
    width, height = (int(picture.get(name) or 0) for name in ("width", "height"))
    # A name is written to the right of its circle.
    assert all(8 <= x <= width - 80 and 8 <= y <= height - 8 for x, y in at.values())
    assert width < 1000
    assert [each.get("font-weight") for each in picture.iter(f"{SVG}text")][1:] == [
        "bold" if name == "4.8.0" else None for name in names
    ]
    shown = [each.text for each in picture.iter(f"{SVG}title")]
    assert shown == ["4.8.0 in stable-4.9", "4.8.0 to 4.8.2: no known risks", "4.8.0 to 4.9.0: Slow"]


def test_the_text_counts_each_update_once() -> None:
    """Draws known risks and blocked edges; an empty graph is reported as such."""
    steps = (UpdateStep("4.8.0", "4.9.0", ("Slow", "Old")), UpdateStep("4.8.0", "4.8.2"), UpdateStep("4.8.0", "4.8.1"))
    text = render_graph(
        UpdatePaths(origin="4.8.0", goal="4.9.0", updates=steps, blocked={}, way=steps[:1], risks={}),
        "stable-4.9",
        "text",
    )
    assert text == (
        "4.8.0 in stable-4.9: 3 updates, 1 with known risks, 0 blocked\n"
        "\nUpdates:\n"
        "  VERSION   RISKS\n"
        "  4.9.0     Slow, Old\n"
        "  4.8.2     -\n"
        "  4.8.1     -\n"
        "\nWay to 4.9.0, 1 update:\n"
        "  4.8.0 -> 4.9.0   risks: Slow, Old\n"
    )
