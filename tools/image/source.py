"""The commit that is built: its hash and its time."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from typing import NamedTuple

from tools.packages import ROOT


class Commit(NamedTuple):
    """What an image is labelled with; `revision` ends with `-dirty` where files differ from the commit's."""

    revision: str
    time: datetime


def commit() -> Commit:
    """Returns the checkout's commit; without git only the time is known, of SOURCE_DATE_EPOCH or 1970."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    revision = _git("describe", "--always", "--abbrev=40", "--exclude=*", "--dirty")
    seconds = epoch or (_git("log", "-1", "--format=%ct") if revision else "") or "0"
    return Commit(revision, datetime.fromtimestamp(int(seconds), UTC))


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
