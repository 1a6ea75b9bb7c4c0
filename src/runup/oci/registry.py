"""Pulling from and pushing to a registry: the OCI distribution protocol, without credentials.

Loopback is asked by plain HTTP, every other host by HTTPS. Every blob is hashed as it arrives and never named before
it is whole. A registry that asks for credentials gets none, and the error says so.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

from runup.oci import images
from runup.oci.errors import OciError
from runup.oci.images import Descriptor
from runup.oci.layout import Layout, media_type_of
from runup.oci.reference import Reference

TIMEOUT_S = 30.0
_PIECE = 1 << 20
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class RegistryError(OciError):
    """The registry did not give or take what was asked; `reason` is ManifestUnknown where it has no such image."""

    def __init__(self, message: str, *, reason: str = "RegistryError") -> None:
        super().__init__(message)
        self.reason = reason


def resolve(reference: Reference) -> str:
    """The digest that a tag points at now; raises RegistryError."""
    if reference.digest:
        return reference.digest
    answer = _open(reference, "HEAD", f"manifests/{reference.tag or 'latest'}", {"Accept": _ACCEPT})
    with answer:
        digest = answer.headers.get("Docker-Content-Digest", "")
    if not digest:
        raise RegistryError(f"{reference}: the registry does not say which digest the tag has")
    return str(digest)


def pull(reference: Reference, layout: Layout) -> str:
    """Copy an image into `layout` and give its digest; what is there already is not fetched again. Raises OciError."""
    digest = resolve(reference)
    _fetch(reference, f"manifests/{digest}", digest, layout)
    data = layout.read(digest)
    media_type = media_type_of(data)
    if media_type in images.INDEXES:
        for child in images.decode(images.Index, data, digest).manifests:
            pull(reference.at(child.digest), layout)
    else:
        manifest = images.decode(images.Manifest, data, digest)
        for blob in (manifest.config, *manifest.layers):
            _fetch(reference, f"blobs/{blob.digest}", blob.digest, layout)
    layout.add_manifest(Descriptor(media_type=media_type, digest=digest, size=len(data)))
    return digest


def push(layout: Layout, digest: str, reference: Reference) -> None:
    """Copy an image out of `layout` under `reference`; blobs first, so that the name never points at half of it."""
    data = layout.read(digest)
    manifest = images.decode(images.Manifest, data, digest)
    for blob in (manifest.config, *manifest.layers):
        _upload(layout.blob(blob.digest), blob.digest, reference)
    name = reference.tag or digest
    headers = {"Content-Type": media_type_of(data)}
    _open(reference, "PUT", f"manifests/{name}", headers, data).close()


_ACCEPT = ", ".join(sorted(images.MANIFESTS | images.INDEXES))


def _fetch(reference: Reference, path: str, digest: str, layout: Layout) -> None:
    if layout.blob(digest).is_file():
        return
    with _open(reference, "GET", path, {"Accept": f"{_ACCEPT}, */*"}) as answer, layout.incoming() as writer:
        while piece := _read(reference, answer):
            writer.write(piece)
        writer.commit(digest)


def _read(reference: Reference, answer: Any) -> bytes:
    try:
        piece: bytes = answer.read(_PIECE)
    except OSError as error:
        raise RegistryError(f"{reference}: the registry broke off: {error}") from error
    return piece


def _upload(file: Path, digest: str, reference: Reference) -> None:
    try:
        _open(reference, "HEAD", f"blobs/{digest}", {}).close()
    except RegistryError as error:
        if error.reason != "ManifestUnknown":
            raise
    else:
        return
    with _open(reference, "POST", "blobs/uploads/", {"Content-Length": "0"}, b"") as started:
        location = urljoin(_url(reference, "blobs/uploads/"), started.headers["Location"])
    joint = "&" if urlsplit(location).query else "?"
    headers = {"Content-Type": "application/octet-stream", "Content-Length": str(file.stat().st_size)}
    with file.open("rb") as data:
        _send(reference, "PUT", f"{location}{joint}{urlencode({'digest': digest})}", headers, data).close()


def _open(reference: Reference, method: str, path: str, headers: dict[str, str], data: Any = None) -> Any:
    return _send(reference, method, _url(reference, path), headers, data)


def _send(reference: Reference, method: str, url: str, headers: dict[str, str], data: Any) -> Any:
    request = urllib.request.Request(url, data=data, headers=headers, method=method)  # noqa: S310 -- http or https only
    try:
        return urllib.request.urlopen(request, timeout=TIMEOUT_S)  # noqa: S310
    except urllib.error.HTTPError as error:
        if error.code == 404:
            raise RegistryError(f"reading manifest {reference}: manifest unknown", reason="ManifestUnknown") from error
        why = (
            "it asks for credentials, which runup does not send yet"
            if error.code in {401, 403}
            else f"HTTP {error.code}"
        )
        raise RegistryError(f"{reference}: the registry refused {method}: {why}") from error
    except OSError as error:
        raise RegistryError(f"{reference}: the registry {reference.host} cannot be reached: {error}") from error


def _url(reference: Reference, path: str) -> str:
    host = reference.host
    plain = urlsplit(f"//{host}").hostname in _LOOPBACK
    return f"{'http' if plain else 'https'}://{host}/v2/{reference.path}/{path}"
