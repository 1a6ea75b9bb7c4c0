"""Start-up is a feature: what commands may import, and that no command's help needs a cluster."""

from __future__ import annotations

import socket
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from tests.cli.commands import Run

import runup
from runup.cli.main import COMMANDS, SUMMARIES

# Everything else of ours, and every library but click, is for commands that talk to a cluster.
OURS = {"runup", "kubekit", "kubesandbox"}
ALLOWED = {
    "kubekit",
    "runup",
    "runup.__main__",
    "runup.cli",
    "runup.build_info",
    "runup.cli.static_completion",
    "runup.cli.connection",
    "runup.cli.startup",
    "runup.cli.startup.lazy_imports",
    "runup.cli.lazy",
    "runup.cli.main",
    "runup.cli.options",
    "runup.cli.output",
    "runup.cli.startup.start",
    "runup.cli.version_command",
    "kubekit.lang",
    "kubekit.lang.text",
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


_LISTED = """
import atexit
from runup.cli.startup import lazy_imports, start
def read():
    return [name for name, module in sys.modules.items() if not lazy_imports.is_unread(module)]
atexit.register(lambda: print("READ", *read(), file=sys.stderr))
start.runup()
"""


def _imported(*words: str) -> set[str]:
    """What a command has read when it ends, begun as its script begins it."""
    code = f"import sys; sys.argv = {['runup', *words]!r}\n{_LISTED}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.rpartition("READ ")[2].split())


def test_what_every_command_imports() -> None:
    """Nothing of ours beyond the table of commands, nothing heavy of others."""
    modules = _imported("version", "--help")
    assert {name for name in modules if name.split(".")[0] in OURS} <= ALLOWED
    assert not modules.intersection(HEAVY)


def test_the_version_alone_needs_no_command(run: Run) -> None:
    """`runup version` prints what the command of that name prints, without click."""
    assert "click" not in _imported("version")
    done = subprocess.run([sys.executable, "-m", "runup", "version"], capture_output=True, text=True, check=True)
    assert done.stdout == run("version").out


@pytest.mark.parametrize(
    ("words", "code", "to"), [("version", 0, "out"), ("graph -h", 0, "out"), ("nonsense", 1, "err")]
)
@pytest.mark.parametrize(
    ("closed", "left"), [("<&-", {"out", "err"}), (">&-", {"err"}), ("2>&-", {"out"}), ("<&- >&- 2>&-", set())]
)
def test_streams_that_the_caller_has_closed(words: str, code: int, to: str, closed: str, left: set[str]) -> None:
    """What is for them is lost, as asked; all else is as ever."""
    script = f'exec "$0" -m runup {words} {closed}'
    done = subprocess.run(["sh", "-c", script, sys.executable], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert {name for name, text in (("out", done.stdout), ("err", done.stderr)) if text} == left & {to}
    assert "Traceback" not in done.stderr


# What takes long and no command needs that is over at once: each of them was on the way of one before.
_NOT_TO_START = {"dataclasses", "yaml", "tempfile", "click.shell_completion", "aiohttp", "asyncio", "cel_expr_python"}
_NOT_TO_START |= {"inspect", "typing_extensions", "msgspec.inspect", "argparse", "random", "shutil", "encodings.idna"}
_NOT_TO_START |= {"cryptography", "jsonschema_rs", "pydantic", "rich", "structlog", "runup.sandbox"}
_NOT_TO_START |= {"gettext", "datetime"}
# `email` reads headers for `http.client`, and takes as long as half an interpreter.
_NOT_TO_TALK = {"http", "http.client", "email", "email.message", "email.utils"}
# Accepting a risk reads reports, which name pages and have digests.
_NOT_TO_LOOK = {"base64", "struct", "urllib.parse", "kubekit.api.core_v1", "runup.preflight.decide.stored_reports"}
_NOT_TO_LOOK |= {"runup.updatestatus.decide.snapshot", "runup.api.machineconfig_v1", "kubekit.api.workloads_v1"}
_NOT_TO_TALK |= {
    "pathlib",
    "encodings.utf_8_sig",
    "kubekit.kube.list_pages",
    "kubekit.kube.auth",
    "runup.api.owned_v1",
}
_NOT_FOR_FILES = _NOT_TO_TALK | {
    "urllib.parse",
    "ipaddress",
    "runup.api.platform_v1",
    "httptools",
    "ssl",
    "socket",
    "kubekit.kube.client_sync",
    "kubekit.kube.config",
}

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
_CASE = {
    "cv": """\
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
    history:
    - completionTime: "2026-11-20T12:00:00Z"
      startedTime: "2026-11-20T11:00:00Z"
      state: Completed
      version: 5.0.0
""",
    "co": """\
- apiVersion: config.openshift.io/v1
  kind: ClusterOperator
  metadata:
    name: etcd
""",
    "mcp": "",
    "mc": "",
    "node": "",
}


def test_a_report_of_files_imports_what_it_reads_them_with(tmp_path: Path) -> None:
    """No client, no libyaml, nothing of the sandbox."""
    for name, items in _CASE.items():
        text = f"apiVersion: v1\nkind: List\nitems:{' []' if not items else chr(10) + items.rstrip()}\n"
        (tmp_path / f"case-{name}.yaml").write_text(text)
    modules = _imported("upgrade", "status", "--mock-clusterversion", str(tmp_path / "case-cv.yaml"))
    assert "runup.updatestatus.decide.report_rows" in modules
    assert not modules.intersection(_NOT_TO_START | _NOT_FOR_FILES)


@pytest.mark.parametrize("words", [("upgrade",), ("upgrade", "recommend"), ("upgrade", "channel")], ids=" ".join)
def test_advice_out_of_files_needs_no_decoder(words: tuple[str, ...], tmp_path: Path) -> None:
    """ClusterVersion's JSON is read as it is."""
    cluster = tmp_path / "case-cv.yaml"
    cluster.write_text(f"apiVersion: v1\nkind: List\nitems:\n{_CASE['cv']}")
    modules = _imported(*words, "--dump", str(cluster))
    assert "runup.api.clusterversion_json" in modules
    assert not modules.intersection(
        _NOT_TO_START | _NOT_FOR_FILES | {"runup.api.config_v1", "runup.process.clusterversion_client"}
    )


@pytest.mark.parametrize(
    "words",
    [
        ("upgrade",),
        ("upgrade", "status"),
        ("upgrade", "recommend"),
        ("upgrade", "channel", "stable-5.2"),
        ("upgrade", "accept", "SomeRisk"),
    ],
    ids=" ".join,
)
def test_a_command_that_talks_imports_no_async_stack(words: tuple[str, ...], tmp_path: Path) -> None:
    """The path to a request stays free of what takes long to import."""
    with socket.socket() as nobody:  # bound and not listening: refused at once
        nobody.bind(("127.0.0.1", 0))
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(_KUBECONFIG.format(port=nobody.getsockname()[1]))
        modules = _imported(*words, "--kubeconfig", str(kubeconfig))
    assert "ssl" in modules
    assert not modules.intersection(_NOT_TO_START | _NOT_TO_TALK)
    assert "accept" in words or not modules.intersection(_NOT_TO_LOOK)


def test_scripts_leave_the_collector_alone() -> None:
    """A short command ends before the collector looks; what it made is not walked when the process ends."""
    told = "import gc, atexit; atexit.register(lambda: print(gc.get_threshold()[0], gc.get_freeze_count()))"
    code = f"{told}; from runup.cli.startup import start; start.runup()"
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
