"""Copies of this checkout, for what is built from one and must not depend on where it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
TIME = "2026-01-14T10:00:00Z"
VERSION = "1.2.3"
# Each distribution has a separate version.
VERSIONS = {"kubekit": "0.4.0", "kubesandbox": "0.5.6", "kube-runup": VERSION}
TAGS = ("kubekit-v0.4.0", "kubesandbox-v0.5.6", f"v{VERSION}")
IMAGE = "registry.example/runup"
LIMIT_S = 900


def copy(folder: Path, *tags: str, only: tuple[str, ...] = ("",)) -> Path:
    """Returns a checkout with the files as they are, and one commit that is the same wherever it is made.

    It has the files whose paths begin with one of `only`, by default all.
    """
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.invalid", "-c", "core.autocrlf=false"]
    names = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run([*git, *names], cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if name.startswith(only) and ((ROOT / name).is_file() or (ROOT / name).is_symlink()):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name, follow_symlinks=False)
    times = {"GIT_AUTHOR_DATE": TIME, "GIT_COMMITTER_DATE": TIME}
    tagged = (["tag", tag] for tag in tags)
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"], *tagged):
        subprocess.run([*git, *words], cwd=folder, env={**os.environ, **times}, check=True)
    return folder


def clone(checkout: Path, folder: Path) -> Path:
    """Returns the same commit, with its tags, in another folder: what was edited here meanwhile is not in it."""
    subprocess.run(["git", "clone", "-q", str(checkout), str(folder)], check=True)
    return folder


def build_release(checkout: Path, **env: str) -> Path:
    """Builds the release that `checkout` is tagged for, and returns its folder."""
    return run_tool("tools.release", checkout, **env) / "build" / "release"


def run_tool(module: str, checkout: Path, *words: str, **env: str) -> Path:
    """Runs a module of the tools of `checkout` in it, with these arguments, and returns `checkout`."""
    paths = os.pathsep.join([*map(str, checkout.glob("packages/*/src")), str(checkout)])
    done = subprocess.run(
        [sys.executable, "-m", module, *words],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": paths, "RUNUP_IMAGE": IMAGE, **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    return checkout
