"""A request and its response, independent of any web framework, so that handlers are plain functions of values.

With them are the representation that the client accepts, and the answers of the health probes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple, Self

import orjson

from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http import protobuf
from kubesandbox.apiserver.http.list_options import Query
from kubesandbox.apiserver.http.request_target import Target, parse_target, split_uri

JSON_TYPE = "application/json"
# Go's strconv.ParseBool.
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
# The answer to a subresource that creates nothing to show.
CREATED: status_errors.JSON = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_MEDIA_TYPES = frozenset({"application/json", "application/*", "*/*", "application/yaml", protobuf.MEDIA_TYPE})
_META, _DISCOVERY = ("meta.k8s.io", ("v1", "v1beta1")), ("apidiscovery.k8s.io", ("v2",))


@dataclass(frozen=True, slots=True)
class User:
    """The authenticated user of a request."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def to_dict(self) -> status_errors.JSON:
        """Returns the user as `authentication.k8s.io/v1` UserInfo."""
        info: status_errors.JSON = {"username": self.name}
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra}
        return info


# Characters of all warnings of an answer, and of each where all of them do not fit (apiserver, filters/warning.go).
_MAX_WARNINGS, _MAX_CUT_WARNING = 4096, 256


class Warnings(list[str]):
    """The distinct warnings of an answer. Warnings that do not fit into its headers are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self._size, self._cut = 0, False

    @property
    def is_full(self) -> bool:
        """Whether no further warning is sent."""
        return self._cut and self._size >= _MAX_WARNINGS

    def append(self, text: str) -> None:
        """Adds a warning, unless it is there or has no room; cuts all of them if they do not fit otherwise."""
        if self.is_full or not text or text in self:
            return
        super().append(text)
        if not self._cut and self._size + len(text) > _MAX_WARNINGS:
            self._cut = True
            self._size = sum(min(len(each), _MAX_CUT_WARNING) for each in self)
        else:
            self._size += min(len(text), _MAX_CUT_WARNING) if self._cut else len(text)

    def extend(self, texts: Iterable[str]) -> None:
        """Adds warnings until there is no room."""
        for text in texts:
            if self.is_full:
                return
            self.append(text)

    def sent(self) -> list[str]:
        """Returns the texts as they are sent."""
        return [text[:_MAX_CUT_WARNING] for text in self] if self._cut else list(self)


@dataclass(slots=True, kw_only=True)
class Request:
    """A request. `target` is what its path means; `headers` has each value of a header by its lower-case name."""

    method: str
    uri: str  # as it was sent, for the logs
    target: Target
    query: Query
    headers: Mapping[str, Sequence[str]]
    _: KW_ONLY
    body: bytes = b""
    # Of the object in the body, for the audit log.
    metadata: Mapping[str, Any] = field(default_factory=dict)
    # Who sent it, and in whose name it is carried out.
    sender: User | None = None
    user: User | None = None
    # Collected while handling, sent as Warning headers.
    warnings: Warnings = field(default_factory=Warnings)
    # Collected by admission, written to the audit log.
    annotations: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, method: str, uri: str, headers: Iterable[tuple[str, str]] = (), body: bytes = b"") -> Self:
        """Parses a request, the one time that this is done. Raises ApiError 400 for a path that is not escaped well.

        Bytes that are not UTF-8 are surrogates in `uri` and `headers`, and U+FFFD afterwards.
        """
        path, query = split_uri(uri := _as_utf8(uri))
        values: dict[str, list[str]] = {}
        for name, value in headers:
            values.setdefault(name.lower(), []).append(_as_utf8(value))
        target = parse_target(method, path, query)
        return cls(method=method, uri=uri, target=target, query=query, headers=values, body=body)

    def header(self, name: str) -> str:
        """Returns a header's first value, or ""."""
        return next(iter(self.headers.get(name, ())), "")


def _as_utf8(text: str) -> str:
    return text if text.isascii() else text.encode(errors="surrogateescape").decode(errors="replace")


@dataclass(slots=True, kw_only=True)
class Response:
    """A response with its whole body, or a streaming one if `stream` is set."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON_TYPE
    _: KW_ONLY
    headers: tuple[tuple[str, str], ...] = ()
    stream: AsyncIterator[bytes] | None = None


def encode_json(value: Any) -> bytes:
    """Returns `value` as JSON; characters that cannot be encoded as UTF-8 are replaced with question marks."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return orjson.dumps(_replace_unencodable(value))


def _replace_unencodable(value: Any) -> Any:
    if isinstance(value, dict):
        return {_replace_unencodable(key): _replace_unencodable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_replace_unencodable(item) for item in value]
    return value.encode(errors="replace").decode() if isinstance(value, str) else value


def json_response(obj: Any, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """Returns a response with `obj` as JSON, which ends with a newline as Go's encoder writes it."""
    return Response(status=status, body=encode_json(obj) + b"\n", headers=headers)


def indented(request: Request, response: Response) -> Response:
    """Returns a response with indented JSON if it was requested, or if the client is a browser, curl or wget.

    As isPrettyPrint in k8s.io/apiserver/pkg/endpoints/handlers/negotiation. A document that does not end with a newline
    was written by something else than Go's encoder of objects.
    """
    if response.stream is not None or response.content_type != JSON_TYPE or not response.body.endswith(b"}\n"):
        return response
    wanted, agent = request.query.get("pretty", ""), request.header("user-agent")
    if wanted not in _TRUE if wanted else not agent.startswith(("curl", "Wget", "Mozilla/5.0")):
        return response
    body = orjson.dumps(orjson.loads(response.body), option=orjson.OPT_INDENT_2)
    return replace(response, body=body)


def wants_protobuf(request: Request, response: Response) -> bool:
    """Returns whether the object of a response is sent in protobuf, since the client accepts nothing else.

    A failure has no other form (ErrorNegotiated in k8s.io/apiserver/pkg/endpoints/handlers/responsewriters).
    """
    accept = request.header("accept")
    if response.stream is not None or response.content_type != JSON_TYPE or protobuf.MEDIA_TYPE not in accept:
        return False
    try:
        return negotiate(accept, OBJECTS if response.status < 400 else frozenset({Form.OBJECT})).as_protobuf
    except status_errors.ApiError:
        return False


def in_protobuf(response: Response) -> Response:
    """Returns a response with its object in protobuf, or as it is if its kind has no such encoding."""
    encoded = protobuf.encode_protobuf(orjson.loads(response.body))
    return response if encoded is None else replace(response, body=encoded, content_type=protobuf.MEDIA_TYPE)


def text_response(text: str, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """Returns a response with plain text, for health endpoints and unknown paths."""
    return Response(status=status, body=text.encode(), content_type="text/plain; charset=utf-8", headers=headers)


class Form(Enum):
    """The representation in a response's body."""

    OBJECT = "object"
    TABLE = "Table"
    PARTIAL = "PartialObjectMetadata"
    PARTIAL_LIST = "PartialObjectMetadataList"
    DISCOVERY = "APIGroupDiscoveryList"


class Accepted(NamedTuple):
    """The negotiated representation; `version` is that of `meta.k8s.io` for its kinds."""

    form: Form = Form.OBJECT
    as_yaml: bool = False
    version: str = "v1"
    as_protobuf: bool = False

    @property
    def as_stored(self) -> bool:
        """Whether stored bytes are sent as they are."""
        return self.form is Form.OBJECT and not self.as_yaml and not self.as_protobuf


# Form -> its group, and the versions of it that the server has.
_FORMS = {
    "Table": (Form.TABLE, *_META),
    "PartialObjectMetadata": (Form.PARTIAL, *_META),
    "PartialObjectMetadataList": (Form.PARTIAL_LIST, *_META),
    "APIGroupDiscoveryList": (Form.DISCOVERY, *_DISCOVERY),
}


# The representations of objects; those of what is answered and never stored, such as a review.
OBJECTS = frozenset({Form.OBJECT, Form.TABLE, Form.PARTIAL, Form.PARTIAL_LIST})
UNSTORED = frozenset({Form.OBJECT, Form.PARTIAL})
DOCUMENTS = frozenset({Form.OBJECT, Form.DISCOVERY})
# A real server has no protobuf of tables, and has that of aggregated discovery, which no client asks for alone.
_NEVER_PROTOBUF = frozenset({Form.TABLE, Form.DISCOVERY})


def check_acceptable(accept: str) -> None:
    """Raises ApiError 406 unless a media type of an Accept header is served, in whatever representation."""
    if accept and not any(clause.split(";")[0].strip() in _MEDIA_TYPES for clause in accept.split(",")):
        raise status_errors.not_acceptable()


@lru_cache(maxsize=256)
def negotiate(accept: str, forms: frozenset[Form] = OBJECTS, *, stream: bool = False) -> Accepted:
    """Returns the first representation of an Accept header that the server supports. Raises ApiError 406.

    Protobuf is chosen only if the header has the same representation in nothing else.
    """
    if not accept:
        return Accepted()
    acceptable = _acceptable(accept, forms, stream=stream)
    return next((each for each in acceptable if each == acceptable[0]._replace(as_protobuf=False)), acceptable[0])


def _acceptable(accept: str, forms: frozenset[Form], *, stream: bool) -> list[Accepted]:
    """Returns the representations that an Accept header names and the server supports. Raises ApiError 406."""
    found: list[Accepted] = []
    refusal: Callable[[], status_errors.ApiError] = status_errors.not_acceptable
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        if media not in _MEDIA_TYPES:
            continue
        as_yaml, as_protobuf = media == "application/yaml", media == protobuf.MEDIA_TYPE
        if stream and as_yaml:
            refusal = status_errors.only_stream_types
            continue
        refusal = status_errors.only_media_types
        options = dict(part.split("=", 1) for part in parameters if "=" in part)
        # Without as= the client accepts the object itself.
        if not options.get("as"):
            found.append(Accepted(as_yaml=as_yaml, as_protobuf=as_protobuf))
            continue
        form, group, versions = _FORMS.get(options["as"], (Form.OBJECT, "", ()))
        if as_protobuf and form in _NEVER_PROTOBUF:
            continue
        if form in forms and (version := options.get("v", "")) in versions and options.get("g") == group:
            found.append(Accepted(form, as_yaml, version, as_protobuf))
    if not found:
        raise refusal()
    return found
