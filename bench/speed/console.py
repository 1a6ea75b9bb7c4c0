"""How long the console's page of many clusters takes: to render, and in Chromium, if it is installed, to lay out.

Each cluster has a third of 36 risks of all severities and states, and two labels. The aim is 2 s for 1,000 clusters.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kubekit.api.meta_v1 import Condition
from runup.cli.console.pages import ConsolePages
from runup.cli.console.render.frame import CSS
from runup.console.decide.board import Board, BoardEntry, Evaluation
from runup.fleet.decide.members import Member
from runup.preflight.decide.findings import Findings, Risk
from runup.preflight.decide.preflight_conditions import COMPLETED

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
SEVERITIES = ("critical", "warning", "info")
RISKS = 36
DONE = Condition(type=COMPLETED, status="True", reason="RisksFound")


def board(clusters: int) -> Board:
    """Returns a board of so many evaluated clusters."""
    entries = {}
    for number in range(clusters):
        name = f"cluster-{number:04}"
        risks = tuple(
            Risk(
                name=f"RiskNumber{place}",
                applies="Unknown" if (number + place) % 7 == 0 else "True",
                accepted=(number * place) % 11 == 5,
                message=f"Object {place} of {name} must be changed.",
                url="",
                severity=SEVERITIES[place % 3],
            )
            for place in range(number % 3, RISKS, 3)
        )
        findings = Findings(source="4.15.0", target="4.16.0", observed=NOW, conditions=(DONE,), risks=risks)
        labels = {"env": ("production", "test")[number % 2], "region": f"r{number % 5}"}
        member = Member(name=name, context=name, labels=labels)
        entries[name] = BoardEntry(member=member, evaluated=Evaluation(findings=findings), at=NOW)
    return Board(entries, 1)


def run(boarded: int = 1000) -> dict[str, Any]:
    """Renders the page as it is first seen, and filtered and grouped."""
    pages, many = ConsolePages(max_age=timedelta(hours=24)), board(boarded)
    figures: dict[str, Any] = {"clusters": boarded}
    for name, query in (("whole", {}), ("filtered", {"severity": "critical", "group": "env", "text": "cluster-01"})):
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            page = pages.fleet(many, NOW, query)
            times.append(time.perf_counter() - begin)
        figures[name] = {"renderS": round(min(times), 2), "kib": len(page.encode()) // 1024}
        if shutil.which("chromium"):
            figures[name] |= _in_browser(page)
    return figures


def _in_browser(page: str) -> dict[str, float]:
    """Returns how much longer Chromium takes for a picture of the page than for one of an empty page."""
    from tests.browser import browser

    taken = []
    with tempfile.TemporaryDirectory() as folder:
        for html in ("<!doctype html><title>empty</title>", re.sub(r"<link [^>]*>", f"<style>{CSS}</style>", page)):
            file = Path(folder) / "page.html"
            file.write_text(html)
            times = []
            for _ in range(3):
                begin = time.perf_counter()
                browser.run(f"--screenshot={folder}/page.png", "--window-size=1440,1000", file.as_uri())
                times.append(time.perf_counter() - begin)
            taken.append(min(times))
    return {"drawnS": round(taken[1] - taken[0], 2)}
