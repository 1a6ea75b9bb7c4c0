"""A server with scripted answers that our API server never gives: refusals and invalid objects."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any


@contextmanager
def answering(folder: Path, answers: dict[str, Any], sent: list[tuple[str, Any]] | None = None) -> Iterator[Path]:
    """The kubeconfig of a server that answers a path with an object, a code or what a function returns; else with 404.

    What is sent to it is noted, with its path, and answered alike.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = answers.get(self.path.partition("?")[0], 404)
            answer = answer() if callable(answer) else answer
            code, body = (answer, {"kind": "Status", "code": answer}) if isinstance(answer, int) else (200, answer)
            data = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_PATCH(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if sent is not None:
                sent.append((self.path.partition("?")[0], body))
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    named = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "current-context": "c",
    }
    (folder / "config").write_text(json.dumps(named))
    try:
        yield folder / "config"
    finally:
        server.shutdown()
        server.server_close()
