"""Reads signatures from their stores (ConfigMaps, a folder, a web server), and stores verified ones in the cluster.

A store that does not answer is queried once, not for each number: nine timeouts give no result, and the next store may
have the signature. A store whose `ca` cannot be used is not queried at all: no other CAs must be trusted in its place.

Verified signatures are stored because stores may be unreachable the next time: ConfigMap
`openshift-config-managed/signatures-managed`, keys `<algorithm>-<hash>-<number>` (docs/reference/upstream.md 8.2).
Signatures that an earlier operator stored stay, up to 64 digests; they are verified again like any other.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncGenerator, Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import aiohttp
import structlog

from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.http.proxies import Egress
from kubekit.http.tls import client_context
from kubekit.kube import api_errors, calls
from kubekit.kube.client import Client
from kubekit.oci.signatures import MAX_SIGNATURE_BYTES, MAX_SIGNATURES, Verification, Verified
from runup.api.config_v1 import SignatureStore
from runup.process import http_fetch, threads
from runup.process.cluster_egress import EgressSource

NAMESPACE = "openshift-config-managed"
LABEL = "release.openshift.io/verification-signatures"
TIMEOUT_S = 30.0
_CA_NAMESPACE, _CA_KEY = "openshift-config", "ca.crt"

Signatures = AsyncGenerator[tuple[str, bytes], None]
"""Source and content of each signature."""


async def read_config_maps(client: Client, verification: Verification) -> Signatures:
    """Yields the signatures in the cluster's own ConfigMaps."""
    prefix = verification.digest.replace(":", "-")
    try:
        listing = await client.listing(ConfigMap, NAMESPACE, label_selector=LABEL)
    except (api_errors.KubeError, DecodeError) as error:
        verification.note(f"ConfigMaps in {NAMESPACE}: {error}")
        return
    for bad in listing.undecoded:
        verification.note(f"ConfigMap {bad}")
    for config_map in listing.items:
        for key, value in sorted(config_map.binary_data.items()):
            if key.startswith(prefix):
                yield f"ConfigMap {config_map.metadata.name}/{key}", bytes_of(value)


async def read_store(
    client: Client, store: SignatureStore, verification: Verification, egress: EgressSource
) -> Signatures:
    """Yields the signatures of a store, numbered from 1, until one is missing or the store does not answer."""
    try:
        context = await _authorities(client, store.ca.name) if store.ca.name else None
    except (api_errors.KubeError, DecodeError, ValueError) as error:
        verification.note(f"{store.url}: it is not asked, its ca cannot be used: {error}")
        return
    folder = f"{store.url.rstrip('/')}/{verification.digest.replace(':', '=')}"
    for number in range(1, MAX_SIGNATURES + 1):
        url = f"{folder}/signature-{number}"
        try:
            signature = await fetch_signature(url, context, await egress())
        # The store does not answer, so the other numbers are not tried.
        except (aiohttp.ClientConnectionError, TimeoutError) as error:
            verification.note(f"{url}: {reason_of(error)}")
            return
        except (aiohttp.ClientError, OSError) as error:
            verification.note(f"{url}: {reason_of(error)}")
            continue
        if signature is None:
            verification.note(f"{url}: not found")
            return
        yield url, signature


def bytes_of(value: bytes | str) -> bytes:
    """Returns a value of `binaryData`, decoded."""
    return base64.b64decode(value) if isinstance(value, str) else value


async def _authorities(client: Client, name: str) -> ssl.SSLContext:
    """Returns a context that trusts the CAs of ConfigMap `name` only; raises KubeError, DecodeError, ValueError."""
    config_map = await client.send(calls.get(ConfigMap, name, _CA_NAMESPACE))
    text = config_map.data.get(_CA_KEY, "")
    if not text:
        raise ValueError(f"ConfigMap {_CA_NAMESPACE}/{name} has no {_CA_KEY}")
    try:
        return client_context(text)
    except ssl.SSLError as error:
        raise ValueError(
            f"ConfigMap {_CA_NAMESPACE}/{name}: {_CA_KEY} contains no certificate: {error.reason}"
        ) from error


def reason_of(error: Exception) -> str:
    """Returns why a store could not be read, in words."""
    return str(error) or (f"no answer within {TIMEOUT_S:g} s" if isinstance(error, TimeoutError) else repr(error))


async def fetch_signature(url: str, context: ssl.SSLContext | None, egress: Egress) -> bytes | None:
    """Returns the signature at `url`, or None; raises ClientError, OSError, TimeoutError."""
    if url.startswith("file:"):
        path = Path(unquote(urlsplit(url).path))

        def read() -> bytes | None:
            """Returns the file's bytes, one more than allowed at most; None if there is no such file."""
            try:
                with path.open("rb") as file:
                    return file.read(MAX_SIGNATURE_BYTES + 1)
            except FileNotFoundError:
                return None

        return await threads.in_thread(read, f"read {url}")
    page = await http_fetch.fetch(url, within_s=TIMEOUT_S, limit=MAX_SIGNATURE_BYTES, egress=egress, context=context)
    if page.status == 404:
        return None
    if page.status >= 400:
        raise aiohttp.ClientPayloadError(f"unexpected HTTP status: {page.status}")
    return page.body


log = structlog.get_logger("releases")
NAME = "signatures-managed"
MOST_DIGESTS = 64
# A ConfigMap holds 1 MiB, as base64.
MOST_BYTES = 512 * 1024
MANAGER = "cluster-version-operator-signatures"


def merge_signatures(
    kept_signatures: Mapping[str, bytes], digest: str, signatures: Iterable[bytes]
) -> dict[str, bytes]:
    """Returns `kept_signatures` plus the signatures of `digest`; beyond the limits the first others are dropped."""
    prefix = digest.replace(":", "-")
    new = {f"{prefix}-{number}": signature for number, signature in enumerate(signatures)}
    groups: dict[str, dict[str, bytes]] = {}
    for key, value in kept_signatures.items():
        groups.setdefault(key.rpartition("-")[0], {})[key] = value
    groups.pop(prefix, None)
    size = _size(new)
    chosen_signatures: list[dict[str, bytes]] = []
    for group in reversed(list(groups.values())):
        size += _size(group)
        if len(chosen_signatures) + 1 == MOST_DIGESTS or size > MOST_BYTES:
            break
        chosen_signatures.append(group)
    return {key: value for group in (*reversed(chosen_signatures), new) for key, value in group.items()}


async def store_signatures(client: Client, verified: Verified) -> None:
    """Stores the verified signatures. A failure is only logged: the result of the verification stands."""
    try:
        try:
            config_map = await client.send(calls.get(ConfigMap, NAME, NAMESPACE))
            stored_signatures = {key: bytes_of(value) for key, value in config_map.binary_data.items()}
        except api_errors.NotFound:
            stored_signatures = {}
        signatures = merge_signatures(stored_signatures, verified.digest, verified.signatures)
        if signatures == stored_signatures:
            return
        data = {key: base64.b64encode(value).decode() for key, value in signatures.items()}
        obj = {"metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {LABEL: ""}}, "binaryData": data}
        await client.send(calls.apply(resource_of(ConfigMap), obj, field_manager=MANAGER, force=True))
    except (api_errors.KubeError, DecodeError) as error:
        log.warning("the signatures of a release are not kept", digest=verified.digest, why=str(error))


def _size(group: Mapping[str, bytes]) -> int:
    return sum(len(key) + len(value) for key, value in group.items())
