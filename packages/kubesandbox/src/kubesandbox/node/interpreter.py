"""Lends this process's Python interpreter to the containers of thin images.

A thin image (label `images.THIN_LABEL`) holds a program but no operating system and no Python: its containers use the
host's libraries and interpreter, mounted read only. Out of this module come the host's folders to mount, the command
line of a container's program, and its environment.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from pathlib import Path

from kubekit.kube.clock import CLOCK_OFFSET_VARIABLE

# The host's folder that holds kubesandbox and the packages installed with it.
PACKAGE_ROOT = Path(__file__).resolve().parents[2]


def interpreter_folders() -> tuple[Path, ...]:
    """Returns the host's folders that the interpreter needs: its libraries, virtual environment and our packages.

    No folder is inside another one of them.
    """
    executable = Path(sys.executable)
    candidates = {
        Path(sys.prefix),
        Path(sys.base_prefix) / "lib",
        Path(sysconfig.get_path("stdlib")),
        executable.resolve().parent,
        PACKAGE_ROOT,
        *(Path(entry) for entry in sys.path if entry and Path(entry).is_dir()),
    }
    folders: list[Path] = []
    for path in sorted(candidates, key=lambda path: len(path.parts)):
        # Never the root or a folder directly in it, such as /usr or /root: only folders that the interpreter needs.
        if len(path.parts) > 2 and path.exists() and not any(path.is_relative_to(parent) for parent in folders):
            folders.append(path)
    return tuple(folders)


def argv_for(script_on_host: Path, script_in_container: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the command line of a container's program: a Python script is run with this interpreter.

    `script_on_host` is the file where it can be read now, `script_in_container` its path inside the container.
    """
    if is_python_script(script_on_host):
        return (sys.executable, script_in_container, *arguments)
    return (script_in_container, *arguments)


def is_python_script(path: Path) -> bool:
    """Returns whether the first line of `path` names Python as its interpreter; an unreadable file is not a script."""
    try:
        with path.open("rb") as file:
            first = file.readline(256)
    except OSError:
        return False
    return first.startswith(b"#!") and b"python" in first


def interpreter_environment() -> dict[str, str]:
    """Returns the environment variables with which a thin image's process finds our packages and writes no bytecode."""
    # Whatever this process was given to find packages that are not installed, its containers need too.
    given = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry and Path(entry).is_dir()]
    path = os.pathsep.join(dict.fromkeys([str(PACKAGE_ROOT), *(str(Path(entry).resolve()) for entry in given)]))
    variables = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}
    # The nodes use the cluster's clock, which may differ from the machine's.
    return variables | (
        {CLOCK_OFFSET_VARIABLE: os.environ[CLOCK_OFFSET_VARIABLE]} if os.environ.get(CLOCK_OFFSET_VARIABLE) else {}
    )
