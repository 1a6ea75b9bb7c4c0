"""The servers next to a sandbox's cluster: a registry that serves one OCI layout, and the update service.

The registry speaks the OCI distribution protocol (pull, push, tags) over plain HTTP on loopback; every repository name
shows the same layout. It also serves signatures, as a signature store does: `/signatures/<algo>=<hash>/signature-<n>`,
and the documentation of risks (`/docs/checks/<name>`), to which the sandbox's releases link. Everybody on the machine
may read, and only `writers` may write, by Basic authentication; without writers, nobody. With `users` it requires one
of them for everything but signatures. The update service serves the scenario's graph as a Cincinnati server does.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from uuid import uuid4

from aiohttp import encode_basic_auth, web
from aiohttp.typedefs import Handler

from kubekit.http.limited_site import LimitedSite, Limits
from kubekit.oci import images
from kubekit.oci.layout import BlobWriter, Layout, media_type_of
from kubekit.oci.reference import is_digest, is_tag, sha256
from kubekit.oci.registry_errors import BadImage, CannotWrite, ImageNotFound
from runup.checks import risk_pages

# Restricts the path, so that it cannot lead out of the folder.
_SIGNATURE = re.compile(r"[a-z0-9]+=[a-f0-9]+/signature-[1-9][0-9]*")
_PIECE = 1 << 20
# The size limit of a pushed manifest; blobs are limited by the disk only.
_MAX_BODY = images.MAX_DOCUMENT_BYTES
_READS = frozenset({"GET", "HEAD", "OPTIONS"})
_CHALLENGE = 'Basic realm="runup sandbox"'
_WRITER = "runup"


class Registry:
    """A server of `layout` on 127.0.0.1; an async context manager. `port` 0 takes a free one."""

    def __init__(
        self,
        layout: Path,
        *,
        port: int = 0,
        signatures: Path | None = None,
        users: Mapping[str, str] | None = None,
        writers: Mapping[str, str] | None = None,
    ) -> None:
        self._layout = Layout.create(layout)
        self._port = port
        self._signatures = signatures
        self._readers = _logins(users)
        self._writers = [*self._readers, *_logins(writers)]
        self._uploads: dict[str, _Upload] = {}
        self._runner: web.AppRunner | None = None

    @property
    def host(self) -> str:
        """`127.0.0.1:PORT`, as in a pull spec."""
        return f"127.0.0.1:{self._port}"

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`."""
        return f"http://{self.host}"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=_MAX_BODY, middlewares=[self._known_users])
        name = "/v2/{name:[a-z0-9][a-z0-9._/-]*}"
        app.add_routes(
            [
                web.get("/v2/", self._version),
                web.get(name + "/tags/list", self._tags),
                web.get(name + "/manifests/{reference}", self._manifest),
                web.put(name + "/manifests/{reference}", self._put_manifest),
                web.get(name + "/blobs/{digest}", self._blob),
                web.post(name + "/blobs/uploads/", self._start_upload),
                web.patch(name + "/blobs/uploads/{upload}", self._append_chunk),
                web.put(name + "/blobs/uploads/{upload}", self._finish_upload),
                web.get(name + "/blobs/uploads/{upload}", self._upload_status),
                web.get("/signatures/{path:.+}", self._signature),
                web.get("/docs/checks/{name}", self._answer_page),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        # An image of gigabytes may come in one body.
        await LimitedSite(self._runner, "127.0.0.1", self._port, limits=Limits(body_s=3600.0)).start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        for upload in self._uploads.values():
            upload.discard()

    @web.middleware
    async def _known_users(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Lets in whoever has a password; reading needs none unless the registry has one for readers."""
        if not request.path.startswith("/v2/"):
            return await handler(request)
        authorization = request.headers.get("Authorization", "")
        reads = request.method in _READS
        if any(
            hmac.compare_digest(authorization.encode("utf-8", "replace"), login.encode()) for login in self._writers
        ) or (reads and not self._readers):
            response = await handler(request)
        else:
            refusal = "authentication required" if reads else "pushing wants the writer's password"
            response = _error(401, "UNAUTHORIZED", refusal, {})
        if response.status == 401 or request.path == "/v2/":
            # Clients learn from the first answer whether to send a password, even if reading needs none.
            response.headers["WWW-Authenticate"] = _CHALLENGE
        return response

    async def _version(self, _request: web.Request) -> web.Response:
        return web.json_response({}, headers={"Docker-Distribution-API-Version": "registry/2.0"})

    async def _tags(self, request: web.Request) -> web.Response:
        names = {item.annotations.get(images.REF_NAME, "") for item in self._layout.index().manifests}
        return web.json_response({"name": request.match_info["name"], "tags": sorted(names - {""})})

    async def _manifest(self, request: web.Request) -> web.Response:
        """Answers with a manifest, by its tag or digest."""
        reference = request.match_info["reference"]
        try:
            descriptor = self._layout.resolve(reference)
            data = self._layout.read(descriptor.digest)
        except (ImageNotFound, BadImage):
            return _error(404, "MANIFEST_UNKNOWN", "manifest unknown", {"Name": request.match_info["name"]})
        headers = {"Docker-Content-Digest": descriptor.digest, "Content-Type": descriptor.media_type}
        return web.Response(body=data, headers=headers)

    async def _put_manifest(self, request: web.Request) -> web.Response:
        """Stores a manifest; refuses one with a wrong digest or without its blobs."""
        data = await request.read()
        digest, reference = sha256(data), request.match_info["reference"]
        if is_digest(reference) and reference != digest:
            return _error(400, "DIGEST_INVALID", "the manifest's digest is not the one in the path", {"is": digest})
        if not is_digest(reference) and not is_tag(reference):
            return _error(400, "TAG_INVALID", f"{reference!r} is not a tag", {"tag": reference})
        try:
            media_type = request.content_type if "+json" in request.content_type else media_type_of(data)
            if media_type in images.INDEXES:
                parts = [item.digest for item in images.decode_document(images.Index, data, "the index").manifests]
            else:
                manifest = images.decode_document(images.Manifest, data, "the manifest")
                parts = [manifest.config.digest, *(layer.digest for layer in manifest.layers)]
            missing = [part for part in parts if not self._layout.blob(part).is_file()]
            if missing:
                return _error(400, "MANIFEST_BLOB_UNKNOWN", "blob unknown to registry", {"digest": missing[0]})
            self._layout.add_blob(data)
            name = "" if is_digest(reference) else reference
            self._layout.add_manifest(images.Descriptor(media_type=media_type, digest=digest, size=len(data)), name)
        except BadImage as error:
            return _error(400, "MANIFEST_INVALID", str(error), {})
        except CannotWrite as error:
            return _error(507, "UNKNOWN", str(error), {})
        location = f"/v2/{request.match_info['name']}/manifests/{digest}"
        return web.Response(status=201, headers={"Location": location, "Docker-Content-Digest": digest})

    async def _blob(self, request: web.Request) -> web.StreamResponse:
        """Answers with a blob."""
        digest = request.match_info["digest"]
        try:
            path = self._layout.blob(digest)
        except BadImage as error:
            return _error(400, "DIGEST_INVALID", str(error), {})
        if not path.is_file():
            return _error(404, "BLOB_UNKNOWN", "blob unknown to registry", {"digest": digest})
        headers = {"Docker-Content-Digest": digest, "Content-Type": "application/octet-stream"}
        return web.FileResponse(path, headers=headers)  # answers HEAD and ranges too

    async def _start_upload(self, request: web.Request) -> web.Response:
        """Begins the upload of a blob, or ends it at once if the blob is known or comes with the request."""
        digest = request.query.get("mount", "")
        if digest and is_digest(digest) and self._layout.blob(digest).is_file():
            return self._stored_response(request, digest)  # every repository shows the same blobs
        upload = uuid4().hex
        self._uploads[upload] = _Upload(self._layout)
        if "digest" in request.query:
            return await self._finish_with_body(request, upload)
        return self._accepted(request, upload, 202)

    async def _append_chunk(self, request: web.Request) -> web.Response:
        """Appends the body to an upload, and answers 202."""
        upload = request.match_info["upload"]
        if upload not in self._uploads:
            return _error(404, "BLOB_UPLOAD_UNKNOWN", "blob upload unknown to registry", {})
        if problem := await self._append_body(request, upload):
            return problem
        return self._accepted(request, upload, 202)

    async def _upload_status(self, request: web.Request) -> web.Response:
        upload = request.match_info["upload"]
        if upload not in self._uploads:
            return _error(404, "BLOB_UPLOAD_UNKNOWN", "blob upload unknown to registry", {})
        return self._accepted(request, upload, 204)

    async def _finish_upload(self, request: web.Request) -> web.Response:
        upload = request.match_info["upload"]
        if upload not in self._uploads:
            return _error(404, "BLOB_UPLOAD_UNKNOWN", "blob upload unknown to registry", {})
        return await self._finish_with_body(request, upload)

    async def _finish_with_body(self, request: web.Request, upload: str) -> web.Response:
        """Ends an upload with the request's body, if its digest is right."""
        if problem := await self._append_body(request, upload):
            return problem
        pending = self._uploads.pop(upload)
        try:
            digest = pending.writer.commit(request.query.get("digest", ""))
        except BadImage as error:
            return _error(400, "DIGEST_INVALID", str(error), {})
        except CannotWrite as error:
            return _error(507, "UNKNOWN", str(error), {})
        finally:
            pending.discard()
        return self._stored_response(request, digest)

    async def _append_body(self, request: web.Request, upload: str) -> web.Response | None:
        """Appends the request's body to an upload; returns the error, None if it was stored."""
        start = request.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
        if start and start != str(self._uploads[upload].size):
            return _error(416, "BLOB_UPLOAD_INVALID", "the pieces of a blob come in order", {"from": start})
        try:
            async for piece in request.content.iter_chunked(_PIECE):
                self._uploads[upload].write(piece)
        except CannotWrite as error:
            self._uploads.pop(upload).discard()
            return _error(507, "UNKNOWN", str(error), {})
        return None

    def _accepted(self, request: web.Request, upload: str, status: int) -> web.Response:
        location = f"/v2/{request.match_info['name']}/blobs/uploads/{upload}"
        size = self._uploads[upload].size
        headers = {"Location": location, "Docker-Upload-UUID": upload, "Range": f"0-{max(size - 1, 0)}"}
        return web.Response(status=status, headers=headers)

    def _stored_response(self, request: web.Request, digest: str) -> web.Response:
        location = f"/v2/{request.match_info['name']}/blobs/{digest}"
        return web.Response(status=201, headers={"Location": location, "Docker-Content-Digest": digest})

    async def _answer_page(self, request: web.Request) -> web.StreamResponse:
        text = risk_pages.find(request.match_info["name"])
        return web.Response(text=text, content_type="text/plain") if text else web.Response(status=404)

    async def _signature(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        if self._signatures is None or not _SIGNATURE.fullmatch(path) or not (self._signatures / path).is_file():
            return web.Response(status=404)
        return web.FileResponse(self._signatures / path, headers={"Content-Type": "application/octet-stream"})


def load_or_create_writer(file: Path) -> dict[str, str]:
    """Returns name and password of the user who may push, from `file` or newly generated."""
    with suppress(OSError, ValueError, KeyError, AttributeError, StopIteration):
        entry = next(iter(json.loads(file.read_bytes())["auths"].values()))
        user, _, password = base64.b64decode(entry["auth"]).decode().partition(":")
        if user and password:
            return {user: password}
    return {_WRITER: secrets.token_urlsafe(32)}


def write_credentials_file(file: Path, host: str, writers: Mapping[str, str]) -> None:
    """Writes the credentials for `host` as docker, skopeo and `--registry-config` read them; raises OSError.

    Only the owner may read the file.
    """
    (user, word), *_ = writers.items()
    auths = {host: {"auth": base64.b64encode(f"{user}:{word}".encode()).decode()}}
    # Written aside with mode 0600 and renamed, so that no other user can read it and no reader sees half of it.
    new = file.with_name(f".{file.name}.new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as out:  # noqa: PTH123
        json.dump({"auths": auths}, out)
    new.rename(file)


def _logins(users: Mapping[str, str] | None) -> list[str]:
    return [encode_basic_auth(user, password) for user, password in (users or {}).items()]


class _Upload:
    """A blob that is being uploaded; it is discarded unless its writer was committed."""

    def __init__(self, layout: Layout) -> None:
        self._scope = layout.incoming()
        self.writer: BlobWriter = self._scope.__enter__()
        self.size = 0

    def write(self, data: bytes) -> None:
        self.writer.write(data)
        self.size += len(data)

    def discard(self) -> None:
        self._scope.__exit__(None, None, None)


def _error(status: int, code: str, message: str, detail: dict[str, Any]) -> web.Response:
    return web.json_response({"errors": [{"code": code, "message": message, "detail": detail}]}, status=status)


JSON = dict[str, Any]
CHANNELS = "io.openshift.upgrades.graph.release.channels"


class UpdateService:
    """A server of `graph()` at /graph on 127.0.0.1; an async context manager. `port` 0 takes a free one."""

    def __init__(self, graph: Callable[[], JSON], *, port: int = 0) -> None:
        self._graph = graph
        self._port = port
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        """The URL for `--update-service`."""
        return f"http://127.0.0.1:{self._port}/graph"

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.add_routes([web.get("/graph", self._answer_request)])
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await self._runner.setup()
        await LimitedSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _answer_request(self, request: web.Request) -> web.Response:
        if "channel" not in request.query:
            body = {"kind": "missing_params", "value": "mandatory client parameters missing: channel"}
            return web.json_response(body, status=400)
        return web.json_response(graph_of_channel(self._graph(), request.query["channel"]))


def graph_of_channel(graph: JSON, channel: str) -> JSON:
    """Returns the part of `graph` whose releases are in `channel`; a release without channels is in all of them."""
    channels = [node["metadata"].get(CHANNELS) for node in graph["nodes"]]
    kept_nodes = [number for number, of_node in enumerate(channels) if not of_node or channel in of_node.split(",")]
    renumbered = {old: new for new, old in enumerate(kept_nodes)}
    versions = {graph["nodes"][number]["version"] for number in kept_nodes}
    conditional = []
    for group in graph["conditionalEdges"]:
        edges = [edge for edge in group["edges"] if edge["from"] in versions and edge["to"] in versions]
        if edges:
            conditional.append({**group, "edges": edges})
    return {
        "version": graph["version"],
        "nodes": [graph["nodes"][number] for number in kept_nodes],
        "edges": [[renumbered[a], renumbered[b]] for a, b in graph["edges"] if a in renumbered and b in renumbered],
        "conditionalEdges": conditional,
    }
