"""Tables that fit: at every width straight, whole and not wider than the screen; in a pipe one line a row."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.cli.preflight.render import samples

from runup.cli.clusterversion.check_command import text as check_lines
from runup.cli.preflight.render.explain import Explanation, explanation
from runup.cli.preflight.render.finding_texts import result, risk_table
from runup.cli.release.command import Listed as Manifests
from runup.cli.release.command import as_listing
from runup.cli.render.screen import PIPE, Screen
from runup.cli.render.table import Column, Row, Table, align_lines, draw_table, plain_table, wrap_text
from runup.clusterversion.decide.check_prerequisites import PrerequisiteRow as CheckRow
from runup.clusterversion.decide.check_prerequisites import Result
from runup.preflight.decide.findings import Findings
from runup.release.decide.inclusion import Filters
from runup.release.decide.listing import Row as Listed

WIDTHS = (60, 80, 120, 200)
COLOURS = re.compile("\x1b\\[[0-9;]*m")


def cells(text: str) -> int:
    """How wide a terminal draws `text`, by Unicode's own properties; for the characters of the samples."""
    wide = sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
    return wide - sum(unicodedata.combining(char) > 0 for char in text)


def at(line: str, place: int) -> str:
    """The text from the cell `place` on; fails where that is the middle of a character."""
    for end in range(len(line) + 1):
        if cells(line[:end]) == place and (end == len(line) or not unicodedata.combining(line[end])):
            return line[end:]
    raise AssertionError(f"no character of {line!r} begins at cell {place}")


@pytest.mark.parametrize("wide", [False, True], ids=["usual", "-o wide"])
@pytest.mark.parametrize("width", [20, *WIDTHS])
def test_no_line_is_wider_than_the_screen(width: int, wide: bool) -> None:
    """Whatever the cells hold."""
    text = draw_table(risk_table(samples.RISKS, wide=wide), Screen(width, 24))
    assert max(cells(line) for line in text.splitlines()) <= width


@pytest.mark.parametrize("wide", [False, True], ids=["usual", "-o wide"])
@pytest.mark.parametrize("width", [20, *WIDTHS])
def test_nothing_is_cut_off(width: int, wide: bool) -> None:
    """Every cell is there with every character, in whichever layout; long words may be folded."""
    table = risk_table(samples.RISKS, wide=wide)
    text = draw_table(table, Screen(width, 24))
    kept = sorted("".join(text.split()))
    for row in table.rows:
        for cell in (*row.cells, *row.notes):
            for char in set("".join(cell.split())):
                assert kept.count(char) >= cell.count(char)
    # Below their rows sentences are in one piece, so they can be compared whole.
    if width <= 80:
        flat = "".join(text.split())
        for found in samples.RISKS:
            assert "".join(found.message.split()) in flat


@pytest.mark.parametrize("width", WIDTHS)
def test_columns_are_straight(width: int) -> None:
    """Each cell of a row begins below its title, whatever width the characters before it have."""
    head, *lines = draw_table(risk_table(samples.RISKS), Screen(width, 24)).splitlines()
    titles = [title for title in ("SEVERITY", "STATE", "RISK", "MESSAGE") if title in head]
    places = [cells(head[: head.index(title)]) for title in titles]
    rows = [line for line in lines if not line.startswith(" ")]
    assert len(rows) == len(samples.RISKS)
    for line, found in zip(rows, samples.RISKS, strict=True):
        state = {"True": "applies", "Unknown": "unknown"}[found.applies]
        expected = [found.severity or "-", "accepted" if found.accepted else state, found.name]
        for place, text in zip(places, expected, strict=False):
            assert at(line, place).startswith(text)
        if "MESSAGE" in titles:
            assert at(line, places[3])[:1] == found.message[0]


@pytest.mark.parametrize(
    ("width", "beside"), [(60, False), (80, False), (120, True), (200, True)], ids=lambda value: str(value)
)
def test_messages_stand_where_there_is_room(width: int, beside: bool) -> None:
    """Next to the name on a wide terminal, below it on a narrow one; severity and state come first on both."""
    head = draw_table(risk_table(samples.RISKS), Screen(width, 24)).splitlines()[0]
    assert ("MESSAGE" in head) is beside
    assert head.split()[:3] == ["SEVERITY", "STATE", "RISK"]


@pytest.mark.parametrize("width", WIDTHS)
def test_lines_break_between_words(width: int) -> None:
    """Every word of a sentence is on one line."""
    lines = draw_table(risk_table((samples.DUAL_STACK, samples.PAUSED)), Screen(width, 24)).splitlines()
    for word in (samples.DUAL_STACK.message + samples.PAUSED.message).replace(".", ". ").split():
        assert any(word in line for line in lines), word


def test_a_pipe_has_one_line_a_row() -> None:
    """Not cut, not wrapped, not coloured: severity, state, name, the whole message; grep finds it."""
    lines = plain_table(risk_table((samples.DUAL_STACK, samples.SERVICE, samples.ACCEPTED))).splitlines()
    assert lines == [
        "SEVERITY   STATE      RISK                    MESSAGE",
        "critical   applies    DualStackIncompatible   Cluster uses dual-stack networking configuration incompatible "
        "with 5.2.0.",
        "                                              Fix: Convert clusterNetwork and serviceNetwork to one IP family "
        "before the update.",
        "                                                   See the guide.",
        "-          applies    SlowNodeDrain           Draining is slow.",
        "warning    accepted   NodeCordoned            Node worker-7 is cordoned.",
    ]


def test_a_pipe_is_straight_too() -> None:
    """A reader of the log sees columns."""
    head, *lines = plain_table(risk_table([replace(found, fix="") for found in samples.RISKS])).splitlines()
    place = cells(head[: head.index("MESSAGE")])
    assert [at(line, place) for line in lines] == [found.message for found in samples.RISKS]


def test_a_message_of_several_lines_is_one_in_a_pipe() -> None:
    """So that a program can read line by line."""
    found = replace(samples.SERVICE, message="One.\nTwo.")
    assert "One. Two." in plain_table(risk_table((found,)))
    assert "\nOne.\n" not in plain_table(risk_table((found,)))


@pytest.mark.parametrize("width", WIDTHS)
def test_colour_is_never_the_only_sign(width: int) -> None:
    """Without it the very same text is there."""
    coloured = result(samples.FOUND, Screen(width, 24, colour=True))
    assert COLOURS.search(coloured)
    bare = [line.rstrip() for line in COLOURS.sub("", coloured).splitlines()]
    assert bare == result(samples.FOUND, Screen(width, 24)).splitlines()


@pytest.mark.parametrize("screen", [PIPE, Screen(60, 24), Screen(200, 24)], ids=["a pipe", "narrow", "wide"])
def test_the_summary_comes_first_and_the_cause_before_the_time(screen: Screen) -> None:
    """One sees what it comes to without scrolling, and a line that is cut short loses the time."""
    text = " ".join(result(samples.FOUND, screen).split())
    assert text.startswith(
        "Preflight of 5.2.0 from 5.0.0: 5 risks apply (1 critical, 2 warning, 1 info, 1 of unknown severity), 1 "
        "unknown, 2 accepted; 4 checks done; as of 2026-11-21T07:30:00Z 1. critical: DualStackIncompatible: "
    )
    assert "Verdict: 5 risks apply, 1 unknown, 2 accepted. Fix them" in text


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("found", [samples.FOUND, samples.CLEAR, samples.FAILED, samples.RUNNING])
def test_prose_is_wrapped_too(found: Findings, width: int) -> None:
    """All but the command, which is there to be copied."""
    lines = result(found, Screen(width, 24)).splitlines()
    assert max(cells(line) for line in lines if not line.startswith("  runup upgrade accept")) <= width


def test_what_is_too_long_for_its_line_stays_whole() -> None:
    """A command and an address are there to be copied."""
    command = "runup upgrade accept " + ",".join(found.name for found in samples.RISKS if found.open)
    assert f"  {command}\n" in result(samples.FOUND, Screen(60, 24))
    url = "https://docs.example/" + "a" * 70
    assert f"{url}\n" in wrap_text(f"See {url}", Screen(60, 24), first="  More: ", indent=8)


FIXED = Table(
    columns=(Column(title="TARGET"), Column(title="STATUS"), Column(title="PREFLIGHT")),
    rows=[Row(("5.2.0", "completed", "p" * 30))],
)


def test_columns_without_room_stand_below_with_their_titles() -> None:
    """A table of fixed columns alone, on a terminal that is too narrow for them."""
    assert (
        draw_table(FIXED, Screen(24, 24))
        == f"TARGET  STATUS\n5.2.0   completed\n  Preflight:\n  {'p' * 22}\n  {'p' * 8}\n"
    )
    assert draw_table(FIXED, Screen(60, 24)).splitlines()[0] == "TARGET  STATUS     PREFLIGHT"


@pytest.mark.parametrize(
    ("lines", "how", "text"),
    [
        pytest.param([("a", "b"), ("ccc", "d")], {}, "a     b\nccc   d\n", id="three blanks between columns"),
        pytest.param(
            [("a", "b", "c"), ("long",), ("d", "e", "f")], {}, "a   b   c\nlong\nd   e   f\n", id="a short row"
        ),
        pytest.param([("long",), ("d", "e", "f")], {}, "long\nd   e   f\n", id="a short row that comes first"),
        pytest.param([("a", "b")], {"least": (3,)}, "a     b\n", id="a least width"),
        pytest.param([("a",)], {"least": (3, 9)}, "a\n", id="a row shorter than the heads"),
        pytest.param([("a", "")], {"indent": 2, "gap": 1}, "  a\n", id="indented, without a blank at the end"),
        pytest.param([("a", "b")], {"indent": 2, "gap": 1}, "  a b\n", id="another gap"),
        pytest.param(
            [("データ", "x"), ("a", "y")], {}, "データ   x\na        y\n", id="wide characters take two cells"
        ),
        pytest.param([], {}, "", id="nothing"),
    ],
)
def test_lines_in_a_pipe_are_aligned(lines: list[tuple[str, ...]], how: dict[str, Any], text: str) -> None:
    """By the widest cell that another one follows."""
    assert align_lines(lines, **how) == text


NOTED = Table(
    columns=(Column(title="A"), Column(title="B", least=4)),
    rows=[Row(("x", ""), ("note\nof two lines",))],
    indent=1,
    gap=2,
)


def test_notes_of_a_table_without_sentences_stand_at_its_left() -> None:
    """Each in a line; an empty cell is a dash, so that programs can count fields."""
    assert plain_table(NOTED) == " A  B\n x  -\n note\\nof two lines\n"
    assert plain_table(replace(NOTED, blank="")) == " A  B\n x\n note\\nof two lines\n"
    flowing = Table(columns=(Column(title="A"), Column(title="B", flows=True)), rows=[Row(("x", "y"), ("note",))])
    assert plain_table(flowing) == "A   B\nx   y\n    note\n"
    assert plain_table(Table(columns=(Column(title=""), Column(title="")), rows=[Row(("x", "y"))])) == "x   y\n"
    assert plain_table(Table(columns=(Column(title=""), Column(title="B")), rows=[Row(("x", "y"))])) == "    B\nx   y\n"


def sentence(words: int) -> str:
    """So many words of one letter."""
    return " ".join("w" * words)


def of(*sentences: str) -> Table:
    """A name of ten letters and columns of sentences."""
    columns = [Column(title="NAME"), *(Column(title=f"S{place}", flows=True) for place in range(len(sentences)))]
    return Table(columns=tuple(columns), rows=[Row(("n" * 10, *sentences))])


@pytest.mark.parametrize(
    ("sentences", "least"),
    [
        pytest.param((sentence(50),), 10 + 2 + 36, id="a long sentence needs 36 cells"),
        pytest.param((sentence(5),), 10 + 2 + 9, id="a short one as many as it has"),
        pytest.param((sentence(50), sentence(50)), 10 + 2 + 36 + 2 + 36, id="two long ones"),
        pytest.param((sentence(5), sentence(5)), 10 + 2 + 9 + 2 + 9, id="two short ones"),
        pytest.param((sentence(5), sentence(50)), 10 + 2 + 36 + 2 + 36, id="a short one and a long one share alike"),
    ],
)
def test_how_much_room_a_sentence_needs(sentences: tuple[str, ...], least: int) -> None:
    """With one cell less, the column would be too narrow next to the name, so it is printed below."""
    head = draw_table(of(*sentences), Screen(least, 24)).splitlines()[0].split()
    assert head == ["NAME", *(f"S{place}" for place in range(len(sentences)))]
    assert draw_table(of(*sentences), Screen(least - 1, 24)).splitlines()[0] == "NAME"


def test_what_one_sentence_leaves_over_goes_to_the_last() -> None:
    """The whole width is used: of a hundred cells 10 for the name, 9 for the first, two gaps, 77 for the last."""
    lines = draw_table(of(sentence(5), sentence(60)), Screen(100, 24)).splitlines()
    assert lines[1] == f"{'n' * 10}  {sentence(5)}  {sentence(39)}"
    assert lines[2] == f"{' ' * 23}{sentence(21)}"
    # Each takes no more than its share while the others need theirs: half of what is left of the name.
    lines = draw_table(of(sentence(60), sentence(60)), Screen(100, 24)).splitlines()
    assert lines[1] == f"{'n' * 10}  {sentence(22)}  {sentence(22)}"


@pytest.mark.parametrize(
    ("width", "folds", "text"),
    [
        (28, True, "A           B\naaaaaaaaaa  bbbbbbbbbbbbbbbb\n            bbbb\n"),
        (27, True, "A\naaaaaaaaaa\n  B: bbbbbbbbbbbbbbbbbbbb\n"),
        (31, False, "A\naaaaaaaaaa\n  B: bbbbbbbbbbbbbbbbbbbb\n"),
        (32, False, "A           B\naaaaaaaaaa  bbbbbbbbbbbbbbbbbbbb\n"),
    ],
    ids=["sixteen cells are left: folded", "fifteen: below", "a column that does not fold: below", "there is room"],
)
def test_when_a_name_is_folded(width: int, folds: bool, text: str) -> None:
    """Rather than put below its row, if sixteen cells are left."""
    table = Table(columns=(Column(title="A"), Column(title="B", folds=folds)), rows=[Row(("a" * 10, "b" * 20))])
    assert draw_table(table, Screen(width, 24)) == text


def test_the_first_column_stays_whatever_its_width() -> None:
    """A table without any has no rows."""
    table = Table(columns=(Column(title="A"), Column(title="B")), rows=[Row(("a" * 10, "b"))])
    assert draw_table(table, Screen(6, 24)) == "A\naaaaaa\naaaa\n  B: b\n"


def test_below_a_row_an_empty_cell_says_nothing() -> None:
    """A sentence has no title there, its notes follow it, then come the other columns."""
    table = Table(
        columns=(Column(title="A"), Column(title="S", flows=True), Column(title="B"), Column(title="C")),
        rows=[Row(("a" * 10, "so it is", "b" * 9, ""), ("Fix: do it.",))],
    )
    assert draw_table(table, Screen(15, 24)) == "A\naaaaaaaaaa\n  so it is\n  Fix: do it.\n  B: bbbbbbbbb\n"


def test_a_table_without_titles_has_no_head_on_a_terminal_either() -> None:
    """And is as far in as it is reported."""
    table = Table(columns=(Column(title=""), Column(title="")), rows=[Row(("x", "y"))], indent=3)
    assert draw_table(table, Screen(80, 24)) == "   x  y\n"


def test_colours_are_those_of_the_cells() -> None:
    """A word that has one is drawn in it, titles are bold, everything else is as it is."""
    table = Table(
        columns=(Column(title="S", styles={"bad": "red"}), Column(title="T")),
        rows=[Row(("bad", "bad")), Row(("good", "x"))],
    )
    text = draw_table(table, Screen(80, 24, colour=True))
    assert text.splitlines()[0].count("\x1b[1m") == 2
    assert [each.strip() for each in re.findall("\x1b\\[31m(.*?)\x1b\\[0m", text)] == ["bad"]
    assert COLOURS.sub("", text.splitlines()[2]).split() == ["good", "x"]
    assert not COLOURS.search(text.splitlines()[2])


@pytest.mark.parametrize(
    ("text", "width", "how", "lines"),
    [
        ("aaa bbb", 7, {}, ["aaa bbb"]),
        ("aaa bbb", 6, {}, ["aaa", "bbb"]),
        ("aaa bbb", 10, {"first": "1: "}, ["1: aaa bbb"]),
        ("aaa bbb", 9, {"first": "1: "}, ["1: aaa", "bbb"]),
        ("aaa bbb", 10, {"indent": 4}, ["aaa", "    bbb"]),
        ("one\n\n  two", 80, {"indent": 2}, ["one", "", "    two"]),
        ("äaa bbb", 7, {}, ["äaa bbb"]),
        ("äaa bbb", 6, {}, ["äaa", "bbb"]),
        ("aaa bbb", 2, {"first": "long: "}, ["long: aaa", "bbb"]),
    ],
)
def test_prose_is_wrapped_at_words(text: str, width: int, how: dict[str, Any], lines: list[str]) -> None:
    """At the screen's width, what precedes it included; line ends stay."""
    assert wrap_text(text, Screen(width, 24), **how) == "".join(f"{line}\n" for line in lines)


TEXTS = st.text(alphabet=st.sampled_from("ab -データ🚀e\u0301\n"), max_size=40)


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=5), st.integers(12, 100))
def test_any_table_fits_any_width(rows: list[tuple[str, str, str]], width: int) -> None:
    """The property, with no layout in mind."""
    table = Table(
        columns=(Column(title="A"), Column(title="B", flows=True), Column(title="C", flows=True)),
        rows=[Row(row) for row in rows],
    )
    assert max((cells(line) for line in draw_table(table, Screen(width, 24)).splitlines()), default=0) <= width
    assert len(plain_table(table).splitlines()) == len(rows) + 1


MANY = tuple(
    Listed(
        object=f"ConfigMap openshift-{name}/config",
        file=f"release-manifests/0000_50_{name}.yaml",
        included=False,
        reason="Default is required",
        state="out",
    )
    for name in ("alpha", "beta", "gamma")
)


@pytest.mark.parametrize(
    ("screen", "summary"),
    [(Screen(80, 6), True), (Screen(80, 40), False), (PIPE, False)],
    ids=["longer than the screen", "as long as it fits", "a pipe"],
)
def test_a_list_of_manifests_that_is_longer_than_the_screen(screen: Screen, summary: bool) -> None:
    """How many are in and out comes first, since the rest rushes by; a pipe has rows alone."""
    text = as_listing(Manifests(version="5.2.0", digest="", filters=Filters(), rows=MANY, notes=()), "wide", screen)
    assert text.startswith("Release 5.2.0: 3 manifests and checks, 3 out.\n\n") is summary
    assert all(row.file in text for row in MANY)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_rows_of_check_hang_below_their_state(width: int) -> None:
    """The state first, sentences wrapped next to it, the way out below."""
    rows = (
        CheckRow("server", Result.OK, "https://api.example answers"),
        CheckRow("gate X", Result.PROBLEM, "it is closed for a reason " * 6, "choose a feature set that opens it"),
    )
    lines = check_lines(rows, Screen(width, 24)).splitlines()
    assert max(map(cells, lines)) <= width
    assert lines[0] == "ok       server: https://api.example answers"
    assert lines[1].startswith("problem  gate X: it is closed")
    assert all(line.startswith(" " * 9) for line in lines[2:])
    assert lines[-1] == "         choose a feature set that opens it"
    assert check_lines(rows[:1]) == "ok       server: https://api.example answers\n"


@pytest.mark.parametrize("width", WIDTHS)
def test_one_risk_in_full_is_wrapped(width: int) -> None:
    """Its fields hang below their first line, and so does the page about it; each line is itself."""
    page = "# NodeName\n\nA sentence that goes on and on. " + "It says more than fits. " * 10 + "\n\n    oc get nodes\n"
    found = Explanation("NodeName", (("5.2.0", samples.COMBINING), ("5.3.0", samples.DUAL_STACK)), page)
    lines = explanation(found, Screen(width, 24)).splitlines()
    assert max(cells(line) for line in lines if "https://" not in line) <= width
    assert "    oc get nodes" in lines
    place = next(n for n, line in enumerate(lines) if line.startswith("  Fix:      Convert"))
    after = lines[place + 1 :]
    hanging = after[: next(n for n, line in enumerate(after) if not line.startswith(" " * 12))]
    assert hanging[-1] == " " * 12 + "See the guide."
