"""Plain HTTP to a Kubernetes API server: what was sent is what is in the test, what came back is all of it."""

from __future__ import annotations

import itertools
import json
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from kubekit.kube import config
from kubesandbox.apiserver.http import protobuf

JSON = dict[str, Any]
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True)
class Answer:
    """A response: its code, its JSON, its warnings."""

    code: int
    body: Any
    warnings: tuple[str, ...]
    headers: httpx.Headers

    def ok(self) -> Any:
        """The body of an answer that must be a success."""
        assert 200 <= self.code < 300, f"{self.code}: {self.body}"
        return self.body

    @property
    def message(self) -> str:
        """The message of a Status."""
        return str(self.body["message"])

    @property
    def failure(self) -> tuple[int, str, str]:
        """Code, reason and message of a failure."""
        assert self.body.get("kind") == "Status", self.body
        assert self.body["code"] == self.code
        return self.code, self.body.get("reason", ""), self.body["message"]


class Api:
    """One user's connection to one server."""

    def __init__(self, name: str, kubeconfig: str, headers: dict[str, str] | None = None) -> None:
        self.name = name
        self.kubeconfig = kubeconfig
        loaded = config.load(kubeconfig)
        context = ssl.create_default_context(cadata=loaded.ca_data.decode())
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            file.write(loaded.client_cert + loaded.client_key)
            file.flush()
            context.load_cert_chain(file.name)
        self._http = httpx.Client(base_url=loaded.server, verify=context, headers=headers, timeout=90)

    def impersonating(self, user: str, *groups: str) -> Api:
        """The same connection in another's name."""
        made = Api(self.name, self.kubeconfig, {"Impersonate-User": user})
        if groups:
            made._http.headers = httpx.Headers(
                [("Impersonate-User", user), *(("Impersonate-Group", g) for g in groups)]
            )
        return made

    def close(self) -> None:
        """End it."""
        self._http.close()

    def send(
        self, method: str, path: str, body: Any = None, *, type_: str = "application/json", **query: Any
    ) -> Answer:
        """Any request; `query` may hold `accept` for the header."""
        accept = query.pop("accept", "application/json")
        content = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
        headers = {"Accept": accept} | ({"Content-Type": type_} if content is not None else {})
        answer = self._http.request(method, path, content=content, headers=headers, params=query)
        return _answer(answer)

    def get(self, path: str, **query: Any) -> Answer:
        """GET."""
        return self.send("GET", path, **query)

    def post(self, path: str, body: Any, **query: Any) -> Answer:
        """POST."""
        return self.send("POST", path, body, **query)

    def put(self, path: str, body: Any, **query: Any) -> Answer:
        """PUT."""
        return self.send("PUT", path, body, **query)

    def delete(self, path: str, body: Any = None, **query: Any) -> Answer:
        """DELETE; `body` is a DeleteOptions."""
        return self.send("DELETE", path, body, **query)

    def merge(self, path: str, patch: Any, **query: Any) -> Answer:
        """A merge patch."""
        return self.send("PATCH", path, patch, type_=MERGE, **query)

    def strategic(self, path: str, patch: Any, **query: Any) -> Answer:
        """A strategic merge patch."""
        return self.send("PATCH", path, patch, type_=STRATEGIC, **query)

    def json_patch(self, path: str, *operations: JSON, **query: Any) -> Answer:
        """A JSON patch."""
        return self.send("PATCH", path, list(operations), type_=JSON_PATCH, **query)

    def apply(self, path: str, body: JSON, manager: str, **query: Any) -> Answer:
        """A server-side apply."""
        return self.send("PATCH", path, body, type_=APPLY, fieldManager=manager, **query)

    @contextmanager
    def watch(self, path: str, **query: Any) -> Iterator[Iterator[JSON]]:
        """The events of a watch, one at a time; it ends by itself after `timeoutSeconds`."""
        params = {"watch": "1", "timeoutSeconds": "5", **query}
        with self._http.stream("GET", path, params=params) as answer:
            yield (json.loads(line) for line in answer.iter_lines())

    def events(self, path: str, events: int = 1, **query: Any) -> Answer:
        """A watch's first events; fewer if it ends before."""
        accept = {"Accept": query.pop("accept", "application/json")}
        params = {"watch": "1", "timeoutSeconds": "3", **query}
        with self._http.stream("GET", path, params=params, headers=accept) as answer:
            if answer.status_code != 200:
                answer.read()
                return _answer(answer)
            if is_protobuf(answer.headers):
                seen = list(itertools.islice(_decode_events(answer.iter_raw()), events))
            else:
                seen = [json.loads(line) for line in itertools.islice(answer.iter_lines(), events)]
        return Answer(200, {"events": seen}, tuple(answer.headers.get_list("Warning")), answer.headers)


def is_protobuf(headers: httpx.Headers) -> bool:
    """Whether an answer is in Kubernetes' protobuf encoding; its body is then what it is in JSON."""
    return bool(headers.get("content-type", "").startswith(protobuf.MEDIA_TYPE))


def _decode_events(chunks: Iterator[bytes]) -> Iterator[JSON]:
    """The events of a watch in protobuf: after four bytes with the length, field 1 is the type, 2 holds the object."""
    data = b""
    for chunk in chunks:
        data += chunk
        while len(data) >= 4 and len(data) >= 4 + (size := int.from_bytes(data[:4])):
            frame, data = data[4 : 4 + size], data[4 + size :]
            event = dict(protobuf.read_fields(frame))
            ((_, obj),) = protobuf.read_fields(event[2])
            yield {"type": event[1].decode(), "object": protobuf.decode_protobuf(obj)}


def _answer(answer: httpx.Response) -> Answer:
    try:
        body = protobuf.decode_protobuf(answer.content) if is_protobuf(answer.headers) else answer.json()
    except ValueError:
        body = answer.text
    return Answer(answer.status_code, body, tuple(answer.headers.get_list("Warning")), answer.headers)


def managed(obj: JSON) -> JSON:
    """Manager and operation (and subresource) -> the fields that it owns."""
    entries = obj["metadata"].get("managedFields", ())
    return {
        " ".join(filter(None, (e["manager"], e["operation"], e.get("subresource")))): e["fieldsV1"] for e in entries
    }


def strip(obj: JSON) -> JSON:
    """An object without what differs from run to run."""
    varying = ("uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace")
    metadata = {key: value for key, value in obj["metadata"].items() if key not in varying}
    return {**obj, "metadata": metadata}
