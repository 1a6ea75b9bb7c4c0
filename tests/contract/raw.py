"""Requests that no HTTP client would send: any bytes as path, headers and body, to one server.

`Raw.send` returns what two servers must agree on: the code, the reason of a Status, and the names of the objects.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from kubekit.kube import config

Headers = Sequence[tuple[str, bytes]]
# A watch has no end: its answer is its code, once nothing follows for so long.
_SILENCE_S = 0.3
_DEADLINE_S = 30.0


@dataclass(frozen=True)
class Request:
    """A request as it goes over the wire; `uri` is the path with its query."""

    method: str
    uri: bytes
    headers: Headers = ()
    body: bytes = b""

    def __str__(self) -> str:
        headers = "".join(f" {name}: {value!r}" for name, value in self.headers)
        return f"{self.method} {self.uri!r}{headers} {self.body[:600]!r}"


@dataclass(frozen=True)
class Answer:
    """The parts of an answer on which servers must agree; `message` is for people, `body` the JSON of a success."""

    code: int
    reason: str = ""
    names: tuple[str, ...] = ()
    message: str = field(default="", compare=False)
    body: Any = field(default=None, compare=False)

    def __str__(self) -> str:
        return " ".join(filter(None, (str(self.code), self.reason, *self.names, self.message[:400])))


class Raw:
    """A connection to one server, as the user of a kubeconfig or by a bearer token."""

    def __init__(self, kubeconfig: str, token: str = "") -> None:
        loaded = config.load(kubeconfig)
        self._context = ssl.create_default_context(cadata=loaded.ca_data.decode())
        self._token = token
        if not token:
            with tempfile.NamedTemporaryFile(suffix=".pem") as file:
                file.write(loaded.client_cert + loaded.client_key)
                file.flush()
                self._context.load_cert_chain(file.name)
        host, _, port = loaded.server.removeprefix("https://").partition(":")
        self._address = host, int(port)
        self._socket: ssl.SSLSocket | None = None

    def close(self) -> None:
        """Ends the connection; the next request opens another."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def send(self, request: Request) -> Answer:
        """Sends a request, on another connection if the server has closed the last one; code 0 without an answer."""
        for _ in range(2):
            try:
                return self._exchange(request)
            except (OSError, http.client.HTTPException) as error:
                self.close()
                why = repr(error)
        return Answer(0, message=why)

    def _exchange(self, request: Request) -> Answer:
        if self._socket is None:
            plain = socket.create_connection(self._address, timeout=_DEADLINE_S)
            self._socket = self._context.wrap_socket(plain, server_hostname=self._address[0])
        headers = [("Host", self._address[0].encode()), *request.headers]
        if self._token:
            headers.append(("Authorization", f"Bearer {self._token}".encode()))
        if request.body or request.method in {"POST", "PUT", "PATCH"}:
            headers.append(("Content-Length", str(len(request.body)).encode()))
        head = b"".join(name.encode() + b": " + value + b"\r\n" for name, value in headers)
        self._socket.settimeout(_DEADLINE_S)
        self._socket.sendall(request.method.encode() + b" " + request.uri + b" HTTP/1.1\r\n" + head + b"\r\n")
        # A server may answer, and close the connection, before it has read the body.
        with contextlib.suppress(OSError):
            self._socket.sendall(request.body)
        response = http.client.HTTPResponse(self._socket, method=request.method)
        response.begin()
        body, whole = b"", True
        try:
            if response.headers.get("Transfer-Encoding"):
                self._socket.settimeout(_SILENCE_S if response.status == 200 else _DEADLINE_S)
            body = response.read()
        except TimeoutError:
            whole = False
        if response.will_close or not whole:
            self.close()
        return _answer(response.status, body)


def _answer(code: int, body: bytes) -> Answer:
    try:
        # A client that accepts YAML alone gets a Status in YAML.
        value = yaml.load(body, Loader=yaml.CSafeLoader) if body.startswith(b"apiVersion:") else json.loads(body)
    except ValueError:
        return Answer(code, message=body.decode(errors="replace"))
    if not isinstance(value, dict):
        return Answer(code)
    if value.get("kind") == "Status":
        return Answer(code, value.get("reason", ""), message=value.get("message", ""))
    items: list[Any] = value.get("items") or [value]
    return Answer(code, names=tuple(sorted(_name(item) for item in items if _name(item))), body=value)


def _name(item: Any) -> str:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    return str(metadata.get("name", "")) if isinstance(metadata, dict) else ""
