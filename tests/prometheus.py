"""A real Prometheus for tests, where there is one (Debian's package `prometheus`), fed by series that a test sets."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
import yaml
from tests.servers import eventually

PROGRAM, TOOL = shutil.which("prometheus"), shutil.which("promtool")
needed = pytest.mark.skipif(PROGRAM is None, reason="there is no prometheus on PATH (Debian: apt install prometheus)")
tool_needed = pytest.mark.skipif(TOOL is None, reason="there is no promtool on PATH (Debian: apt install prometheus)")


@dataclass
class Fed:
    """A Prometheus at `url` that scrapes `series` (`name{labels}` -> value) five times a second."""

    url: str
    series: dict[str, float] = field(default_factory=dict)

    def get(self, path: str) -> Any:
        """An answer of its API."""
        with urlopen(self.url + path, timeout=90) as answer:
            return json.loads(answer.read())

    def firing(self) -> set[str]:
        """The names of alerts that fire."""
        found = self.get("/api/v1/alerts")["data"]["alerts"]
        return {alert["labels"]["alertname"] for alert in found if alert["state"] == "firing"}


@contextmanager
def prometheus(folder: Path, rules: list[dict[str, Any]]) -> Iterator[Fed]:
    """Run one on a separate port; `rules` are alerting rules."""
    fed = Fed("")
    with _exporter(fed) as target:
        (folder / "rules.yml").write_text(yaml.safe_dump({"groups": [{"name": "test", "rules": rules}]}))
        config = {
            "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms", "evaluation_interval": "200ms"},
            "rule_files": ["rules.yml"],
            "scrape_configs": [{"job_name": "test", "static_configs": [{"targets": [target]}]}],
        }
        (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
        process = None
        try:
            # Somebody else may take the port in between; then it ends at once, and another is tried.
            for _ in range(5):
                process, fed.url = _start(folder)
                if _answers(process, fed.url):
                    break
            yield fed
        finally:
            if process is not None:
                process.terminate()
                process.wait(90)


def _start(folder: Path) -> tuple[subprocess.Popen[bytes], str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        str(PROGRAM),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--query.lookback-delta=2s",
    ]
    with (folder / "prometheus.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log), f"http://127.0.0.1:{port}"


def _answers(process: subprocess.Popen[bytes], url: str) -> bool:
    def ready() -> bool:
        if process.poll() is not None:
            return True
        try:
            return bool(urlopen(f"{url}/-/ready", timeout=90).status == 200)
        except (URLError, OSError):
            return False

    eventually(ready, "prometheus answers")
    return process.poll() is None


@contextmanager
def _exporter(fed: Fed) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = "".join(f"{name} {value}\n" for name, value in fed.series.items()).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
