"""Runs the rehearsal of an update next to the checks: in a separate process, within limits of time and memory.

In: the order of a rehearsal. Out: its outcomes, or one Unknown that says why they are missing. Whatever happens to the
process, nothing of it is left: it is ended, and the folder in which it makes its copy is removed.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from kubekit.lang.files import remove_tree
from kubekit.lang.text import one_line
from runup.checks.decide.engine import CheckOutcome
from runup.checks.decide.rehearsed_outcomes import decode_outcomes, not_run_outcome
from runup.extras import SANDBOX, missing_sandbox

MODULE = "runup.rehearse.control.ordered_rehearsal"
# The exit code of a process that needs more memory than it may have.
TOO_LARGE = 12
_LONGEST_MESSAGE = 300


class RehearsalOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The order to a rehearsal's process: the cluster, the release and the limits.

    `apply_s` are the seconds that applying may take, `memory_mib` what the process may have, 0 for any amount.
    """

    release_dir: str
    image: str = ""
    kubeconfig: str | None = None
    context: str | None = None
    documentation_base: str = ""
    apply_s: float = 240.0
    memory_mib: int = 0


class RehearsalProcess:
    """The rehearsal of a preflight, in a process. `outcomes` is None until it has ended; `changed` is called then."""

    def __init__(self, order: RehearsalOrder, limit_s: float, changed: Callable[[], None], *, module: str = MODULE):
        self._order, self._limit_s, self._changed, self._module = order, limit_s, changed, module
        self.outcomes: tuple[CheckOutcome, ...] | None = None

    async def run(self) -> None:
        """Runs the process to its end, or to its limit."""
        try:
            self.outcomes = await self._run()
        except (OSError, ValueError) as error:
            self.outcomes = (self._not_run(str(error)),)
        self._changed()

    async def _run(self) -> tuple[CheckOutcome, ...]:
        """Returns the rehearsal's outcomes, or one outcome that says why it did not run; removes its folder."""
        if not _is_there(self._module):
            return (self._not_run("the image of the release does not carry it"),)
        if not _is_there(SANDBOX):
            return (self._not_run(missing_sandbox()),)
        # A container that is started again has the number of the process that crashed in it, and finds what that one
        # left. Somebody else's folder of that name could not be removed, and is an error here.
        folder = Path(tempfile.gettempdir()) / f"runup-rehearse-{os.getpid()}"
        remove_tree(folder)
        folder.mkdir(mode=0o700)
        try:
            return await self._run_in(folder)
        finally:
            remove_tree(folder)

    async def _run_in(self, folder: Path) -> tuple[CheckOutcome, ...]:
        """Runs the rehearsal with `folder` for its temporary files; one outcome says why if it fails."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            self._module,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(folder)},
        )
        try:
            async with asyncio.timeout(self._limit_s):
                stdout, stderr = await process.communicate(msgspec.json.encode(self._order))
        except TimeoutError:
            return (self._not_run(f"it took more than {self._limit_s:g} s; raise `timeout` of the settings"),)
        finally:
            # One that runs is killed: it only reads, and its caller may be about to end.
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
            code = await process.wait()
        if code == 0:
            return decode_outcomes(stdout)
        return (self._not_run(self._failure_reason(code, stderr)),)

    def _failure_reason(self, code: int, err: bytes) -> str:
        """Returns why the process ended without outcomes, by its exit code and its last line of stderr."""
        if code == TOO_LARGE:
            limit = f"the {self._order.memory_mib} MiB that it may have"
            return f"the copy of the cluster needs more than {limit}; raise `memoryLimit` of the settings"
        if code < 0:
            return f"its process was ended by signal {-code}"
        lines = err.decode(errors="replace").strip().splitlines()
        last_line = one_line(lines[-1])[:_LONGEST_MESSAGE] if lines else "it said nothing"
        return f"its process ended with code {code}: {last_line}"

    def _not_run(self, reason: str) -> CheckOutcome:
        return not_run_outcome(reason, self._order.documentation_base)


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
