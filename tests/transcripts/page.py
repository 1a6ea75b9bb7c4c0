"""The page `docs/reference/what-it-looks-like.md`: real commands on real terminals of three widths, and in a pipe.

Each is typed on a pseudo-terminal of that size; what came is the transcript. So the page shows what is, and the test
next to this file fails when it no longer does.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
from tests.servers import Server
from tests.transcripts import stage

from runup.cli.clusterversion.wait_progress import changed_lines, region
from runup.cli.render.screen import Screen
from runup.clusterversion.control.upgrade_wait import Progress, risks_so_far
from runup.preflight.decide.findings import findings_of_target
from runup.preflight.decide.stored_reports import History

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "what-it-looks-like.md"
WIDTHS = (60, 80, 200)
HEIGHT = 50
COMMANDS = ("preflight show", "preflight history", "preflight compare 5.1.0 5.2.0")
HEAD = """\
# What it looks like

Every command below was typed on a terminal as wide as the heading says; the page is written by
`python -m tests.transcripts`, and a test says when it is no longer true. On a terminal with colours severities have one
too; it is never the only sign. `NO_COLOR` and a dumb terminal have none. What is beside its row on a wide terminal
stands below it on a narrow one; nothing is cut off. A command to be copied is never broken: the terminal folds it.

A page to send is made by `-o html`: of a preflight (`runup upgrade --mode=preflight --to=5.2.0 --wait -o html`, `runup
preflight show -o html`) and of an update (`runup upgrade status -o html`). Times are UTC everywhere, and say so.
"""
READING = "Preflight of 5.2.0 from 5.0.0: reading the cluster: 5 of 8 kinds, not yet nodes, pods."
CHECKING = "Preflight of 5.2.0 from 5.0.0: 4 of 6 checks done, 2 risks apply."


def page(server: Server) -> str:
    """The whole page, of the cluster that `server` has."""
    return "".join(_parts(server))


def _parts(server: Server) -> Iterator[str]:
    yield HEAD
    for width in WIDTHS:
        yield f"\n## {width} columns\n"
        for command in COMMANDS:
            yield _block(command, typed(server, width, *command.split()))
        yield f"\nWhile `--wait` waits, in place:\n\n```text\n{_live(width)}```\n"
    yield "\n## With everything that is known\n"
    wide = "preflight show -o wide"
    yield _block(wide, typed(server, 200, *wide.split()))
    yield "\n## In a pipe\n"
    yield _block("preflight show | cat", piped(server, "preflight", "show"))
    yield f"\nWhile `--wait` waits, a line a change:\n\n```text\n{_lines()}```\n"


def _block(command: str, said: str) -> str:
    return f"\n```console\n$ runup {command}\n{said.strip()}\n```\n"


def typed(server: Server, width: int, *words: str) -> str:
    """What a terminal `width` columns wide got."""
    child = pexpect.spawn(
        sys.executable,
        ["-m", "runup", *words],
        env=stage.environment(server),
        encoding="utf-8",
        timeout=90,
        dimensions=(HEIGHT, width),
    )
    said: str = child.read()
    child.close()
    return said.replace("\r\n", "\n")


def piped(server: Server, *words: str) -> str:
    """What a pipe got."""
    command = [sys.executable, "-m", "runup", *words]
    done = subprocess.run(
        command, env=stage.environment(server), capture_output=True, text=True, check=False, timeout=90
    )
    return done.stdout + done.stderr


def _steps() -> tuple[Progress, Progress]:
    found = findings_of_target(stage.cluster(), History(), "5.2.0")
    return Progress(READING), Progress(CHECKING, risks_so_far(found)[:2])


def _live(width: int) -> str:
    return region(_steps()[1], Screen(width, HEIGHT))


def _lines() -> str:
    before, after = _steps()
    return "".join(f"{line}\n" for line in (*changed_lines(None, before), *changed_lines(before, after)))
