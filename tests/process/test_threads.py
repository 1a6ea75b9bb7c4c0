"""Blocking work that never comes back holds nobody up."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from runup.process.threads import in_thread

HANGS = """
import asyncio, threading
from runup.process.threads import in_thread

async def main():
    started = threading.Event()
    work = asyncio.create_task(in_thread(lambda: (started.set(), threading.Event().wait()), "hangs"))
    while not started.is_set():
        await asyncio.sleep(0)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    print("over", flush=True)

asyncio.run(main())
"""


async def test_what_the_work_gives_or_raises() -> None:
    """As if it had been called."""
    assert await in_thread(lambda: 3, "three") == 3
    with pytest.raises(ValueError, match="no"):
        await in_thread(lambda: int("no"), "raises")


async def test_a_late_answer_disturbs_nobody() -> None:
    """It is dropped."""
    going, gone = threading.Event(), threading.Event()
    work = asyncio.create_task(in_thread(lambda: (going.wait(), gone.set()), "late"))
    await asyncio.sleep(0)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    going.set()
    assert await asyncio.to_thread(gone.wait, 10)
    await asyncio.sleep(0)
    assert work.cancelled()


def test_a_process_ends_with_work_that_hangs() -> None:
    """The interpreter waits for the threads of its executors, and would wait for ever."""
    done = subprocess.run([sys.executable, "-c", HANGS], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "over\n"
