"""The guide of writing a check, typed as it is: its commands are taken from the page, so that it cannot rot."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kubekit.lang import yaml as kyaml
from runup.checks.decide.declarative import declared_check

GUIDE = Path(__file__).parents[3] / "docs" / "how-to" / "writing-checks.md"
LIMIT_S = 300

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def blocks(language: str) -> list[str]:
    """What the page shows in that language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_example_is_a_check() -> None:
    """The page's own YAML can be used as it is."""
    text, *others = blocks("yaml")
    check = declared_check(kyaml.load(text), file="example.yaml", text=text)
    assert check.name == "removed-apis"
    # Those of a query and of a container leave out what is the same in every file.
    whole = kyaml.load(text)
    short = [declared_check({**whole, **kyaml.load(other)}, file="example.yaml") for other in others]
    assert [(bool(each.query), bool(each.container)) for each in short] == [(True, False), (False, True)]


def test_the_commands_do_what_the_page_says() -> None:
    """From an empty folder: a check of one's own is run against a cluster of one's own, and finds what it should."""
    (script,) = blocks("sh")
    # A short path: sockets below it have a length limit.
    folder = Path(tempfile.mkdtemp(prefix="runup-guide-"))
    programs = Path(sys.executable).parent
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(folder)}
    try:
        done = subprocess.run(
            ["sh", "-eux"],
            input=script,
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    finally:
        stop = ["runup", "sandbox", "stop", "--data", "sandbox"]
        subprocess.run(stop, cwd=folder, env=env, capture_output=True, check=False, timeout=LIMIT_S)
        shutil.rmtree(folder, ignore_errors=True)
    assert {"no-cordoned-nodes": "Applies"}.items() <= {
        each["name"]: each["result"] for each in report["checks"]
    }.items()
    (risk,) = [each for each in report["risks"] if each["name"] == "MyNodeCordoned"]
    assert risk["message"] == "worker-1 is cordoned."
    assert risk["severity"] == "info"
    assert risk["resources"] == [{"kind": "Node", "name": "worker-1"}]
