"""A small S3 server of one bucket in memory: it lists, and gives objects; each answer takes a while, and is counted."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

PAGE = 1000


class Store:
    """The objects of the bucket by key. `asked` counts requests by method, `at_once` is how many there were at most.

    `throttled`: every read is answered with SlowDown. `gone`: these keys are listed, and are not there.
    """

    def __init__(self, objects: dict[str, bytes], latency_s: float = 0.0) -> None:
        self.objects, self.latency_s = objects, latency_s
        self.asked: Counter[str] = Counter()
        self.at_once, self.running = 0, 0
        self.throttled = False
        self.gone: set[str] = set()
        self.endpoint = ""
        self.lock = threading.Lock()


@contextmanager
def serve_bucket(store: Store) -> Iterator[Store]:
    """Serves the bucket until the block ends."""

    class Handler(_Handler):
        pass

    Handler.store = store
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    store.endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store: Store

    def do_HEAD(self) -> None:
        self._answer("HEAD")

    def do_GET(self) -> None:
        self._answer("GET")

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def _answer(self, method: str) -> None:
        store, address = self.store, urlsplit(self.path)
        query, key = parse_qs(address.query), unquote(address.path).lstrip("/").partition("/")[2]
        with store.lock:
            store.asked["LIST" if "list-type" in query else method] += 1
            store.running += 1
            store.at_once = max(store.at_once, store.running)
        time.sleep(store.latency_s)
        with store.lock:
            store.running -= 1
        if "list-type" in query:
            self._send(200, self._listed(query), "application/xml")
        elif key not in store.objects or key in store.gone:
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>", "application/xml")
        elif store.throttled and method == "GET":
            text = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
            self._send(503, text, "application/xml")
        else:
            self._give(store.objects[key])

    def _listed(self, query: dict[str, list[str]]) -> bytes:
        prefix, delimiter = (query.get(name, [""])[0] for name in ("prefix", "delimiter"))
        after = query.get("continuation-token", [""])[0]
        limit = int(query.get("max-keys", [str(PAGE)])[0])
        found: dict[str, bytes | None] = {}
        for key in sorted(self.store.objects):
            head, cut, _ = key.removeprefix(prefix).partition(delimiter) if delimiter else (key, "", "")
            if key.startswith(prefix):
                found[f"{prefix}{head}{cut}" if cut else key] = None if cut else self.store.objects[key]
        names = [name for name in found if name > after]
        page = names[:limit]
        parts = [f"<IsTruncated>{str(len(names) > limit).lower()}</IsTruncated><KeyCount>{len(page)}</KeyCount>"]
        if len(names) > limit:
            parts.append(f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>")
        for name in page:
            body = found[name]
            if body is None:
                parts.append(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>")
            else:
                tag, size = hashlib.md5(body).hexdigest(), len(body)
                parts.append(
                    f"<Contents><Key>{escape(name)}</Key><LastModified>2026-01-14T09:00:00.000Z</LastModified>"
                    f"<ETag>&quot;{tag}&quot;</ETag><Size>{size}</Size><StorageClass>STANDARD</StorageClass></Contents>"
                )
        space = "http://s3.amazonaws.com/doc/2006-03-01/"
        return f'<ListBucketResult xmlns="{space}">{"".join(parts)}</ListBucketResult>'.encode()

    def _give(self, body: bytes) -> None:
        wanted = self.headers.get("Range", "")
        if not wanted:
            self._send(200, body, "application/octet-stream")
            return
        start, _, end = wanted.removeprefix("bytes=").partition("-")
        self._send(206, body[int(start) : int(end or len(body)) + 1], "application/octet-stream")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", "Wed, 14 Jan 2026 09:00:00 GMT")
        self.send_header("ETag", '"a"')
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
