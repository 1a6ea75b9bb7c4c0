"""Runs each example of docs/how-to/kubesandbox.md as a reader would: with pytest, its files in a separate folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

# A guard against waiting for ever, as of any other process: on a busy machine each of pytest and server takes a minute.
LONGEST_S = 240
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "kubesandbox.md"
# The first line of a block names the file that it is.
FILES = dict(re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))
TESTS = sorted(name for name in FILES if name.startswith("test_"))

pytestmark = [pytest.mark.slow]


def test_every_library_has_an_example() -> None:
    """As does the fixture that starts further servers."""
    assert TESTS == [
        "test_factory.py",
        "test_faults.py",
        "test_kopf.py",
        "test_kr8s.py",
        "test_kubernetes.py",
        "test_lightkube.py",
        "test_sharing.py",
        "test_versions.py",
        "test_webhooks.py",
    ]


@pytest.mark.parametrize("name", TESTS)
def test_the_example_passes(name: str, tmp_path: Path) -> None:
    """With all files of the page next to it."""
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=LONGEST_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\d passed", done.stdout, re.MULTILINE)
    assert "warning" not in done.stdout
