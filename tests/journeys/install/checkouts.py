"""Copies of this checkout, for what is built from one and must not depend on where it is."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]
TIME = "2026-01-14T10:00:00Z"


def copy(folder: Path, tag: str = "") -> Path:
    """Returns a checkout with the files as they are, and one commit that is the same wherever it is made."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.invalid", "-c", "core.autocrlf=false"]
    names = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run([*git, *names], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
    times = {"GIT_AUTHOR_DATE": TIME, "GIT_COMMITTER_DATE": TIME}
    tagged = [["tag", tag]] if tag else []
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"], *tagged):
        subprocess.run([*git, *words], cwd=folder, env={**os.environ, **times}, check=True)
    return folder


def clone(checkout: Path, folder: Path) -> Path:
    """Returns the same commit, with its tags, in another folder: what was edited here meanwhile is not in it."""
    subprocess.run(["git", "clone", "-q", str(checkout), str(folder)], check=True)
    return folder
