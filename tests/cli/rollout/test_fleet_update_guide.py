"""The commands of the guide about fleet updates, as typed over two sandboxed clusters."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.commands import Run
from tests.fleet.control.fleet_world import Fleet, fleet

from kubekit.kube.clock import SystemClock
from runup.rollout.control import observe

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
PAGE = (Path(__file__).parents[3] / "docs/how-to/fleet-update.md").read_text(encoding="utf-8")
INVENTORY, UPDATE = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CONSOLES = re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SCREEN = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]
LINES = [line for block in CONSOLES for line in block.splitlines()]
# The exit code of each line: after the guide's update is done, a cluster can be neither retried nor skipped.
CODES = (
    ("plan", 0),
    ("start", 4),
    ("start", 4),
    ("resume", 4),
    ("approve", 0),
    ("resume", 0),
    ("hold", 0),
    ("resume", 0),
    ("start", 0),
    ("status", 0),
    ("status", 0),
    ("retry", 1),
    ("skip", 1),
    ("abort", 0),
)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Fleet]:
    """The clusters of the guide."""
    with fleet(tmp_path, harbour=False, lighthouse=False) as found:
        yield found


def test_the_guide_updates_two_clusters(two: Fleet, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line has its exit code, and the plan prints what the page shows; at the end both clusters are updated."""
    assert [shlex.split(line)[3] for line in LINES] == [name for name, _ in CODES]
    two.heal()
    (tmp_path / "clusters.yaml").write_text(INVENTORY, encoding="utf-8")
    (tmp_path / "update.yaml").write_text(UPDATE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(two.kubeconfig))
    monkeypatch.setattr(observe.thanos, "alerts", lambda *_: ())

    def updates_end(_clock: SystemClock, _seconds: float) -> None:
        """While the command waits, updates that have begun end."""
        for name in two.clusters:
            if two.started(name):
                two.finish(name)

    monkeypatch.setattr(SystemClock, "pause", updates_end)
    for index, (line, (_, code)) in enumerate(zip(LINES, CODES, strict=True)):
        if index == 2:
            # The page's second way to start the same update.
            two.heal()
            (tmp_path / "5.1.journal").unlink()
        ran = run(*shlex.split(line.partition(" > ")[0])[1:])
        assert ran.code == code, (line, ran)
        if index == 0:
            assert ran.out.startswith(SCREEN)
    assert all(two.started(name) for name in two.clusters)
