"""What `--wait` shows while it waits: a line a change in a pipe, a region on a terminal; what hinders the looking."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pexpect
import pytest
from msgspec.structs import replace
from rich.cells import cell_len
from tests.cli.commands import Server, cluster, eventually
from tests.cli.preflight.render import samples

from kubekit.api.meta_v1 import Status
from kubekit.error_types import InputError
from kubekit.kube.api_errors import Gone, Unreachable
from kubekit.kube.clock import ManualClock
from kubekit.kube.request import Request
from runup.advice.decide.preflight_reasons import IN_PROGRESS
from runup.cli.clusterversion import actions
from runup.cli.clusterversion.actions import UpgradeRequest as Asked
from runup.cli.clusterversion.wait_progress import LEAVE, changed_lines, region
from runup.cli.render.screen import Screen
from runup.clusterversion.control.upgrade_wait import Progress, risks_so_far
from runup.clusterversion.decide.upgrade_target import Flags
from runup.preflight.decide.findings import Risk

READING = "Preflight of 5.2.0 from 5.0.0: reading the cluster: 5 of 8 kinds, not yet nodes."
CHECKING = "Preflight of 5.2.0 from 5.0.0: 4 of 7 checks done, 1 risk applies."
AWAY = "The API server does not answer: refused."
ROWS: dict[str, tuple[Progress | None, Progress, list[str]]] = {
    "at first": (None, Progress(READING), [READING]),
    "nothing new": (Progress(READING), Progress(READING), []),
    "checks done, and a risk": (
        Progress(READING),
        Progress(CHECKING, (samples.DUAL_STACK,)),
        [CHECKING, f"found: DualStackIncompatible: {samples.DUAL_STACK.message}"],
    ),
    "one that could not be told": (
        Progress(CHECKING),
        Progress(CHECKING, (samples.COMBINING,)),
        [f"found: {samples.COMBINING.name} (unknown): {samples.COMBINING.message}"],
    ),
    "a risk that was told before": (
        Progress(CHECKING, (samples.DUAL_STACK,)),
        Progress(CHECKING, (samples.DUAL_STACK,)),
        [],
    ),
    "the server goes away": (Progress(CHECKING), Progress(CHECKING, trouble=AWAY), [AWAY]),
    "it stays away": (Progress(CHECKING, trouble=AWAY), Progress(CHECKING, trouble=AWAY), []),
    "it is back and nothing changed": (
        Progress(CHECKING, trouble=AWAY),
        Progress(CHECKING),
        ["The API server answers again."],
    ),
    "it is back with news": (
        Progress(READING, trouble=AWAY),
        Progress(CHECKING),
        ["The API server answers again.", CHECKING],
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_what_a_pipe_is_told(name: str) -> None:
    """One line for each thing that is other."""
    before, after, lines = ROWS[name]
    assert list(changed_lines(before, after)) == lines


@pytest.mark.parametrize("width", [20, 60, 80, 200])
def test_the_region_fits(width: int) -> None:
    """Shows progress first, then the risks that fit, and the hint how to leave last."""
    many = tuple(replace(samples.SERVICE, name=f"Risk{number}") for number in range(100))
    text = region(Progress(CHECKING, many, AWAY), Screen(width, 24))
    lines = text.splitlines()
    assert max(map(cell_len, lines)) <= width
    assert width == 20 or len(lines) < 24
    flat = " ".join(text.split())
    assert flat.startswith(f"{CHECKING} {AWAY} Found so far:")
    assert flat.endswith(LEAVE)
    assert "Risk0" in flat
    assert "more" in flat


@pytest.mark.parametrize(
    ("height", "risks", "names", "more"),
    [
        pytest.param(24, 3, 0, "", id="more room than lines"),
        pytest.param(24, 15, 0, "", id="as many lines as there is room for"),
        pytest.param(24, 16, 15, "  and 1 more", id="one line more"),
        pytest.param(None, 15, 0, "", id="a screen that does not say how high it is has 24"),
        pytest.param(None, 16, 15, "  and 1 more", id="and no more"),
        pytest.param(5, 2, 0, "", id="the least room that there is"),
        pytest.param(5, 9, 2, "  and 7 more", id="and no less"),
    ],
)
def test_how_many_risks_a_screen_has_room_for(height: int | None, risks: int, names: int, more: str) -> None:
    """A table while it fits, then names alone, and how many are left."""
    found = tuple(replace(samples.SERVICE, name=f"Risk{number:02}", message="m") for number in range(risks))
    text = region(Progress(CHECKING, found), Screen(200, height))
    below = text.partition("Found so far:\n")[2].partition("\n\n")[0].lstrip("\n").splitlines()
    if not more:
        assert below[0].split() == ["STATE", "RISK", "MESSAGE"]
        assert len(below) == risks + 1
        return
    assert below == [*(f"  Risk{number:02}" for number in range(names)), more]


def test_a_region_without_risks_says_nothing_of_any() -> None:
    """Before anything was evaluated."""
    assert region(Progress(READING), Screen(200, 24)) == f"{READING}\n\n{LEAVE}\n"


STANDING_IN = replace(samples.PAUSED, name=IN_PROGRESS, applies="Unknown")
ENDED = replace(samples.PAUSED, reason="PreflightOutdated")
CLEAR = replace(samples.PAUSED, applies="False")


@pytest.mark.parametrize(
    ("risk", "shown"),
    [
        pytest.param(samples.PAUSED, True, id="found"),
        pytest.param(samples.COMBINING, True, id="could not be told"),
        pytest.param(samples.SERVICE, False, id="the update service's: known before"),
        pytest.param(STANDING_IN, False, id="stands for what is not known yet"),
        pytest.param(ENDED, False, id="an earlier preflight's"),
        pytest.param(CLEAR, False, id="does not apply"),
    ],
)
def test_what_counts_as_found(risk: Risk, shown: bool) -> None:
    """Only what this preflight found by now."""
    assert bool(risks_so_far(replace(samples.RUNNING, risks=(risk,)))) is shown


REFUSED = Unreachable("https://x", "x:1", "connection refused", refused=True)
VERSION = {
    "metadata": {"name": "version", "resourceVersion": "7", "generation": 2},
    "spec": {"desiredUpdate": {"mode": "Preflight", "version": "5.2.0"}},
}


def running(message: str, completed: str = "False") -> Any:
    """The ClusterVersion while its preflight runs."""
    states = (("PreflightRunning", "True"), ("PreflightCompleted", completed), ("PreflightFailed", "False"))
    rows = [
        {
            "type": type_,
            "status": status,
            "reason": "R",
            "message": message,
            "lastTransitionTime": "2026-01-14T09:30:00Z",
        }
        for type_, status in states
    ]
    return cluster({**VERSION, "status": {"observedGeneration": 2, "conditions": rows}})


class Away:
    """A client whose every watch is the next of `steps`: an error, or objects."""

    def __init__(self, steps: list[Any]) -> None:
        self._steps = steps

    def watch(self, kind: Any, **how: Any) -> Iterator[Any]:
        """The next step; the last one for ever."""
        step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        if isinstance(step, Exception):
            raise step
        yield from (SimpleNamespace(type="MODIFIED", object=obj) for obj in step)

    def send(self, call: Any) -> Any:
        """Only after a version that is too old, and for the stored report."""
        step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        if isinstance(step, Exception):
            raise step
        return step[0]


def waited(steps: list[Any], capfd: pytest.CaptureFixture[str]) -> tuple[Any, list[str], str]:
    """What waiting came to, the lines on stdout, and stderr."""
    client: Any = Away(steps)
    asked = running("starting.")
    try:
        came: Any = actions.wait(
            client, asked, Asked(flags=Flags()), timeout_s=900.0, namespace="ns", clock=ManualClock()
        )
    except InputError as error:
        came = error
    out, err = capfd.readouterr()
    return came, out.splitlines(), err


AWAY_LINE = (
    "The API server does not answer: could not reach https://x: connection refused. It is asked again, for 120 s at "
    "most; the preflight continues."
)


def test_a_connection_that_is_lost_for_a_while(capfd: pytest.CaptureFixture[str]) -> None:
    """It is said once, so is its end, and the waiting continues; the report that cannot be read costs remedies only."""
    steps = [REFUSED, REFUSED, [running("4 of 7 checks done.")], [running("7 checks done.", "True")], REFUSED]
    came, lines, err = waited(steps, capfd)
    assert came.completed
    assert lines == ["starting.", AWAY_LINE, "The API server answers again.", "4 of 7 checks done.", "7 checks done."]
    why = "could not reach https://x: connection refused"
    assert err == f"warning: the report could not be read, so remedies are missing: {why}\n"


def test_a_connection_that_stays_lost(capfd: pytest.CaptureFixture[str]) -> None:
    """After two minutes it is an error that says what continues and what to do."""
    came, lines, _ = waited([REFUSED], capfd)
    assert isinstance(came, InputError)
    assert came.message == (
        "the API server has not answered for 120 s: could not reach https://x: connection refused\n"
        "The preflight continues in the cluster. See it with `runup upgrade`, end it with "
        "`runup upgrade --clear-preflight`."
    )
    assert lines == ["starting.", AWAY_LINE]


def test_a_version_that_is_too_old_and_a_server_that_is_away_then(capfd: pytest.CaptureFixture[str]) -> None:
    """Reading again is tried as long as watching is."""
    gone = Gone(Status(code=410, message="too old"), Request(method="GET", path="/x"))
    came, lines, _ = waited([gone, REFUSED, [running("7 checks done.", "True")], REFUSED], capfd)
    assert came.completed
    assert lines == ["starting.", AWAY_LINE, "The API server answers again.", "7 checks done."]


@pytest.fixture
def offered(server: Server) -> Server:
    """A cluster with an update to 5.2.0."""
    image = "quay.io/ocp/release@sha256:" + "a" * 64
    server.set_cluster_version(
        status={
            "desired": {"version": "5.0.0", "image": image},
            "availableUpdates": [{"version": "5.2.0", "image": image}],
        }
    )
    return server


def terminal(server: Server, **more: str) -> pexpect.spawn[str]:
    """`--wait` on a terminal of 24 lines and 60 columns."""
    env = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES")}
    env |= {"KUBECONFIG": str(Path(server.kubeconfig)), "TERM": "xterm", "LC_ALL": "C.UTF-8", **more}
    words = ["-m", "runup", "upgrade", "--preflight", "--to=5.2.0", "--wait"]
    return pexpect.spawn(sys.executable, words, env=env, encoding="utf-8", timeout=90, dimensions=(24, 60))


def play(server: Server, message: str, completed: str = "False", **status: Any) -> None:
    """What the operator writes."""
    eventually(lambda: (server.cluster_version()["spec"].get("desiredUpdate") or {}).get("mode"), "it was asked for")
    generation = server.cluster_version()["metadata"]["generation"]
    conditions = [
        {
            "type": type_,
            "status": state,
            "reason": "R",
            "message": message,
            "lastTransitionTime": "2026-01-14T09:30:00Z",
        }
        for type_, state in (
            ("PreflightRunning", "True"),
            ("PreflightCompleted", completed),
            ("PreflightFailed", "False"),
        )
    ]
    server.patch_status(observedGeneration=generation, conditions=conditions, **status)


FOUND = {
    "name": "DualStackIncompatible",
    "message": "Preflight=5.2.0: Dual-stack networking is used.",
    "url": "https://example.com/a",
    "matchingRules": [{"type": "Always"}],
    "conditions": [
        {
            "type": "Applies",
            "status": "True",
            "reason": "PreflightValidation",
            "message": "m",
            "lastTransitionTime": "2026-01-14T09:30:00Z",
        }
    ],
}
UPDATE = {
    "release": {"version": "5.2.0", "image": "x"},
    "riskNames": ["DualStackIncompatible"],
    "risks": [FOUND],
    "conditions": [],
}


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_terminal_shows_what_goes_on(offered: Server) -> None:
    """Shows the reads, then the risks as they are found, then the result with its exit code."""
    child = terminal(offered)
    child.expect_exact("take up")
    child.expect_exact(LEAVE)
    play(offered, "Preflight of 5.2.0 from 5.0.0: reading the cluster: 5 of 8 kinds.")
    child.expect(r"5\s+of\s+8\s+kinds")
    play(offered, "Preflight of 5.2.0 from 5.0.0: 4 of 7 checks done.", conditionalUpdates=[UPDATE])
    child.expect_exact("Found so far:")
    child.expect_exact("DualStackIncompatible")
    play(offered, "7 checks done.", "True", conditionalUpdates=[UPDATE])
    child.expect_exact("Verdict: 1 risk applies.")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 2


@pytest.mark.timeout(180)
def test_leaving_says_that_the_preflight_goes_on(offered: Server) -> None:
    """Ctrl-C on the terminal: the words, exit code 130, and the request stays."""
    child = terminal(offered)
    child.expect_exact(LEAVE)
    child.sendintr()
    child.expect_exact("The preflight of 5.2.0 continues. See it with `runup upgrade`")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert offered.cluster_version()["spec"]["desiredUpdate"]["mode"] == "Preflight"


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_dumb_terminal_gets_lines(offered: Server) -> None:
    """As a pipe does, without an escape."""
    child = terminal(offered, TERM="dumb")
    play(offered, "7 checks done.", "True")
    said = child.read()
    child.close()
    assert (child.exitstatus, "\x1b" in said) == (0, False)
    assert said.startswith("waiting for the cluster-version operator to take up the request\r\n")
