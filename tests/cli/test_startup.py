"""Start-up is a feature: what `runup version` may import, and that no command's help needs a cluster."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from tests.cli.conftest import Run

import runup
from runup.cli.main import COMMANDS, SUMMARIES

# Everything else of ours, and every library but click, is for commands that talk to a cluster.
ALLOWED = {
    "runup",
    "runup.__main__",
    "runup.cli",
    "runup.cli.complete",
    "runup.cli.connection",
    "runup.cli.lazy",
    "runup.cli.main",
    "runup.cli.output",
    "runup.cli.version",
    "runup.lang",
    "runup.lang.printable",
}
HEAVY = (
    "aiohttp",
    "asyncio",
    "cel_expr_python",
    "cryptography",
    "jsonschema_rs",
    "msgspec",
    "pydantic",
    "rich",
    "ssl",
    "structlog",
    "yaml",
)


def _imported(*words: str) -> set[str]:
    code = f"import sys; from runup.cli.main import main; main({list(words)!r}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def test_what_version_imports() -> None:
    """Nothing of ours beyond the table of commands, nothing heavy of others."""
    modules = _imported("version")
    assert {name for name in modules if name.split(".")[0] == "runup"} <= ALLOWED
    assert not modules.intersection(HEAVY)


def test_a_command_that_talks_imports_no_async_stack(tmp_path: Path) -> None:
    """The path to a request stays free of what takes long to import."""
    modules = _imported("upgrade", "--kubeconfig", str(tmp_path / "none"))
    unwanted = {"aiohttp", "asyncio", "cel_expr_python", "jsonschema_rs", "pydantic", "rich", "structlog"}
    assert not modules.intersection(unwanted)


def test_the_version_is_the_package_s() -> None:
    """One number in two places."""
    project = tomllib.loads((Path(runup.__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["version"] == runup.__version__


def test_every_command_has_a_summary() -> None:
    """The help is printed out of the tables alone."""
    assert COMMANDS.keys() == SUMMARIES.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_there(name: str) -> None:
    """The table names modules and attributes that exist."""
    module, _, attribute = COMMANDS[name].partition(":")
    assert hasattr(import_module(module), attribute)


@pytest.mark.parametrize(
    "words", [[], ["--help"], ["upgrade", "-h"], ["upgrade", "accept", "-h"], ["adm"], ["preflight", "-h"]]
)
def test_help_needs_no_cluster(words: list[str], run: Run) -> None:
    """Help is on stdout, exit code 0."""
    ran = run(*words)
    assert ran.code == 0
    assert ran.out.startswith("Usage: runup")


def test_version_in_the_machine_form(run: Run) -> None:
    """JSON for programs."""
    assert run("version", "-o", "json").out == f'{{\n  "clientVersion": "{runup.__version__}"\n}}\n'


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str, run: Run) -> None:
    """One script for the command and for the plugins of kubectl and oc."""
    script = run("completion", shell).out
    for program in ("runup", "kubectl-runup", "oc-runup"):
        assert program in script


def test_bash_completes_commands_and_flags() -> None:
    """As the script asks: the words so far in the environment, one candidate a line."""
    environment = {"_RUNUP_COMPLETE": "bash_complete", "COMP_WORDS": "runup up", "COMP_CWORD": "1"}
    command = [sys.executable, "-m", "runup"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "plain,upgrade\n"


def test_kubectl_completes_the_plugin(run: Run) -> None:
    """cobra's protocol: candidates with a description, then `:4` for no file names."""
    lines = run("completion", "candidates", "--", "upgrade", "acc").out.splitlines()
    assert lines == ["accept\tAccept risks exposed to conditional updates.", ":4"]


def test_a_reader_that_leaves_is_no_error() -> None:
    """`runup ... | head -0` ends without a traceback."""
    command = f"{sys.executable} -m runup --help | true"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.stderr == ""
