"""Defines `runup demo`: starts a sandbox, checks its 5.0.0 cluster with release 5.2.0, and makes the first update step.

The steps: see that 5.2.0 is not offered; run its preflight; fix one risk by resuming a paused MachineConfigPool; accept
the other risks by name, and see what is refused all the same; update to 5.0.3 and wait until that is completed. Each
step runs the commands that a user would type, as processes, and shows them with their output. The demo stops at the
first step with an unexpected result: exit code 1, and the logs are kept, those of the pods among them. In any case the
sandbox is stopped, and everything else in its folder is removed.
"""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import click

from kubekit.lang.files import remove_tree
from kubekit.lang.text import printable
from runup.cli.lazy import Command
from runup.cli.output import without_printable
from runup.process.ending_signals import ending_signals
from runup.sandbox import demo_cluster

SCENARIO = "skip-level"
TARGET = "5.2.0"
FIRST_STEP = "5.0.3"
# The risk that the demo fixes with `UNPAUSE_COMMAND`, and the one that it accepts by name.
PAUSED_POOL_RISK = "MachineConfigPoolPaused-infra"
DUAL_STACK_RISK = "DualStackIncompatible"
STEP_TIMEOUT_S = 150.0
"""Seconds that a step waits for the cluster before the demo stops."""
LOGS = "logs"
READER_LEFT = 141
"""The exit code of a command whose output is no longer read, as under `runup demo | head` (128 + SIGPIPE)."""

UNPAUSE_COMMAND = ("kubectl", "patch", "machineconfigpool", "infra", "--type=merge", "-p", '{"spec":{"paused":false}}')


@click.command("demo", cls=Command)
def demo() -> int:
    """Watch a 5.0.0 cluster be checked by release 5.2.0, with no cluster at all. Takes less than a minute.

    \b
      runup demo               watch it
      runup demo > demo.txt    keep it
    """
    # Before the first step, which is a process: without the extra `sandbox`, this command says so itself.
    import kubesandbox  # noqa: F401

    interrupts = demo_cluster.Interrupts()
    folder = Path(tempfile.mkdtemp(prefix="runup-demo-"))
    story = Demo(folder, interrupts)
    failed = False
    try:
        interrupts.guarding(story.run)
    except demo_cluster.StepFailed as error:
        failed = True
        _print_styled(f"\nThe demo stopped: {error}\nLogs: {folder / LOGS}", sys.stderr, fg="red")
        return 1
    except KeyboardInterrupt:
        click.echo("\nStopped; clearing up.", err=True)
        return 130
    finally:
        stopped = story.clear_up()
        if stopped:
            if failed:
                for log in folder.glob("pods/*/*.log"):
                    # The error was printed already; whatever happens to a log, the keys next to it must be removed.
                    with suppress(OSError):
                        pod_logs = folder / LOGS / log.parent.name
                        pod_logs.mkdir(exist_ok=True)
                        log.rename(pod_logs / log.name)
            remove(folder, but=LOGS if failed else "")
    if not stopped:
        _print_styled(f"\nThe sandbox could not be stopped. Logs: {folder / LOGS}", sys.stderr, fg="red")
        return 1
    click.echo("\nThe sandbox is stopped and its folder is gone. Keep one: runup sandbox start --scenario skip-level")
    return 0


def remove(folder: Path, but: str) -> None:
    """Removes the sandbox's folder with its keys and kubeconfig; `but` names the one entry that stays ("": none)."""
    for path in folder.iterdir() if but else ():
        if path.name != but and path.is_dir() and not path.is_symlink():
            remove_tree(path)
        elif path.name != but:
            path.unlink(missing_ok=True)
    if not but or not any(folder.iterdir()):
        remove_tree(folder)


@dataclass(slots=True)
class Demo:
    """The steps of the demo, and the sandbox in `folder` that they use; `started` once that has to be stopped."""

    folder: Path
    interrupts: demo_cluster.Interrupts
    started: bool = False

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, as the sandbox writes it."""
        return self.folder / "admin.kubeconfig"

    def run(self) -> None:
        """Runs all steps in order. Raises StepFailed at the first one with an unexpected result."""
        for step in (
            self._start_sandbox,
            self._show_updates,
            self._check_target,
            self._fix_pause,
            self._accept_one,
            self._show_refusal,
            self._accept_rest,
            self._update,
            self._arrive,
        ):
            step()

    def _start_sandbox(self) -> None:
        say("A cluster on 5.0.0, on this machine alone. It wants to know what 5.2.0 will say.")
        self.started = True
        self._runup("sandbox", "start", "--scenario", SCENARIO, "--data", str(self.folder))

    def _show_updates(self) -> None:
        self._wait_until(lambda cluster: cluster.status.available_updates, "the update service has answered")
        say("What is it offered today? 5.2.0 is two minor releases away and is not in the list.")
        self._runup("upgrade")

    def _check_target(self) -> None:
        say("So 5.2.0 itself checks the cluster, from its own release image, read only. Nothing is updated.")
        self._runup("upgrade", "--mode=preflight", f"--to={TARGET}", "--wait", expect=2)

    def _fix_pause(self) -> None:
        """Resumes the paused pool, and waits until the preflight notices."""
        from kubekit.kube.clock import SystemClock

        say("One of these is quickly fixed: somebody forgot to resume the infra pool.")
        if PAUSED_POOL_RISK not in self._open_risks():
            raise demo_cluster.StepFailed(f"the preflight did not find {PAUSED_POOL_RISK}")
        self._kubectl(UNPAUSE_COMMAND)
        clock = SystemClock()
        started_at = clock.monotonic()
        self._wait_until(
            lambda cluster: PAUSED_POOL_RISK not in demo_cluster.risk_names(cluster, TARGET),
            f"{PAUSED_POOL_RISK} goes away",
        )
        say(f"The target continues to watch: the risk was gone {clock.monotonic() - started_at:.1f} s after the fix.")

    def _accept_one(self) -> None:
        say("Another one we know about and take, by name.")
        self._runup("upgrade", "accept", DUAL_STACK_RISK)

    def _show_refusal(self) -> None:
        say("May we go now? A release that is checked is not offered for that, whatever is accepted.")
        self._runup("upgrade", f"--to={TARGET}", expect=1)

    def _accept_rest(self) -> None:
        names = self._open_risks()
        say(f"We accept the other {len(names)} too. That settles the risks, but not what the operator itself refuses:")
        self._runup("upgrade", "accept", ",".join(names))
        self._runup("preflight", "show", expect=2)

    def _update(self) -> None:
        """Updates the cluster to the first step, and shows how it begins."""
        say(f"5.2.0 is reached in steps, and we know today what it will ask for. The first step is {FIRST_STEP}.")
        self._runup("upgrade", f"--to={FIRST_STEP}")
        self._wait_until(
            lambda cluster: cluster.status.desired.version == FIRST_STEP, f"the update to {FIRST_STEP} starts"
        )
        from runup.process.clusterversion_client import namespace

        self._kubectl(("kubectl", "-n", namespace(), "get", "deployments"))
        say("The preflight's Deployment went first, then the update began, manifest by manifest:")
        self._wait_until(
            lambda cluster: demo_cluster.has_begun(cluster, FIRST_STEP), f"manifests of {FIRST_STEP} are applied"
        )
        self._runup("upgrade", "status")

    def _arrive(self) -> None:
        """Waits until the first step is completed, and shows the state."""
        say(f"On the way {FIRST_STEP}'s own operator took over from 5.0.0's. Now every component has to get there.")
        self._wait_until(
            lambda cluster: demo_cluster.has_completed(cluster, FIRST_STEP), f"the update to {FIRST_STEP} is completed"
        )
        self._runup("upgrade")

    def clear_up(self) -> bool:
        """Stops the sandbox if it was started; returns whether all of its processes have ended."""
        if not self.started:
            return True
        # A terminal sends Ctrl-C to the command below too, which inherits the mask. Ignoring the signals would be racy.
        signal.pthread_sigmask(signal.SIG_BLOCK, ending_signals())
        command = [*_RUNUP, "sandbox", "stop", "--data", str(self.folder)]
        return subprocess.run(command, capture_output=True, env=self._environment(), check=False).returncode == 0

    def _open_risks(self) -> list[str]:
        """Returns the names of the target's risks that are not accepted, from the JSON output."""
        return demo_cluster.open_risks(json.loads(self._run_quietly("upgrade", "-o", "json")), TARGET)

    def _runup(self, *words: str, expect: int = 0) -> None:
        """Shows and runs a runup command. Raises StepFailed if it ends with another exit code than `expect`."""
        self._run_shown([*_RUNUP, *words], ("runup", *words), expect)

    def _kubectl(self, arguments: Sequence[str]) -> None:
        """Runs kubectl if it is installed, else sends the request that it would send."""
        if shutil.which(arguments[0]):
            self._run_shown(arguments, arguments, 0)
            return
        show(arguments)
        click.echo("(kubectl is not installed; runup sends the same request)")
        if arguments == UNPAUSE_COMMAND:
            demo_cluster.resume_pool(self.kubeconfig, "infra")

    def _run_shown(self, command: Sequence[str], arguments: Sequence[str], expect: int) -> None:
        """Shows a command and runs it. Raises StepFailed if it ends with another code than `expect`."""
        show(arguments)
        sys.stdout.flush()
        code, _, _ = self.interrupts.run(command, self._environment())
        if code == READER_LEFT:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        if code != expect:
            raise demo_cluster.StepFailed(f"`{shlex.join(arguments)}` ended with exit code {code} instead of {expect}")

    def _run_quietly(self, *words: str) -> str:
        """Runs a runup command without showing it, and returns its stdout. Raises StepFailed if it fails."""
        captured = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        code, out, err = self.interrupts.run([*_RUNUP, *words], self._environment(), **captured)
        if code != 0:
            raise demo_cluster.StepFailed(f"`runup {shlex.join(words)}` failed: {err.strip()}")
        return out

    def _wait_until(self, holds: Callable[[Any], bool], state_text: str) -> None:
        demo_cluster.wait_until(self.kubeconfig, holds, state_text, timeout_s=STEP_TIMEOUT_S)

    def _environment(self) -> dict[str, str]:
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig)}


_RUNUP = (sys.executable, "-m", "runup")


def say(text: str) -> None:
    """Prints one sentence of the story, bold on a terminal."""
    _print_styled(f"\n# {text}", sys.stdout, bold=True)


def show(arguments: Sequence[str]) -> None:
    """Prints a command as it would be typed."""
    _print_styled(f"$ {shlex.join(arguments)}", sys.stdout, fg="cyan")


def _print_styled(text: str, stream: TextIO, **style: Any) -> None:
    """Prints `text` in a style; bypasses the filter that escapes control characters, so the text is escaped here."""
    click.secho(printable(text), file=without_printable(stream), **style)
