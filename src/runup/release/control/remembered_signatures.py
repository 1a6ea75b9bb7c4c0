"""Signatures that convinced this operator, kept in the cluster: stores may be away when they are asked again.

ConfigMap `openshift-config-managed/signatures-managed`, keys `<algorithm>-<hash>-<number>` (cvo-behaviour 8.2). What an
earlier operator kept there stays, up to 64 digests; what is kept is verified anew like any other signature.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping

import structlog

from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.errors import KubeError, NotFound
from kubekit.oci.signatures import Verified
from runup.release.control.signature_stores import LABEL, NAMESPACE, bytes_of

log = structlog.get_logger("releases")
NAME = "signatures-managed"
MOST_DIGESTS = 64
# A ConfigMap holds 1 MiB, as base64.
MOST_BYTES = 512 * 1024
MANAGER = "cluster-version-operator-signatures"


def merged(kept: Mapping[str, bytes], digest: str, signatures: Iterable[bytes]) -> dict[str, bytes]:
    """`kept` with those of `digest`, the first ones of other digests left out where it would be too much."""
    prefix = digest.replace(":", "-")
    new = {f"{prefix}-{number}": signature for number, signature in enumerate(signatures)}
    groups: dict[str, dict[str, bytes]] = {}
    for key, value in kept.items():
        groups.setdefault(key.rpartition("-")[0], {})[key] = value
    groups.pop(prefix, None)
    size = _size(new)
    chosen: list[dict[str, bytes]] = []
    for group in reversed(list(groups.values())):
        size += _size(group)
        if len(chosen) + 1 == MOST_DIGESTS or size > MOST_BYTES:
            break
        chosen.append(group)
    return {key: value for group in (*reversed(chosen), new) for key, value in group.items()}


async def remember(client: Client, verified: Verified) -> None:
    """Keep what convinced this operator. What cannot be kept is a line of the log: the verdict stands."""
    try:
        kept = await _kept(client)
        found = merged(kept, verified.digest, verified.signatures)
        if found == kept:
            return
        data = {key: base64.b64encode(value).decode() for key, value in found.items()}
        obj = {"metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {LABEL: ""}}, "binaryData": data}
        await client.send(calls.apply(resource_of(ConfigMap), obj, field_manager=MANAGER, force=True))
    except (KubeError, DecodeError) as error:
        log.warning("the signatures of a release are not kept", digest=verified.digest, why=str(error))


async def _kept(client: Client) -> dict[str, bytes]:
    try:
        found = await client.send(calls.get(ConfigMap, NAME, NAMESPACE))
    except NotFound:
        return {}
    return {key: bytes_of(value) for key, value in found.binary_data.items()}


def _size(group: Mapping[str, bytes]) -> int:
    return sum(len(key) + len(value) for key, value in group.items())
