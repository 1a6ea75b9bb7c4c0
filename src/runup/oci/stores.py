"""Where signatures are kept: ConfigMaps in the cluster, folders, and web servers; and the order in which they are asked.

`verify` asks one store after another until every keyring is satisfied. A store that does not answer is noted and the
next one asked: only the verdict at the end counts. Rules: cvo-behaviour 8.2.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit
from urllib.request import url2pathname

from runup.oci.errors import BadImage, CannotWrite, Unverified
from runup.oci.signatures import Keyring, Verification, Verified

MAX_SIGNATURES = 9
"""Signatures tried in one store; numbering starts at 1 and the first gap ends it."""

MAX_SIGNATURE_BYTES = 50_000
STORE_TIMEOUT_S = 20.0


class Store(Protocol):
    """A place with signatures."""

    @property
    def name(self) -> str:
        """What to call it in a message."""

    def signatures(self, digest: str) -> AsyncIterator[bytes]:
        """The signatures for `digest`, in order; raises OSError where the store cannot be asked."""


@dataclass(frozen=True, slots=True)
class ConfigMapStore:
    """Signatures out of ConfigMaps: `values` is their decoded `binaryData`, keys begin with `<algorithm>-<hash>`."""

    values: Mapping[str, bytes]
    name: str = "ConfigMaps in the cluster"

    async def signatures(self, digest: str) -> AsyncIterator[bytes]:
        """Those whose key begins with the digest, in order of the keys."""
        prefix = digest.replace(":", "-", 1)
        for key in sorted(self.values):
            if key == prefix or key.startswith(f"{prefix}-"):
                yield self.values[key]


@dataclass(frozen=True, slots=True)
class FolderStore:
    """`<base>/<algorithm>=<hash>/signature-<n>` on disk."""

    base: Path

    @property
    def name(self) -> str:
        """The folder."""
        return str(self.base)

    async def signatures(self, digest: str) -> AsyncIterator[bytes]:
        """Those numbered from 1 without a gap."""
        for number in range(1, MAX_SIGNATURES + 1):
            try:
                yield self._path(digest, number).read_bytes()[: MAX_SIGNATURE_BYTES + 1]
            except FileNotFoundError:
                return

    def add(self, digest: str, signature: bytes) -> Path:
        """Store one more signature, unless it is there already; raises CannotWrite, BadImage when there are nine."""
        for number in range(1, MAX_SIGNATURES + 1):
            path = self._path(digest, number)
            if path.exists():
                continue
            temporary = path.with_name(f".{path.name}.new")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                temporary.write_bytes(signature)
                temporary.rename(path)
            except OSError as error:
                temporary.unlink(missing_ok=True)
                raise CannotWrite(f"{path}: cannot be written: {error.strerror or error}") from error
            return path
        raise BadImage(f"{self.base}: {digest} has {MAX_SIGNATURES} signatures already, and no more are ever read")

    def _path(self, digest: str, number: int) -> Path:
        return self.base / digest.replace(":", "=", 1) / f"signature-{number}"


@dataclass(frozen=True, slots=True)
class UrlStore:
    """`<base>/<algorithm>=<hash>/signature-<n>` on a web server."""

    base: str

    @property
    def name(self) -> str:
        """The base URL."""
        return self.base

    async def signatures(self, digest: str) -> AsyncIterator[bytes]:
        """Those numbered from 1; 404 ends it, another failure skips that number and is raised at the end."""
        import aiohttp

        failure = ""
        timeout = aiohttp.ClientTimeout(total=STORE_TIMEOUT_S)
        async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
            for number in range(1, MAX_SIGNATURES + 1):
                url = f"{self.base.rstrip('/')}/{digest.replace(':', '=', 1)}/signature-{number}"
                try:
                    async with session.get(url) as response:
                        if response.status == 404:
                            break
                        if response.status == 200:
                            yield await response.content.read(MAX_SIGNATURE_BYTES + 1)
                        else:
                            failure = f"answered {response.status} for signature-{number}"
                except aiohttp.ClientConnectorError as error:
                    raise OSError(f"cannot be reached: {error.strerror or error}") from error
                except aiohttp.ClientError as error:
                    failure = str(error) or type(error).__name__
        if failure:
            raise OSError(failure)


def store_at(location: str) -> Store:
    """The store at `location`: an http(s) or file URL; raises Unverified for anything else."""
    parts = urlsplit(location)
    if parts.scheme in {"http", "https"}:
        return UrlStore(location)
    if parts.scheme == "file":
        return FolderStore(Path(url2pathname(parts.path)))
    raise Unverified(f"signature store {location!r} is neither an http, https nor file URL")


def stores_in_order(
    config_maps: Iterable[Mapping[str, bytes]],
    custom: Sequence[str] | None,
    payload: Sequence[str],
) -> tuple[Store, ...]:
    """Which stores to ask, in order: the cluster's ConfigMaps, then `spec.signatureStores`, else the release's own.

    `custom` is None where the spec sets none. Set, it stands for the release's stores; set to nothing it is an error.
    Raises Unverified.
    """
    if custom is not None and not custom:
        raise Unverified("spec.signatureStores is empty, so no store may be asked: unset it to use the release's own")
    cluster = tuple(ConfigMapStore(values) for values in config_maps)
    return (*cluster, *(store_at(location) for location in (payload if custom is None else custom)))


async def verify(digest: str, keyrings: Iterable[Keyring], stores: Iterable[Store]) -> Verified:
    """`digest` verified by what `stores` hold, asked in order; raises Unverified with every store's answer."""
    verification = Verification(digest, keyrings)
    for store in stores:
        found = 0
        try:
            async with asyncio.timeout(STORE_TIMEOUT_S):
                async for signature in store.signatures(digest):
                    found += 1
                    if len(signature) > MAX_SIGNATURE_BYTES:
                        verification.note(f"{store.name}: signature-{found} is larger than {MAX_SIGNATURE_BYTES} bytes")
                    elif verification.add(signature, f"{store.name}: signature-{found}"):
                        return verification.result()
        except TimeoutError:
            verification.note(f"{store.name}: no answer within {STORE_TIMEOUT_S:g} s")
        except OSError as error:
            verification.note(f"{store.name}: {error}")
        if not found:
            verification.note(f"{store.name}: has no signature for it")
    return verification.result()


def verify_sync(digest: str, keyrings: Iterable[Keyring], stores: Iterable[Store]) -> Verified:
    """`verify` for the command line."""
    return asyncio.run(verify(digest, keyrings, stores))
