"""Types the commands of a page: its `sh` blocks, in their order, by a shell next to a cluster."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.deploy.test_install_forms import program

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Whoever asks the cluster how it is hears what these servers lack: an operator that runs, registries, gates.
TELL = {
    "runup check": {0, 2, 3},
    "runup preflight run": {0, 2, 3},
    "runup upgrade": {0, 1},
    "runup upgrade status": {0},
}


def text_of(page: str) -> str:
    """Returns the text of the page with that file name, whatever its folder."""
    (path,) = DOCS.glob(f"*/{page}")
    return path.read_text()


def blocks(page: str, section: str) -> str:
    """The `sh` blocks of a section, in order."""
    text = text_of(page)
    heading = re.search(rf"^##? {re.escape(section)}$", text, re.MULTILINE)
    assert heading is not None, f"{page} has no section {section}"
    body = re.split(r"^## ", text[heading.end() :], maxsplit=1, flags=re.MULTILINE)[0]
    return "\n".join(re.findall(r"^```sh\n(.*?)^```", body, re.MULTILINE | re.DOTALL))


def commands(text: str) -> list[str]:
    """Its commands."""
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def commands_of_page(page: str) -> set[str]:
    """Every command that a page tells, in its blocks or in a sentence; flags and names of programs are none."""
    text = text_of(page)
    fences = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    inline = re.findall(r"`([^`]+)`", prose)
    programs = ("runup ", "kubectl ", "oc ", "make ", "pip ", "python -m ")
    return {line for fence in fences for line in commands(fence)} | {
        " ".join(span.split()) for span in inline if span.startswith(programs)
    }


def program_folder(folder: Path) -> Path:
    """`folder`, with `runup` as it is here."""
    (folder / "runup").write_text(f'#!/bin/sh\nexec {sys.executable} -m runup "$@"\n')
    (folder / "runup").chmod(0o755)
    return folder


class Shell:
    """Commands typed one after the other; variables stay."""

    def __init__(self, kubeconfig: Path, programs: Path, folder: Path, other: Mapping[str, str] | None = None) -> None:
        """`other` is what this reader has in place of what the page has: his registry, his port."""
        self.folder = folder
        self.typed: set[str] = set()
        """The commands, as the page has them."""
        self._variables = ""
        self._other = dict(other or {})
        self._environ = {
            **os.environ,
            "KUBECONFIG": str(kubeconfig),
            "HOME": str(folder),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        }
        self._environ.pop("IMAGE", None)

    def type(self, command: str) -> tuple[int, str]:
        """The exit code of a command, and what it printed."""
        self.typed.add(command)
        for theirs, ours in self._other.items():
            command = command.replace(theirs, ours)
        if re.match(r"[A-Z]+=", command):
            self._variables += command + "\n"
            return 0, ""
        done = subprocess.run(
            ["bash", "-c", self._variables + command],
            env=self._environ,
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return done.returncode, done.stdout + done.stderr

    def start(self, command: str) -> subprocess.Popen[bytes]:
        """A command that continues until it is ended."""
        self.typed.add(command)
        for theirs, ours in self._other.items():
            command = command.replace(theirs, ours)
        return subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            env=self._environ,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def type_all(self, text: str) -> None:
        """All commands of a block."""
        for command in commands(text):
            if command.startswith("helm "):
                helm = program("helm")
                command = command.replace("helm ", f"{helm} ", 1)
            code, said = self.type(command)
            expected = next((TELL[each] for each in sorted(TELL, reverse=True) if command.startswith(each)), {0})
            assert code in expected, f"{command}\n{said}"


def with_deploy(tmp_path: Path) -> Path:
    """A folder in which `deploy` is as in a clone."""
    shutil.copytree(ROOT / "deploy", tmp_path / "deploy")
    return tmp_path
