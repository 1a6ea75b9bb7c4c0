"""Stores of signatures, one at a time: ConfigMaps of the cluster, a folder, a web server with its own authorities.

A store that does not answer is asked once, not once for each number: nine times the time limit is no verdict, and the
next store may have the signature. One whose `ca` cannot be used is not asked at all: whoever named authorities wants
no others to count.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncGenerator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import aiohttp

from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import ConfigMap
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.errors import KubeError
from kubekit.oci.signatures import MAX_SIGNATURE_BYTES, Verification
from kubekit.oci.stores import MAX_SIGNATURES
from runup.api.config_v1 import SignatureStore
from runup.process import web
from runup.process.threads import in_thread

NAMESPACE = "openshift-config-managed"
LABEL = "release.openshift.io/verification-signatures"
TIMEOUT_S = 30.0
_CA_NAMESPACE, _CA_KEY = "openshift-config", "ca.crt"

Signatures = AsyncGenerator[tuple[str, bytes], None]
"""Where it was found, and the signature."""


async def of_config_maps(client: Client, verification: Verification) -> Signatures:
    """What the cluster itself keeps."""
    prefix = verification.digest.replace(":", "-")
    try:
        listed = await client.listing(ConfigMap, NAMESPACE, label_selector=LABEL)
    except (KubeError, DecodeError) as error:
        verification.note(f"ConfigMaps in {NAMESPACE}: {error}")
        return
    for bad in listed.undecoded:
        verification.note(f"ConfigMap {bad}")
    for config_map in listed.items:
        for key, value in sorted(config_map.binary_data.items()):
            if key.startswith(prefix):
                yield f"ConfigMap {config_map.metadata.name}/{key}", bytes_of(value)


async def of_store(client: Client, store: SignatureStore, verification: Verification) -> Signatures:
    """What is numbered from 1 on in a store, until one is missing or the store does not answer."""
    try:
        context = await _authorities(client, store.ca.name) if store.ca.name else None
    except (KubeError, DecodeError, ValueError) as error:
        verification.note(f"{store.url}: it is not asked, its ca cannot be used: {error}")
        return
    folder = f"{store.url.rstrip('/')}/{verification.digest.replace(':', '=')}"
    for number in range(1, MAX_SIGNATURES + 1):
        url = f"{folder}/signature-{number}"
        try:
            signature = await _fetch(url, context)
        except (aiohttp.ClientConnectionError, TimeoutError) as error:
            verification.note(f"{url}: {_why(error)}")
            return
        except (aiohttp.ClientError, OSError) as error:
            verification.note(f"{url}: {_why(error)}")
            continue
        if signature is None:
            verification.note(f"{url}: not found")
            return
        yield url, signature


def bytes_of(value: bytes | str) -> bytes:
    """A value of `binaryData`."""
    return base64.b64decode(value) if isinstance(value, str) else value


async def _authorities(client: Client, name: str) -> ssl.SSLContext:
    """Those of ConfigMap `name`, and no others; raises KubeError, DecodeError, ValueError."""
    found = await client.send(calls.get(ConfigMap, name, _CA_NAMESPACE))
    text = found.data.get(_CA_KEY, "")
    if not text:
        raise ValueError(f"ConfigMap {_CA_NAMESPACE}/{name} has no {_CA_KEY}")
    try:
        return ssl.create_default_context(cadata=text)
    except ssl.SSLError as error:
        raise ValueError(f"ConfigMap {_CA_NAMESPACE}/{name}: {_CA_KEY} holds no certificate: {error.reason}") from error


def _why(error: Exception) -> str:
    return str(error) or (f"no answer within {TIMEOUT_S:g} s" if isinstance(error, TimeoutError) else repr(error))


async def _fetch(url: str, context: ssl.SSLContext | None) -> bytes | None:
    """The signature at `url`, None where there is none; raises ClientError, OSError, TimeoutError."""
    if url.startswith("file:"):
        path = Path(unquote(urlsplit(url).path))
        return await in_thread(lambda: _read(path), f"read {url}")
    page = await web.fetch(url, within_s=TIMEOUT_S, limit=MAX_SIGNATURE_BYTES, context=context)
    if page.status == 404:
        return None
    if page.status >= 400:
        raise aiohttp.ClientPayloadError(f"unexpected HTTP status: {page.status}")
    return page.body


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(MAX_SIGNATURE_BYTES + 1)
    except FileNotFoundError:
        return None
