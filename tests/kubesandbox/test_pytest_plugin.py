"""The fixtures of the pytest plugin, in test-suites of somebody else: a process of pytest's own for each."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.servers import eventually

Run = Callable[..., subprocess.CompletedProcess[str]]
# Two tests that write down which server they had.
TWO = """\
def test_one(kube_api, record):
    record(kube_api.server)

def test_two(kube_api, record):
    record(kube_api.server)
"""
RECORD = """\
import os, pathlib, pytest

@pytest.fixture
def record(request):
    def note(text):
        worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
        pathlib.Path(request.config.rootpath, f"{request.node.name}.seen").write_text(f"{worker} {text}")
    return note
"""
KILLED = """\
import os, signal

def test_it(kube_api, record):
    record(kube_api.server)
    os.kill(os.getpid(), signal.SIGKILL)
"""
IMPORTED = """\
import sys, pytest
before = set(sys.modules)
import kubesandbox.pytest_plugin
print(*set(sys.modules) - before)
"""

pytestmark = [pytest.mark.slow]


@pytest.fixture
def suite(tmp_path: Path) -> Run:
    """Write a test-suite, run pytest on it, and return what pytest did."""

    def run(tests: str, settings: str = "", *words: str) -> subprocess.CompletedProcess[str]:
        files: Mapping[str, str] = {
            "conftest.py": RECORD,
            "test_it.py": tests,
            "pytest.ini": f"[pytest]\naddopts = --strict-markers\n{settings}\n",
        }
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        # Not `python -m pytest`, which would put the suite's own folder on the path.
        command = [str(Path(sys.executable).with_name("pytest")), "-q", "-p", "no:cacheprovider", *words]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        return subprocess.run(command, cwd=tmp_path, env=kept, capture_output=True, text=True, check=False, timeout=110)

    return run


def seen(folder: Path) -> list[tuple[str, str]]:
    """Worker and server of each test."""
    found = [tuple(path.read_text().split()) for path in sorted(folder.glob("*.seen"))]
    return [(worker, server) for worker, server in found]


def is_up(server: str) -> bool:
    """Whether anybody listens."""
    host, port = server.removeprefix("https://").split(":")
    try:
        socket.create_connection((host, int(port)), timeout=5).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    ("settings", "words", "servers"),
    [
        pytest.param("", (), 2, id="each test has its own"),
        pytest.param("kube_api_scope = module", (), 1, id="one for a module"),
        pytest.param("kube_api_scope = session", (), 1, id="one for the session"),
        pytest.param("kube_api_scope = session", ("-n", "2"), 2, id="one for each worker of a session"),
        pytest.param(
            "kube_api_scope = session\nkube_api_shared = true", ("-n", "2"), 1, id="one that the workers share"
        ),
        pytest.param("kube_api_scope = session\nkube_api_shared = true", (), 1, id="one to share, without workers"),
    ],
)
def test_which_tests_share_a_server(
    settings: str, words: tuple[str, ...], servers: int, suite: Run, tmp_path: Path
) -> None:
    """And none is left afterwards."""
    done = suite(TWO, settings, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(seen(tmp_path)) == 2
    assert len({server for _, server in seen(tmp_path)}) == servers
    assert not any(is_up(server) for _, server in seen(tmp_path))


@pytest.mark.parametrize(
    ("tests", "settings", "said"),
    [
        pytest.param(
            TWO, "kube_api_shared = true", "kube_api_shared needs kube_api_scope = session", id="shared by each test"
        ),
        pytest.param(
            TWO, "kube_api_scope = forever", "choose one of function, class, module, package, session", id="scope"
        ),
        pytest.param(
            "import pytest\n@pytest.mark.kube_api(node=True)\n" + TWO,
            "kube_api_scope = session",
            "test_it.py::test_one has the marker kube_api, but kube_api_scope is session: use kube_api_factory there",
            id="a marker for a shared server",
        ),
        pytest.param(
            TWO, "kube_api_crds = none", "did not start: error: {}/none: there is no such file or folder", id="a folder"
        ),
        pytest.param(
            "import pytest\n@pytest.mark.kube_api(nodes=1)\n" + TWO,
            "",
            "got an unexpected keyword argument 'nodes'",
            id="a marker's argument that there is not",
        ),
        pytest.param(
            "import pytest\n@pytest.mark.kube_api(['crds'])\n" + TWO,
            "",
            "the marker kube_api takes names: crds=[...], node=..., controllers=...",
            id="a marker's argument without a name",
        ),
    ],
)
def test_wrong_settings_are_named(tests: str, settings: str, said: str, suite: Run, tmp_path: Path) -> None:
    """In what pytest prints."""
    done = suite(tests, settings)
    assert done.returncode != 0
    assert said.replace("{}", str(tmp_path)) in done.stdout + done.stderr


def test_a_killed_pytest_leaves_no_server(suite: Run, tmp_path: Path) -> None:
    """It never comes to the end of its fixtures."""
    done = suite(KILLED)
    assert done.returncode == -signal.SIGKILL
    ((_, server),) = seen(tmp_path)
    eventually(lambda: not is_up(server), "the server ends")


def test_a_module_of_the_project_under_test_does_not_stand_in_for_the_servers(suite: Run, tmp_path: Path) -> None:
    """Operators have modules such as `operator.py`, which is also the standard library's."""
    for name in ("operator.py", "yaml.py", "aiohttp.py"):
        (tmp_path / name).write_text("raise SystemExit('the wrong module')\n")
    done = suite("def test_it(kube_api):\n    pass\n", "", "--import-mode=importlib")
    assert done.returncode == 0, done.stdout + done.stderr


def test_nothing_is_imported_for_those_who_do_not_use_it() -> None:
    """Pytest loads the plugin for everybody who has the package."""
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True, timeout=60)
    ours = {name for name in done.stdout.split() if name.partition(".")[0] not in sys.stdlib_module_names}
    assert ours == {"kubesandbox", "kubesandbox.pytest_plugin"}


def test_the_fixtures_explain_themselves(suite: Run) -> None:
    """`pytest --fixtures`, `--markers` and `--help` are where people look."""
    assert re.search(
        r"^kube_api -- .*\n +A Kubernetes API server: `kubeconfig`", suite("", "", "--fixtures").stdout, re.MULTILINE
    )
    assert "@pytest.mark.kube_api(crds=(), node=False, controllers=True, " in suite("", "", "--markers").stdout
    assert "kube_api_scope (string):" in suite("", "", "--help").stdout


RESTORED = """\
import pytest

@pytest.mark.parametrize("attempt", [1, 2])
def test_it(kube_api_restored, record, attempt):
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "harbour"}}
    (namespace,) = kube_api_restored.load(made)
    record(kube_api_restored.server + " " + namespace["metadata"]["uid"])
"""


def test_tests_that_share_a_server_do_not_see_objects_of_each_other(suite: Run, tmp_path: Path) -> None:
    """The second test creates the namespace again, on the same server."""
    assert suite(RESTORED, "kube_api_scope = session").returncode == 0
    (_, server, uid), (_, other_server, other_uid) = (path.read_text().split() for path in tmp_path.glob("*.seen"))
    assert (server == other_server, uid == other_uid) == (True, False)
