"""The cluster of `runup demo`: the states that its steps wait for, and the interrupts that end it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from runup.process.ending_signals import ending_signals


class StepFailed(Exception):
    """A step did not end as expected."""


class Interrupts:
    """A handler that turns what ends a command into one KeyboardInterrupt, never while a process is being started.

    Raised there, it would leave the process behind, running and holding our output. Raised twice, the second one would
    interrupt the clean-up after the first. So interrupts are held at first, and held again from the first one on.
    """

    def __init__(self) -> None:
        self._held = True
        self._waiting = False
        for number in ending_signals():
            signal.signal(number, self._on_signal)

    def _on_signal(self, _signal: int, _frame: FrameType | None) -> None:
        self._waiting = True
        if not self._held:
            self._held = True
            raise KeyboardInterrupt

    def _let_through(self) -> None:
        """Stops holding interrupts; raises KeyboardInterrupt if one is pending."""
        if self._waiting:
            raise KeyboardInterrupt
        self._held = False

    def guarding(self, work: Callable[[], None]) -> None:
        """Runs `work`, which an interrupt ends; afterwards interrupts are held, however it ended."""
        try:
            self._let_through()
            work()
        finally:
            self._held = True

    def run(self, command: Sequence[str], environment: Mapping[str, str], **capture: Any) -> tuple[int, str, str]:
        """Runs `command` to its end and returns exit code, stdout and stderr as far as `capture` captures them.

        On an interrupt the process is killed first.
        """
        self._held = True
        process = subprocess.Popen(command, env=dict(environment), text=True, **capture)
        try:
            self._let_through()
            out, err = process.communicate()
            return process.returncode, out or "", err or ""
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def resume_pool(kubeconfig: Path, name: str) -> None:
    """Resumes a paused MachineConfigPool, as an administrator would."""
    from kubekit.api.scheme import resource_of
    from kubekit.kube import calls, config
    from kubekit.kube.client_sync import SyncClient
    from runup.api.machineconfig_v1 import MachineConfigPool

    with SyncClient(config.load(str(kubeconfig))) as client:
        client.send(calls.merge_patch(resource_of(MachineConfigPool), name, {"spec": {"paused": False}}))


def wait_until(kubeconfig: Path, holds: Callable[[Any], bool], state_text: str, *, timeout_s: float) -> None:
    """Waits until `holds` is true of the ClusterVersion; `state_text` says that in words.

    Raises StepFailed after `timeout_s` seconds.
    """
    from kubekit.kube import config
    from kubekit.kube.client_sync import SyncClient
    from kubekit.kube.clock import SystemClock
    from runup.clusterversion.control.upgrade_wait import changes
    from runup.process import clusterversion_client as clusters

    clock = SystemClock()
    deadline = clock.monotonic() + timeout_s
    with SyncClient(config.load(str(kubeconfig))) as client:
        latest = clusters.read(client)
        for look in changes(client, latest, clock):
            latest = look.cluster or latest
            if holds(latest):
                return
            if clock.monotonic() > deadline:
                raise StepFailed(f"waited {timeout_s:.0f} s until {state_text}")


def open_risks(data: dict[str, Any], version: str) -> list[str]:
    """Returns the risks of the update to `version` that apply or may apply, and are not accepted.

    `data` is the JSON output of `runup upgrade`.
    """
    accepted = {risk["name"] for risk in (data["desiredUpdate"] or {}).get("acceptRisks", ())}
    names = []
    for update in data["conditionalUpdates"]:
        for risk in update.get("risks", ()) if update["release"]["version"] == version else ():
            verdict = next((c["status"] for c in risk.get("conditions", ()) if c["type"] == "Applies"), "Unknown")
            if verdict != "False" and risk["name"] not in accepted:
                names.append(risk["name"])
    return names


def risk_names(cluster: Any, version: str) -> set[str]:
    """Returns the names of the risks of the conditional update to `version`."""
    for update in cluster.status.conditional_updates:
        if update.release.version == version:
            return {risk.name for risk in update.risks}
    return set()


def has_begun(cluster: Any, version: str) -> bool:
    """Returns whether some or all manifests of that release are applied."""
    from kubekit.api.conditions import find

    progressing = find(cluster.status.conditions, "Progressing")
    return has_completed(cluster, version) or bool(
        progressing and version in progressing.message and " done (" in progressing.message
    )


def has_completed(cluster: Any, version: str) -> bool:
    """Returns whether the newest update of the cluster's history is to `version` and is completed."""
    newest = next(iter(cluster.status.history), None)
    return newest is not None and (newest.version, newest.state) == (version, "Completed")
