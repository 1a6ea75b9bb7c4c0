"""Every command of the tutorials, typed in order in one folder."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.install.pages import DOCS, ROOT, commands, program_folder

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

# Pages, and how often each exit code other than 0 occurs: 2 where the page says that risks apply.
PAGES = {"first-cluster.md": [], "first-check.md": [2, 2], "first-fleet.md": [2, 2, 2, 2]}


@pytest.mark.parametrize("page", PAGES)
def test_a_tutorial_can_be_typed(page: str, tmp_path: Path) -> None:
    """Nothing but a clone is needed; the exit codes are those that the page names."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    blocks = re.findall(r"^```sh\n(.*?)^```", (DOCS / "tutorial" / page).read_text(), re.MULTILINE | re.DOTALL)
    typed = [line for block in blocks for line in ([block] if "<<'END'" in block else commands(block))]
    environ = os.environ | {
        "HOME": str(tmp_path),
        "PATH": f"{program_folder(tmp_path)}{os.pathsep}{os.environ['PATH']}",
    }
    exports = ""
    codes = []
    for command in typed:
        exports += f"{command}\n" if command.startswith("export ") else ""
        done = subprocess.run(
            ["bash", "-c", exports + command], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
        )
        codes.append(done.returncode)
        assert done.returncode in (0, 2), (command, done.stderr)
        assert "--release-dir" not in command or "MyNodeCordoned" in done.stdout
    assert [code for code in codes if code] == PAGES[page]
