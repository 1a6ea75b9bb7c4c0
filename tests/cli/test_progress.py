"""Long commands show on a terminal what they do and how far they are; pipes, `--quiet` and `NO_COLOR` are respected."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pexpect
import pytest
from tests.factories import node_json
from tests.servers import eventually

from runup.cli import progress
from runup.cli.progress import ProgressDisplay, display, showing_steps
from runup.process import steps

COLOUR = re.compile(r"\x1b\[[0-9;]*(?:3[0-7]|4[0-7]|9[0-7])m")


class HeldServer(ThreadingHTTPServer):
    """A plain Kubernetes server with one node, whose list of pods is answered when `release` is set."""

    daemon_threads = True

    def __init__(self) -> None:
        self.release = threading.Event()
        self.held = 0
        super().__init__(("127.0.0.1", 0), _Answers)


class _Answers(BaseHTTPRequestHandler):
    server: HeldServer

    def do_GET(self) -> None:
        """Answers a list, or that there is no such object."""
        path = self.path.partition("?")[0]
        body: dict[str, Any] = {"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}
        code = 404 if "clusterversions" in path else 200
        if path.endswith("/pods"):
            self.server.held += 1
            self.server.release.wait(240)
        if path.endswith("/nodes"):
            body["items"] = [node_json("worker-a")]
        if code == 404:
            body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
        data = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Logs nothing."""


@pytest.fixture
def held() -> Iterator[HeldServer]:
    """A server that holds its list of pods."""
    server = HeldServer()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.release.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.slow
def test_shows_steps_on_a_terminal_only(held: HeldServer, tmp_path: Path) -> None:
    """A pipe and `--quiet` get nothing, although they have waited for longer than the terminal that shows the step."""
    config = tmp_path / "config"
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{held.server_address[1]}"}}
    contexts = [{"name": "c", "context": {"cluster": "c", "user": "u"}}]
    users = [{"name": "u", "user": {}}]
    whole = {"current-context": "c", "clusters": [cluster], "contexts": contexts, "users": users}
    config.write_text(json.dumps(whole))
    words = ["rehearse", "drain", "--kubeconfig", str(config)]
    runup = [sys.executable, "-m", "runup"]
    size = (24, 100)
    piped = subprocess.Popen([*runup, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    quiet = pexpect.spawn(runup[0], [*runup[1:], "--quiet", *words], encoding="utf-8", dimensions=size, timeout=240)
    eventually(lambda: held.held == 2, "the two without progress wait for the list of pods")
    terminal = pexpect.spawn(
        "/usr/bin/env", ["NO_COLOR=1", "TERM=xterm", *runup, *words], encoding="utf-8", dimensions=size, timeout=240
    )
    terminal.expect(r"Listing kinds.* (\d+) of (\d+)")
    done, total = map(int, terminal.match.groups())
    assert 0 <= done < total
    shown = terminal.before + terminal.after
    held.release.set()
    rest = terminal.read()
    out, err = piped.communicate(timeout=240)
    assert err == ""
    assert out.startswith("The drains of 1 node take")
    assert quiet.read().replace("\r\n", "\n") == out
    assert COLOUR.search(shown + rest) is None
    # What was shown is cleared before the result is written.
    assert rest.replace("\r\n", "\n").endswith(f"\x1b[2K{out}")


class Terminal(io.StringIO):
    """A terminal that keeps what is written to it."""

    def isatty(self) -> bool:
        """Says that it is one."""
        return True


def _terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Returns a terminal of 100 columns, which is stderr from now on."""
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return stream


def test_draws_each_step_that_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its current part, escaped, and its count; a step of unknown size has no count. Afterwards all is gone."""
    clock, terminal = [0.0], _terminal(monkeypatch)
    shown = ProgressDisplay(terminal, now_s=lambda: clock[0])
    outer, inner = steps.Step("Reading clusters", 3), steps.Step("Reading image quay.example/a")
    shown.begin_without_thread(outer)
    shown.begin(inner)
    outer.done, outer.detail = 1, "harbour\x1b[2J"
    clock[0] = progress.SHOWN_AFTER_S - 0.1
    shown.draw()
    assert terminal.getvalue() == ""
    clock[0] = progress.SHOWN_AFTER_S + 1
    shown.draw()
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|[━╸╺]", "", terminal.getvalue())
    # Without the spinner, which turns with the machine's clock.
    assert [" ".join(line.split()[1:]) for line in text.splitlines()] == [
        r"Reading clusters: harbour\x1b[2J 1 of 3 3 s",
        "Reading image quay.example/a 3 s",
    ]
    shown.end(inner)
    shown.end(outer)
    assert terminal.getvalue().endswith("\x1b[2K")


@pytest.mark.parametrize(
    ("variables", "is_terminal", "is_shown"),
    [
        pytest.param({}, True, True, id="a terminal"),
        pytest.param({"NO_COLOR": "1"}, True, True, id="a terminal without colours"),
        pytest.param({"TERM": "dumb"}, True, False, id="a terminal that cannot be redrawn"),
        pytest.param({}, False, False, id="a pipe"),
    ],
)
def test_listens_only_on_a_terminal(
    variables: dict[str, str], is_terminal: bool, is_shown: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere a step is not even recorded; a command that has ended leaves no listener."""
    _terminal(monkeypatch)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    if not is_terminal:
        monkeypatch.setattr("sys.stderr", io.StringIO())
    with showing_steps():
        assert (display() is not None) is is_shown
    assert display() is None


def test_an_error_ends_its_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread has ended, and the next step of the command begins another one."""
    _terminal(monkeypatch)
    with showing_steps():
        for _ in range(2):
            with pytest.raises(OSError, match="gone"), steps.step("Listing kinds", 2):
                assert any(thread.name == "progress" for thread in threading.enumerate())
                raise OSError("gone")
            assert not any(thread.name == "progress" for thread in threading.enumerate())


def test_each_counts_an_item_when_the_next_is_wanted() -> None:
    """The last one, too; a loop that is left early ends the step."""
    seen: list[tuple[str, steps.Step]] = []

    class Listener:
        def begin(self, step: steps.Step) -> None:
            seen.append(("begin", step))

        def end(self, step: steps.Step) -> None:
            seen.append(("end", step))

    with steps.listening(Listener()):
        counts = [(item, seen[-1][1].done) for item in steps.each("ab", "Reading files")]
        for _ in steps.each("ab", "Reading files"):
            break
    assert counts == [("a", 0), ("b", 1)]
    assert [(what, step.what, step.done, step.total) for what, step in seen] == [
        ("begin", "Reading files", 2, 2),
        ("end", "Reading files", 2, 2),
        ("begin", "Reading files", 0, 2),
        ("end", "Reading files", 0, 2),
    ]
