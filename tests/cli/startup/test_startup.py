"""How commands start and end, and that no command's help needs a cluster."""

from __future__ import annotations

import socket
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from tests.cli.commands import Run
from tests.few_or_many import first_and_rest

import runup
from runup.cli.main import COMMANDS, SUMMARIES

# Every command starts without these; a command that needs one imports it in its own module.
HEAVY = {
    *("aiohttp", "asyncio", "cel_expr_python", "cryptography", "jsonschema_rs", "kubesandbox", "pydantic", "rich"),
    *("inspect", "structlog", "typing_extensions"),
}


_LISTED = """
import atexit
from runup.cli.startup import lazy_imports, start
def read():
    return [name for name, module in sys.modules.items() if not lazy_imports.is_unread(module)]
atexit.register(lambda: print("READ", *read(), file=sys.stderr))
start.runup()
"""


def _imported(*words: str) -> set[str]:
    """Returns the modules that a command has imported when it ends, started by its script."""
    code = f"import sys; sys.argv = {['runup', *words]!r}\n{_LISTED}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return set(done.stderr.rpartition("READ ")[2].split())


def test_the_version_alone_needs_no_command(run: Run) -> None:
    """`runup version` prints what the command of that name prints, without click."""
    assert "click" not in _imported("version")
    done = subprocess.run([sys.executable, "-m", "runup", "version"], capture_output=True, text=True, check=True)
    assert done.stdout == run("version").out


@pytest.mark.parametrize(
    ("words", "code", "to"), [("version", 0, "out"), ("graph -h", 0, "out"), ("nonsense", 1, "err")]
)
@pytest.mark.parametrize(
    ("closed", "left"),
    first_and_rest(
        [
            pytest.param("<&- >&- 2>&-", set()),
            pytest.param("<&-", {"out", "err"}),
            pytest.param(">&-", {"err"}),
            pytest.param("2>&-", {"out"}),
        ]
    ),
)
def test_streams_that_the_caller_has_closed(words: str, code: int, to: str, closed: str, left: set[str]) -> None:
    """Output to the closed stream is lost, as requested; the rest is unchanged."""
    script = f'exec "$0" -m runup {words} {closed}'
    done = subprocess.run(["sh", "-c", script, sys.executable], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert {name for name, text in (("out", done.stdout), ("err", done.stderr)) if text} == left & {to}
    assert "Traceback" not in done.stderr


_KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: here
clusters:
- name: here
  cluster:
    server: https://127.0.0.1:{port}
contexts:
- name: here
  context:
    cluster: here
    user: me
users:
- name: me
  user:
    token: abc
"""
_STATUS = """\
apiVersion: v1
kind: List
items:
- apiVersion: config.openshift.io/v1
  kind: ClusterVersion
  metadata:
    name: version
  status:
    conditions:
    - lastTransitionTime: "2026-11-20T12:00:00Z"
      message: Cluster version is 5.0.0
      status: "False"
      type: Progressing
    desired:
      version: 5.0.0
"""


@pytest.mark.parametrize(
    "words", [("upgrade",), ("upgrade", "recommend"), ("upgrade", "channel"), ("upgrade", "status")], ids=" ".join
)
def test_a_command_over_files_loads_neither_a_client_nor_libyaml(words: tuple[str, ...], tmp_path: Path) -> None:
    """`kubekit.lang.yaml_plain` reads the layout that cluster tools write."""
    cluster = tmp_path / "case-cv.yaml"
    cluster.write_text(_STATUS)
    for kind in ("co", "mcp", "mc", "node"):
        (tmp_path / f"case-{kind}.yaml").write_text("apiVersion: v1\nkind: List\nitems: []\n")
    flag = "--mock-clusterversion" if "status" in words else "--dump"
    assert not _imported(*words, flag, str(cluster)) & (
        HEAVY | {"yaml", "ssl", "kubekit.kube.client_sync", "kubekit.kube.calls"}
    )


def test_a_preflight_over_a_dump_loads_no_client() -> None:
    """aiohttp alone would take a third of the command."""
    example = Path(__file__).parents[3] / "examples" / "skip-level"
    assert not _imported("preflight", "run", "--dump", str(example)) & {"aiohttp", "asyncio"}


@pytest.mark.parametrize("words", [("upgrade",), ("upgrade", "status"), ("upgrade", "recommend")], ids=" ".join)
def test_a_command_over_a_cluster_loads_no_event_loop(words: tuple[str, ...], tmp_path: Path) -> None:
    """The client of commands blocks."""
    with socket.socket() as nobody:  # bound and not listening: refused at once
        nobody.bind(("127.0.0.1", 0))
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(_KUBECONFIG.format(port=nobody.getsockname()[1]))
        modules = _imported(*words, "--kubeconfig", str(kubeconfig))
    assert "ssl" in modules
    assert not modules & (HEAVY | {"yaml"})


def test_scripts_leave_the_collector_alone() -> None:
    """A short command ends before the collector looks; what it made is not walked when the process ends."""
    shown = "import gc, atexit; atexit.register(lambda: print(gc.get_threshold()[0], gc.get_freeze_count()))"
    code = f"{shown}; from runup.cli.startup import start; start.runup()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    threshold, frozen = map(int, done.stdout.splitlines()[-1].split())
    assert threshold > 100_000
    assert frozen > 10_000


@pytest.mark.parametrize(
    ("words", "before", "said", "code"),
    [
        pytest.param(["version"], "", "Client Version", 0, id="nothing is left to do"),
        pytest.param(["nonsense"], "", "", 1, id="its exit code is the command's"),
        pytest.param(
            ["version"],
            "import atexit; atexit.register(print, 'called')",
            "called",
            0,
            id="somebody asked to be called",
        ),
        pytest.param(
            ["version"],
            "import threading; threading.Timer(0.3, print, ['went on']).start()",
            "went on",
            0,
            id="another thread still runs",
        ),
    ],
)
def test_how_a_process_ends(words: list[str], before: str, said: str, code: int) -> None:
    """At once, unless that would leave something undone."""
    begin = f"import sys; sys.argv = {['runup', *words]!r}\n{before}\n"
    script = begin + "from runup.cli.startup import start; sys.exit(start.runup())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (said in done.stdout, done.returncode) == (True, code)


def test_the_version_is_the_package_s() -> None:
    """One number in two places: where neither a tag nor a build says which version it is."""
    tools = tomllib.loads((Path(runup.__file__).parents[2] / "pyproject.toml").read_text())["tool"]
    assert tools["hatch"]["version"]["fallback-version"] == runup.__version__


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


def test_version_as_a_flag(run: Run) -> None:
    """The same as the command's, also where the quick way is not taken."""
    assert run("--version").out == run("version").out == f"Client Version: {runup.__version__}\n"
    assert run("--kubeconfig", "nowhere", "--version").out == run("version").out


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
