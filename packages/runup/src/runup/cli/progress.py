"""Shows the steps of long work on a terminal, on stderr, with rich's progress; a pipe gets nothing.

Steps appear once a command has worked for 2 s, and are gone when it has ended. A thread draws, because one part of a
step, such as the list of all pods, may itself take long. A fleet forks workers, which is not safe next to threads:
its steps are drawn by `draw`, which it calls each second.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

from kubekit.lang.text import one_line
from runup.cli.output import screen_of, without_printable
from runup.process import steps

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# Seconds of work before anything is shown, and between two looks at the steps.
SHOWN_AFTER_S = 2.0
_REDRAWN_S = 0.2
_BAR_WIDTH = 20


class ProgressDisplay:
    """Draws the current steps on `stream`, a terminal. It is a `steps.Listener` for the process that made it."""

    def __init__(
        self, stream: TextIO, *, shown_after_s: float = SHOWN_AFTER_S, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._stream = stream
        self._now_s = now_s
        self._shown_from_s = now_s() + shown_after_s
        self._process = os.getpid()
        # The steps that are under way, with the time at which each began.
        self._steps: dict[steps.Step, float] = {}
        self._progress: Progress | None = None
        self._tasks: dict[steps.Step, TaskID] = {}
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        # A step that draws by itself: no thread runs until it has ended.
        self._drawn_by: steps.Step | None = None

    def begin(self, step: steps.Step) -> None:
        """Shows `step` from now on. A forked worker has a copy of this object, and shows nothing."""
        if os.getpid() != self._process:
            return
        with self._lock:
            self._steps[step] = self._now_s()
        if self._drawn_by is None and self._thread is None:
            self._ended.clear()
            thread = threading.Thread(target=self._draw_until_ended, daemon=True, name="progress")
            # A process that may have no further thread works without progress.
            with suppress(RuntimeError):
                thread.start()
                self._thread = thread

    def begin_without_thread(self, step: steps.Step) -> None:
        """Shows `step` whenever `draw` is called; no thread runs until it ends. Call it outside of other steps."""
        assert not self._steps
        self._drawn_by = step
        self.begin(step)

    def end(self, step: steps.Step) -> None:
        """Stops showing `step`; after the last one the terminal is as it was."""
        if os.getpid() != self._process:
            return
        with self._lock:
            del self._steps[step]
            is_last = not self._steps
        if is_last:
            self._drawn_by = None
            self._ended.set()
            if self._thread is not None:
                self._thread.join()
                self._thread = None
            self.clear()

    def _draw_until_ended(self) -> None:
        # A terminal that is gone ends the drawing, not the command.
        with suppress(OSError, ValueError):
            while not self._ended.wait(_REDRAWN_S):
                self.draw()

    def draw(self) -> None:
        """Draws the current steps, if the command has worked for long enough."""
        if self._now_s() < self._shown_from_s:
            return
        with self._lock:
            progress = self._progress = self._progress or self._new_progress()
            for gone in [step for step in self._tasks if step not in self._steps]:
                progress.remove_task(self._tasks.pop(gone))
            for step, began_s in self._steps.items():
                if step not in self._tasks:
                    self._tasks[step] = progress.add_task("", total=None, count="", seconds=0)
                detail = f": {one_line(step.detail)}" if step.detail else ""
                count = str(step.done) if step.total is None else f"{step.done} of {step.total}"
                progress.update(
                    self._tasks[step],
                    description=f"{one_line(step.what)}{detail}",
                    completed=step.done,
                    total=step.total,
                    count=count if step.total is not None or step.done else "",
                    seconds=int(self._now_s() - began_s),
                )
            if progress.live.is_started:
                progress.refresh()
            else:
                progress.start()

    def clear(self) -> None:
        """Removes what is drawn, until it is drawn again: something else is written to the terminal."""
        with self._lock:
            if self._progress is not None:
                self._progress.stop()
            self._progress = None
            self._tasks.clear()

    def _new_progress(self) -> Progress:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
        from rich.table import Column

        screen = screen_of(self._stream)
        console = Console(
            file=without_printable(self._stream),
            width=screen.width,
            no_color=not screen.colour,
            highlight=False,
            markup=False,
            emoji=False,
        )
        columns = (
            SpinnerColumn("line"),
            TextColumn(
                "{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
            ),
            BarColumn(_BAR_WIDTH),
            TextColumn("{task.fields[count]}", markup=False, table_column=Column(no_wrap=True)),
            TextColumn("{task.fields[seconds]} s", markup=False, table_column=Column(no_wrap=True)),
        )
        return Progress(
            *columns,
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            expand=True,
        )


_display: ProgressDisplay | None = None


def display() -> ProgressDisplay | None:
    """Returns what shows the steps of this command, None in a pipe, on a dumb terminal, and with `--quiet`."""
    return _display


@contextmanager
def showing_steps() -> Iterator[None]:
    """Shows the steps of a command on stderr, if that is a terminal."""
    global _display
    if not screen_of(sys.stderr).live:
        yield
        return
    _display = ProgressDisplay(sys.stderr)
    try:
        with steps.listening(_display):
            yield
    finally:
        _display = None


def be_quiet() -> None:
    """Shows no steps of this command."""
    global _display
    _display = None
    steps.silence()
