"""Output in encodings that lack our characters: escaped, with the exit code that was due."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# A text that every encoding but UTF-8 lacks, on the way to stdout and, as an error, to stderr.
PRINT = """
import sys, click
from runup.cli import main as module
@module.root.command("show")
def show(): click.echo("5.0.0 \\u2192 5.2.0"); return 2
@module.root.command("fail")
def fail(): raise click.ClickException("no \\u2192 5.2.0")
sys.exit(module.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("encoding", ["iso-8859-1", "koi8-r", "cp1252"])
@pytest.mark.parametrize(("command", "code", "stream"), [("show", 2, "stdout"), ("fail", 1, "stderr")])
def test_what_cannot_be_encoded_is_escaped(encoding: str, command: str, code: int, stream: str) -> None:
    """No traceback, and not another exit code."""
    env = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-c", PRINT, command], env=env, capture_output=True, check=False)
    said = done.stdout if stream == "stdout" else done.stderr
    assert (done.returncode, b"\\u2192 5.2.0" in said) == (code, True), done.stderr
