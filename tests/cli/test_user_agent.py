"""How a server's log shows the commands apart, as it does oc's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.cli.commands import Run

from runup import __version__


@contextmanager
def listening() -> Iterator[tuple[str, set[str]]]:
    """The address of a server that has nothing, and who asked it."""
    heard: set[str] = set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.add(self.headers["User-Agent"])
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", heard
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    ("words", "purpose", "code"),
    [
        (("upgrade", "status"), " (upgrade-status)", 0),
        (("upgrade", "recommend"), " (upgrade-recommend)", 1),
        (("upgrade",), "", 1),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_who_asks(run: Run, tmp_path: Path, words: tuple[str, ...], purpose: str, code: int) -> None:
    """`status` and `recommend` say their names, whatever they are answered."""
    with listening() as (url, heard):
        config = {
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "current-context": "c",
        }
        (tmp_path / "config").write_text(json.dumps(config))
        assert run(*words, "--kubeconfig", tmp_path / "config").code == code
    assert heard == {f"runup/{__version__}{purpose}"}
