"""The small parts of pages, kernel modules as a table, and a preflight's page at the numbers at which it changes."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from msgspec.structs import replace
from tests.cli.preflight.render import samples
from tests.cli.render.reading import read

from runup import __version__
from runup.cli.kernelmodules import command as kmod
from runup.cli.preflight.render.preflight_page import page
from runup.cli.render.html.document import document
from runup.cli.render.html.markup import age, badge, bar, el, facts, grid, join, link, minute_text, text
from runup.kernelmodules.decide.readiness import Readiness, Status
from runup.preflight.decide.findings import Findings, Risk
from runup.preflight.decide.preflight_state import Phase
from runup.report.report import ReportedCheck, ReportedResource


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-1, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (3659, "1 h"),
        (3660, "1 h 1 min"),
        (86399, "23 h 59 min"),
        (86400, "1 d"),
        (86400 + 3599, "1 d"),
        (86400 + 3600, "1 d 1 h"),
        (10 * 86400 + 23 * 3600, "10 d 23 h"),
    ],
)
def test_lengths_of_time(seconds: float, said: str) -> None:
    """Two units at most, and none that is nothing."""
    assert age(timedelta(seconds=seconds)) == said


def test_parts_as_they_are_written() -> None:
    """Each is one element; what has no value is left out."""
    assert badge("Bad & ugly", "bad") == '<span class="badge bad">Bad &amp; ugly</span>'
    assert bar((("good", 1), ("bad", 0), ("warn", 2)), 3, "1 of 3") == (
        '<div class="bar" role="img" aria-label="1 of 3"><i class="fill-good" style="width:33.33%"></i>'
        '<i class="fill-warn" style="width:66.67%"></i></div>'
    )
    assert facts((("a", "b"), ("c", ""), ("d", None))) == '<dl class="facts"><div><dt>a</dt><dd>b</dd></div></dl>'
    assert grid("of", ("H",), (el("tr"),)) == (
        '<div class="scroll" tabindex="0" role="region" aria-label="of"><table><caption>of</caption>'
        '<thead><tr><th scope="col">H</th></tr></thead><tbody><tr></tr></tbody></table></div>'
    )
    assert minute_text(datetime(2026, 1, 14, 12, 30, 59, tzinfo=timezone(timedelta(hours=2)))) == "2026-01-14 10:30 UTC"
    assert minute_text(datetime(1, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=2)))).endswith("01-01 00:30 UTC")


def test_markup_as_it_is_written() -> None:
    """Text once, attributes by their names, what is nothing not at all."""
    assert el("br", id=None, class_="x", http_equiv="y") == '<br class="x" http-equiv="y">'
    assert join("a", None, el("i", None, "<"), "b") == "a<i>&lt;</i>b"
    assert text(text("<\x1b")) == "&lt;\\x1b"
    assert link("https://x.example/?a&b", "<x>") == (
        '<a href="https://x.example/?a&amp;b" rel="noreferrer noopener">&lt;x&gt;</a>'
    )
    assert link("ftp://x", "label") == "ftp://x"


def test_the_frame_of_a_page() -> None:
    """Whose it is and of when on top, and by what it was made."""
    now = datetime(2026, 1, 14, 10, tzinfo=UTC)
    named = read(document("Title", el("p", "body"), now=now, cluster="prod")).text
    foot = f"body All times are UTC. Made by runup {__version__}."
    assert named == f"Title: prod Cluster prod As of 2026-01-14 10:00 UTC {foot}"
    assert read(document("Title", el("p", "body"), now=now)).text == f"Title As of 2026-01-14 10:00 UTC {foot}"
    assert document("Title", now=now).startswith('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">')
    assert document("Title", now=now).endswith("</html>\n")


def ready(name: str, status: Status, **changes: str) -> Readiness:
    """Whether a Module will load."""
    seen = {"namespace": "ns", "kernel": "5.14", "architecture": "arm64", "image": "q/i:1", "stage": "Image"}
    return Readiness(name=name, status=status, reason=f"why {name}", **{**seen, **changes})  # type: ignore[arg-type]


MODULES = (
    ready("a", Status.TRUE),
    ready("b", Status.FALSE, namespace=""),
    ready("c", Status.UNKNOWN, kernel=""),
    ready("d", Status.TRUE),
)


def test_kernel_modules_are_a_table() -> None:
    """With the namespace where there is one, and the architecture where the kernel is not known."""
    assert kmod.table(MODULES).split("\n\n") == [
        "MODULE   KERNEL            STAGE   VERIFIED   REASON\n"
        "ns/a     5.14              Image   True       why a\n"
        "b        5.14              Image   False      why b\n"
        "ns/c     unknown (arm64)   Image   Unknown    why c\n"
        "ns/d     5.14              Image   True       why d",
        "2 of 4 verified, 1 will not load, 1 not known.\n",
    ]
    assert kmod.table(MODULES[:1], wide=True).splitlines()[1].split()[-3:] == ["q/i:1", "why", "a"]
    assert kmod.summary(MODULES[:1]) == "\n1 of 1 verified.\n"
    assert kmod.summary(MODULES[1:2]) == "\n0 of 1 verified, 1 will not load.\n"
    assert kmod.table(()) == "No Modules load a kernel module here.\n"


def test_kernel_modules_for_programs() -> None:
    """In the words of a PreflightValidation."""
    seen = kmod.as_data(MODULES[2:3], ["note"])
    assert seen["notes"] == ["note"]
    assert seen["modules"] == [
        {
            "namespace": "ns",
            "name": "c",
            "kernelVersion": "",
            "architecture": "arm64",
            "image": "q/i:1",
            "verificationStage": "Image",
            "verificationStatus": "Unknown",
            "statusReason": "why c",
        }
    ]


def shown(*risks: Risk, **changes: object) -> str:
    """The page of a preflight that is complete."""
    found = Findings(source="5.0.0", target="5.2.0", risks=risks, conditions=samples.conditions())
    return page(replace(found, **changes), samples.WHEN)


A = samples.risk("A", "It is so.")


def of_nodes(count: int) -> Risk:
    """A risk about so many."""
    return replace(A, resources=tuple(ReportedResource(kind="Node", name=f"n{place}") for place in range(count)))


@pytest.mark.parametrize(("count", "more"), [(20, []), (21, ["and 1 more"]), (24, ["and 4 more"])])
def test_twenty_objects_are_listed(count: int, more: list[str]) -> None:
    """The others are counted."""
    items = re.findall(r"<li>(.*?)</li>", shown(of_nodes(count)))
    assert items == [*(f"Node n{place}" for place in range(20)), *more]
    assert "Evidence" not in shown(A)


@pytest.mark.parametrize(("count", "long"), [(6, ""), (7, " long")])
def test_a_long_card_may_go_over_to_the_next_page(count: int, long: str) -> None:
    """On paper, from seven objects on."""
    assert f'<article class="card issue warn{long}">' in shown(of_nodes(count))


def test_the_head_of_a_preflights_page() -> None:
    """No line of what is not known."""
    text_ = read(shown()).text
    assert "Nothing in the way Verdict: nothing blocks an update to 5.2.0. All times" in text_
    checks = (ReportedCheck(name="a", result="Clear"), ReportedCheck(name="b", result="Applies"))
    text_ = read(shown(A, checks=checks, observed=samples.WHEN, image="q/i")).text
    assert "In the way 1 warning Checks 2 done Checked 2026-11-21 07:30 UTC Release image: q/i" in text_
    skipped = (*checks, ReportedCheck(name="c", result="Skipped"))
    assert "Checks 2 done, 1 not for this update" in read(shown(checks=skipped)).text
    assert "5.0.0 Ended Verdict: this preflight has ended" in read(shown(A, phase=Phase.ENDED)).text


def test_a_card_of_a_risk() -> None:
    """Shows the risk and its state; an accepted risk shows its reason, in the colour of no action."""
    bare = Risk(name="A", applies="True", accepted=False, message="m", url="")
    assert (
        "A applies m Found by the update service or the cluster Accept it runup upgrade accept A"
        in read(shown(bare)).text
    )
    taken = replace(A, accepted=True, because="CHG-1", fix=" Do it.\n")
    html = shown(taken, replace(taken, name="Over", applies="False"))
    assert '<article class="card issue idle">' in html
    seen = read(html).text
    assert (
        "Accepted (1) A accepted warning It is so. Why accepted CHG-1 Remedy Do it. Found by the preflight, "
        "PreflightValidation, since 2026-11-21 07:30 UTC Read on https://docs.example/checks/A" in seen
    )
    assert "Accept it" not in seen
    unsaid = read(shown(replace(taken, because="", severity=""))).text
    assert (
        "A accepted It is so. Why accepted No reason was recorded. Give one: runup upgrade accept A --reason TEXT"
        in unsaid
    )


def test_checks_are_in_the_order_of_what_they_came_to() -> None:
    """And of their names; each with its component."""
    rows = (("z", "Clear"), ("y", "Skipped"), ("x", "Unknown"), ("b", "Applies"), ("a", "Applies"), ("w", "Clear"))
    checks = tuple(ReportedCheck(name=name, result=result, component=f"of-{name}") for name, result in rows)  # type: ignore[arg-type]
    html = shown(checks=checks)
    assert re.findall(r'<th scope="row">(.*?)</th>', html) == ["a", "b", "x", "w", "z", "y"]
    assert re.findall(r'class="badge (\w+)">(?:Applies|Unknown|Clear|Skipped)<', html) == [
        "bad", "bad", "warn", "good", "good", "idle",
    ]  # fmt: skip
    assert "Checks (6)" in read(html).text
    assert "of-x" in html
