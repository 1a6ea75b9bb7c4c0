"""Each line of the README's table of installations, typed as it is in the table, in an empty home."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from tests.journeys.install.checkouts import ROOT, VERSION

LIMIT_S = 600
KREW = "sigs.k8s.io/krew/cmd/krew@v0.4.4"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(2 * LIMIT_S),
    pytest.mark.xdist_group("image"),
    pytest.mark.skipif(shutil.which("apt-get") is None, reason="no apt-get, by which the image's base is fetched"),
]


def lines_of_the_table() -> dict[str, tuple[str | None, str | None]]:
    """Returns the command from a clone and the one from `make release`, by program; None for a cell without one."""
    table = re.findall(r"^\| (\w+) \| (.+) \| (.+) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    command = re.compile(r"`((?:uv tool|pipx|pip|kubectl krew) install .+)`")
    cells = {name: tuple(command.fullmatch(cell) for cell in cells) for name, *cells in table if name != "with"}
    return {name: tuple(cell and cell[1] for cell in found) for name, found in cells.items()}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with pip, uv and pipx, and nothing of runup; its folder of programs."""
    folder = tmp_path_factory.mktemp("installers")
    venv.create(folder, with_pip=True)
    bin_folder = folder / "bin"
    subprocess.run(
        [bin_folder / "pip", "install", "-q", "--disable-pip-version-check", "uv", "pipx"], check=True, timeout=LIMIT_S
    )
    return bin_folder


def typed(line: str, folder: Path, home: Path, *paths: Path) -> subprocess.CompletedProcess[str]:
    """Runs a line in a shell, in `folder`, with an empty home and only `paths` before the programs of the system."""
    kept = {
        name: os.environ[name] for name in ("LANG", "TMPDIR", "PIP_INDEX_URL", "UV_INDEX_URL") if name in os.environ
    }
    search = os.pathsep.join([*map(str, paths), f"{home}/.local/bin", "/usr/local/bin", "/usr/bin", "/bin"])
    env = {**kept, "UV_SYSTEM_CERTS": "true", "HOME": str(home), "PATH": search}
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=LIMIT_S
    )


def test_the_table_has_the_lines_that_are_typed_below() -> None:
    """A line that is added must get a test."""
    lines = lines_of_the_table()
    assert {name: tuple(cell is not None for cell in cells) for name, cells in lines.items()} == {
        "uv": (True, True),
        "pipx": (False, True),
        "pip": (True, True),
        "image": (False, False),
        "krew": (False, True),
    }


@pytest.mark.parametrize(("program", "column"), [("uv", 0), ("pip", 0), ("uv", 1), ("pipx", 1), ("pip", 1)])
def test_a_line_installs_the_command(release: Path, programs: Path, tmp_path: Path, program: str, column: int) -> None:
    """The command reports its version, and checks a dump of the clone."""
    line = lines_of_the_table()[program][column]
    assert line is not None
    if program == "pip":
        environment = tmp_path / "environment"
        venv.create(environment, with_pip=True)
        paths = [environment / "bin"]
    else:
        paths = [programs]
    checkout = release.parents[1]
    done = typed(line, checkout, tmp_path, *paths)
    assert done.returncode == 0, done.stdout + done.stderr
    done = typed("runup --version", tmp_path, tmp_path, *paths)
    assert (done.returncode, VERSION in done.stdout) == (0, True), done.stdout + done.stderr
    dump = checkout / "examples" / "skip-level"
    done = typed(f"runup preflight run --dump {dump}", tmp_path, tmp_path, *paths)
    assert done.returncode == 2, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl")
@pytest.mark.skipif(shutil.which("go") is None, reason="no Go, by which krew is built")
def test_krew_installs_the_plugin(release: Path, programs: Path, tmp_path: Path) -> None:
    """By krew itself: `kubectl runup` works afterwards."""
    line = lines_of_the_table()["krew"][1]
    assert line is not None
    built = subprocess.run(
        ["go", "install", KREW],
        env={**os.environ, "GOBIN": str(tmp_path / "bin"), "GOFLAGS": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    if built.returncode != 0:
        pytest.skip(f"krew cannot be built: {built.stderr.strip().splitlines()[-1]}")
    (tmp_path / "bin" / "krew").rename(tmp_path / "bin" / "kubectl-krew")
    paths = [tmp_path / "bin", tmp_path / ".krew" / "bin", Path(sys.executable).resolve().parent]
    done = typed(line, release.parents[1], tmp_path, *paths)
    assert done.returncode == 0, done.stdout + done.stderr
    done = typed("kubectl runup --version", tmp_path, tmp_path, *paths)
    assert (done.returncode, VERSION in done.stdout) == (0, True), done.stdout + done.stderr
