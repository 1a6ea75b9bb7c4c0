"""The examples of docs/reference/kubekit.md, run as a reader would run them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kubesandbox.testing import kube_api

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "kubekit.md"
FILES = dict(re.findall(r"^```python\n# (\S+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))
LIMIT_S = 120


def _run(name: str, folder: Path, **env: str) -> str:
    (folder / name).write_text(FILES[name])
    command = [sys.executable, name]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_runs_the_example_of_languages(tmp_path: Path) -> None:
    """Each line is a statement of the page."""
    assert _run("languages.py", tmp_path) == "True\nTrue\nTrue\n"


@pytest.mark.slow
def test_runs_the_example_of_a_client(tmp_path: Path) -> None:
    """On a server with one node."""
    with kube_api(tmp_path / "data", node=True) as api:
        printed = _run("list_nodes.py", tmp_path, KUBECONFIG=str(api.kubeconfig))
    assert re.fullmatch(r"\{'names': '[a-z0-9-]+'\}\n", printed)
