"""A registry's HTTP API (distribution-spec 1.1), as far as releases need it: pull into a layout, push out of one.

What arrives is hashed before anything looks at it. Plain HTTP is spoken to loopback addresses only. An image goes into a
`Layout`, which serves as cache: a blob that is there is not fetched again. Decision record 0007 says why not oras.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urljoin

import aiohttp

from runup.oci import images
from runup.oci.errors import BadImage, ImageNotFound, OciError, Unauthorized, Unreachable
from runup.oci.images import Descriptor
from runup.oci.layers import for_architecture
from runup.oci.layout import Layout, media_type_of
from runup.oci.reference import DOCKER_HUB, Reference, sha256

_ACCEPT = ", ".join(sorted(images.MANIFESTS | images.INDEXES))
_CHUNK = 256 * 1024
_PARAMETER = re.compile(r'([a-zA-Z_]+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class RegistryConfig:
    """How to reach registries. `auth` maps registry to base64 of user:password, as in a docker auth file.

    `mirrors` maps `registry/repository` (or a prefix of it) to repositories that are asked first, by digest only.
    """

    auth: Mapping[str, str] = field(default_factory=dict)
    mirrors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    connect_timeout_s: float = 10.0
    read_timeout_s: float = 60.0


def read_auth_file(path: Path) -> dict[str, str]:
    """The `auths` of a docker or podman auth file; raises Unauthorized naming the file where it cannot be read."""
    try:
        auths = json.loads(path.read_bytes()).get("auths", {})
        return {_registry_key(host): entry["auth"] for host, entry in auths.items() if entry.get("auth")}
    except (OSError, ValueError, AttributeError) as error:
        raise Unauthorized(f"{path}: the auth file cannot be read: {error}") from error


class RegistryClient:
    """Pulls and pushes; use as an async context manager."""

    def __init__(self, config: RegistryConfig | None = None) -> None:
        self._config = config or RegistryConfig()
        self._tokens: dict[str, str] = {}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=self._config.connect_timeout_s, sock_read=self._config.read_timeout_s
        )
        # Layers are hashed as they are sent, so nothing may unpack them on the way.
        self._session = aiohttp.ClientSession(timeout=timeout, auto_decompress=False, trust_env=True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def pull(self, reference: Reference, layout: Layout, *, architecture: str = "amd64") -> str:
        """Bring the image and all its blobs into `layout`; gives the digest that was asked for or found.

        The layout knows it by digest. Of several architectures one is fetched. Raises OciError.
        """
        problems: list[str] = []
        for source in self._sources(reference):
            try:
                return await self._pull(source, layout, architecture)
            except (ImageNotFound, Unreachable, Unauthorized, BadImage) as error:
                if source == reference:
                    raise _with_mirrors(error, problems) from error
                problems.append(error.message)
        raise AssertionError("the reference itself is among its sources")

    async def resolve(self, reference: Reference) -> str:
        """The digest of the manifest behind `reference`."""
        return sha256(await self._manifest(reference, reference.digest or reference.tag or "latest"))

    async def push(self, layout: Layout, name: str, target: Reference) -> str:
        """Send the image called `name` in `layout` to `target`; gives its digest. Blobs that are there are not sent."""
        descriptor = layout.resolve(name)
        data = layout.read(descriptor.digest)
        manifest = images.decode(images.Manifest, data, f"manifest {descriptor.digest}")
        for blob in (manifest.config, *manifest.layers):
            await self._push_blob(layout, blob, target)
        url = self._url(target, f"manifests/{target.tag or descriptor.digest}")
        headers = {"Content-Type": descriptor.media_type}
        async with self._request("PUT", url, target, data=data, headers=headers) as response:
            await _expect(response, {200, 201}, f"{target}: manifest")
        return descriptor.digest

    async def _pull(self, reference: Reference, layout: Layout, architecture: str) -> str:
        asked = await self._manifest(reference, reference.digest or reference.tag or "latest")
        digest, media_type = sha256(asked), media_type_of(asked)
        image = asked
        if media_type in images.INDEXES:
            chosen = for_architecture(images.decode(images.Index, asked, str(reference)), architecture, str(reference))
            image = await self._manifest(reference, chosen.digest)
        manifest = images.decode(images.Manifest, image, str(reference))
        for blob in (manifest.config, *manifest.layers):
            await self._pull_blob(reference, blob, layout)
        for document in (image, asked):
            layout.add_blob(document)
        layout.add_manifest(Descriptor(media_type=media_type, digest=digest, size=len(asked)))
        return digest

    async def _manifest(self, reference: Reference, name: str) -> bytes:
        async with self._request(
            "GET", self._url(reference, f"manifests/{name}"), reference, headers={"Accept": _ACCEPT}
        ) as response:
            await _expect(response, {200}, f"{reference}: manifest {name}")
            data = bytearray()
            async for chunk in response.content.iter_chunked(_CHUNK):
                data += chunk
                if len(data) > images.MAX_DOCUMENT_BYTES:
                    raise BadImage(f"{reference}: manifest is larger than {images.MAX_DOCUMENT_BYTES} bytes")
        if name.startswith("sha256:") and sha256(data) != name:
            raise BadImage(f"{reference}: the registry sent a manifest with digest {sha256(data)} instead of {name}")
        return bytes(data)

    async def _pull_blob(self, reference: Reference, blob: Descriptor, layout: Layout) -> None:
        if layout.blob(blob.digest).exists():
            return
        url = self._url(reference, f"blobs/{blob.digest}")
        async with self._request("GET", url, reference) as response:
            await _expect(response, {200}, f"{reference}: blob {blob.digest}")
            with layout.incoming() as writer:
                async for chunk in response.content.iter_chunked(_CHUNK):
                    writer.write(chunk)
                    if writer.size > blob.size:
                        raise BadImage(
                            f"{reference}: blob {blob.digest} is larger than the {blob.size} bytes it claims"
                        )
                if writer.size < blob.size:
                    raise Unreachable(f"{reference}: blob {blob.digest} ended after {writer.size} of {blob.size} bytes")
                writer.commit(blob.digest)

    async def _push_blob(self, layout: Layout, blob: Descriptor, target: Reference) -> None:
        async with self._request("HEAD", self._url(target, f"blobs/{blob.digest}"), target) as response:
            if response.status == 200:
                return
        start = self._url(target, "blobs/uploads/")
        async with self._request("POST", start, target) as response:
            await _expect(response, {202}, f"{target}: upload")
            location = urljoin(start, response.headers.get("Location", ""))
        with layout.open_blob(blob.digest) as stream:
            data = stream.read()
        url = f"{location}{'&' if '?' in location else '?'}digest={blob.digest}"
        headers = {"Content-Type": "application/octet-stream"}
        async with self._request("PUT", url, target, data=data, headers=headers) as response:
            await _expect(response, {200, 201}, f"{target}: blob {blob.digest}")

    def _sources(self, reference: Reference) -> list[Reference]:
        if not reference.digest:
            return [reference]
        name = f"{reference.host}/{reference.path}"
        found: list[Reference] = []
        for prefix, mirrors in sorted(self._config.mirrors.items(), key=lambda item: -len(item[0])):
            if name == prefix or name.startswith(f"{prefix}/"):
                for mirror in mirrors:
                    registry, _, repository = (mirror + name.removeprefix(prefix)).partition("/")
                    found.append(Reference(registry, repository, "", reference.digest))
        return [*found, reference]

    def _url(self, reference: Reference, rest: str) -> str:
        host = "registry-1.docker.io" if reference.host == DOCKER_HUB else reference.host
        return f"{'http' if is_loopback(host) else 'https'}://{host}/v2/{reference.path}/{rest}"

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        url: str,
        reference: Reference,
        *,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        assert self._session is not None, "use the client as a context manager"
        scope = f"{reference.host}/{reference.path}/{'pull' if method in {'GET', 'HEAD'} else 'push'}"
        try:
            for attempt in (1, 2):
                sent = dict(headers or {})
                if scope in self._tokens:
                    sent["Authorization"] = self._tokens[scope]
                response = await self._session.request(method, url, headers=sent, data=data)
                if response.status == 401 and attempt == 1:
                    challenge = response.headers.get("WWW-Authenticate", "")
                    response.release()
                    self._tokens[scope] = await self._authorize(challenge, reference, method)
                    continue
                async with response:
                    yield response
                return
        except aiohttp.ClientConnectorCertificateError as error:
            raise Unreachable(f"{reference}: the certificate of {reference.host} is not trusted: {error}") from error
        except (aiohttp.ClientError, TimeoutError, asyncio.IncompleteReadError) as error:
            raise Unreachable(
                f"{reference}: {reference.host} cannot be reached: {error or type(error).__name__}"
            ) from error

    async def _authorize(self, challenge: str, reference: Reference, method: str) -> str:
        """The Authorization header that answers `challenge`: Basic, or a token asked for in its realm."""
        scheme, _, rest = challenge.partition(" ")
        basic = self._config.auth.get(reference.host, "")
        if scheme.lower() == "basic" and basic:
            return f"Basic {basic}"
        parameters = dict(_PARAMETER.findall(rest))
        realm = parameters.pop("realm", "")
        if scheme.lower() != "bearer" or not realm:
            raise Unauthorized(f"{reference}: {reference.host} wants credentials, and the auth file has none for it")
        if not realm.startswith("https://") and not is_loopback(realm.partition("://")[2].partition("/")[0]):
            raise Unauthorized(f"{reference}: {reference.host} wants its credentials sent over plain HTTP; refused")
        actions = "pull" if method in {"GET", "HEAD"} else "pull,push"
        query = {"scope": f"repository:{reference.path}:{actions}", **parameters}
        headers = {"Authorization": f"Basic {basic}"} if basic else {}
        assert self._session is not None
        async with self._session.get(realm, params=query, headers=headers) as response:
            if response.status != 200:
                raise Unauthorized(
                    f"{reference}: {reference.host} refused a token ({response.status}); check the auth file"
                )
            answer: dict[str, Any] = json.loads(await response.read())
        return f"Bearer {answer.get('token') or answer.get('access_token', '')}"


def is_loopback(host: str) -> bool:
    """Whether `host` (with or without port) is this machine, the only place where plain HTTP is spoken."""
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def pull_sync(reference: Reference, layout: Layout, config: RegistryConfig | None = None) -> str:
    """`RegistryClient.pull` for the command line."""

    async def run() -> str:
        async with RegistryClient(config) as client:
            return await client.pull(reference, layout)

    return asyncio.run(run())


def push_sync(layout: Layout, name: str, target: Reference, config: RegistryConfig | None = None) -> str:
    """`RegistryClient.push` for the command line."""

    async def run() -> str:
        async with RegistryClient(config) as client:
            return await client.push(layout, name, target)

    return asyncio.run(run())


def basic_auth(user: str, password: str) -> str:
    """The value that an auth file holds for `user` and `password`."""
    return base64.b64encode(f"{user}:{password}".encode()).decode()


async def _expect(response: aiohttp.ClientResponse, wanted: set[int], what: str) -> None:
    if response.status in wanted:
        return
    text = " ".join((await response.content.read(2000)).decode("utf-8", "replace").split())
    said = f": {text}" if text else ""
    if response.status == 404:
        raise ImageNotFound(f"{what} is not in the registry{said}")
    if response.status in {401, 403}:
        raise Unauthorized(f"{what}: the registry refused access ({response.status}); check the auth file{said}")
    if response.status >= 500 or response.status == 429:
        raise Unreachable(f"{what}: the registry answered {response.status}{said}")
    raise BadImage(f"{what}: the registry answered {response.status}{said}")


def _with_mirrors(error: OciError, problems: list[str]) -> OciError:
    return (
        type(error)("; ".join([error.message, *(f"mirror: {problem}" for problem in problems)])) if problems else error
    )


def _registry_key(host: str) -> str:
    key = host.removeprefix("https://").removeprefix("http://").partition("/")[0]
    return DOCKER_HUB if key in {"index.docker.io", "registry-1.docker.io"} else key
