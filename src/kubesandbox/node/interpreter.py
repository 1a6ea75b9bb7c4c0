"""The Python interpreter for thin images, which is this one: its host folders, and the command of a script."""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

from kubekit.kube.clock import OFFSET

# The folder that holds kubesandbox and the packages installed with it.
PACKAGE_ROOT = Path(__file__).resolve().parents[2]


def interpreter_folders() -> tuple[Path, ...]:
    """Returns the interpreter's folders: its libraries, virtual environment and our packages, outermost first."""
    executable = Path(sys.executable)
    candidates = {
        Path(sys.prefix),
        Path(sys.base_prefix) / "lib",
        Path(sysconfig.get_path("stdlib")),
        executable.resolve().parent,
        PACKAGE_ROOT,
        *(Path(entry) for entry in sys.path if entry and Path(entry).is_dir()),
    }
    kept: list[Path] = []
    for path in sorted(candidates, key=lambda path: len(path.parts)):
        # Never the root or a whole home folder, only folders that the interpreter needs.
        if len(path.parts) > 2 and path.exists() and not any(path.is_relative_to(parent) for parent in kept):
            kept.append(path)
    return tuple(kept)


def argv_for(script_on_host: Path, script_seen: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the command of an entry point: this interpreter for Python scripts, other programs as they are."""
    if is_python_script(script_on_host):
        return (sys.executable, script_seen, *arguments)
    return (script_seen, *arguments)


def is_python_script(path: Path) -> bool:
    """Returns whether the first line of `path` names Python as its interpreter."""
    try:
        with path.open("rb") as file:
            first = file.readline(256)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" in first


def interpreter_environment() -> dict[str, str]:
    """Returns the environment in which a thin image's process finds our packages and writes no bytecode."""
    variables = {"PYTHONPATH": str(PACKAGE_ROOT), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
    # The nodes use the cluster's clock, which may differ from the machine's.
    return variables | ({OFFSET: os.environ[OFFSET]} if os.environ.get(OFFSET) else {})
