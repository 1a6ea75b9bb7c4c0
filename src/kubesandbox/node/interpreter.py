"""The Python that thin images run on: this one. Which host folders it needs, and how a script is started with it."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

from kubekit.kube.clock import OFFSET

# The folder that holds kubesandbox and the packages installed with it.
PACKAGE_ROOT = Path(__file__).resolve().parents[2]


def folders() -> tuple[Path, ...]:
    """The interpreter, its libraries, its virtual environment and the folder of our packages, outermost first."""
    executable = Path(sys.executable)
    found = {
        Path(sys.prefix),
        Path(sys.base_prefix) / "lib",
        Path(sysconfig.get_path("stdlib")),
        executable.resolve().parent,
        PACKAGE_ROOT,
        *(Path(entry) for entry in sys.path if entry and Path(entry).is_dir()),
    }
    kept: list[Path] = []
    for path in sorted(found, key=lambda path: len(path.parts)):
        # Never the root or a home folder whole: only what the interpreter needs.
        if len(path.parts) > 2 and path.exists() and not any(path.is_relative_to(parent) for parent in kept):
            kept.append(path)
    return tuple(kept)


def argv_for(script_on_host: Path, script_seen: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """The command for an image's entry point: a Python script gets this interpreter, anything else runs as it is."""
    if is_python_script(script_on_host):
        return (sys.executable, script_seen, *arguments)
    return (script_seen, *arguments)


def is_python_script(path: Path) -> bool:
    """Whether the first line of `path` asks for Python."""
    try:
        with path.open("rb") as file:
            first = file.readline(256)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" in first


def environment() -> dict[str, str]:
    """What a thin image's process needs to find our packages, and to leave nothing beside the code."""
    found = {"PYTHONPATH": str(PACKAGE_ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
    # The nodes' clock is the cluster's, also where that is not the machine's.
    return found | ({OFFSET: os.environ[OFFSET]} if os.environ.get(OFFSET) else {})
