"""Stores the signatures that this operator verified in the cluster, because stores may be unreachable the next time.

ConfigMap `openshift-config-managed/signatures-managed`, keys `<algorithm>-<hash>-<number>`
(docs/upstream-behaviour.md 8.2). Signatures that an earlier operator stored stay, up to 64 digests; stored signatures
are verified again like any other.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping

import structlog

from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import KubeError, NotFound
from kubekit.kube.client import Client
from kubekit.oci.signatures import Verified
from runup.release.control.signature_stores import LABEL, NAMESPACE, bytes_of

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
        stored_signatures = await _kept_signatures(client)
        signatures = merge_signatures(stored_signatures, verified.digest, verified.signatures)
        if signatures == stored_signatures:
            return
        data = {key: base64.b64encode(value).decode() for key, value in signatures.items()}
        obj = {"metadata": {"name": NAME, "namespace": NAMESPACE, "labels": {LABEL: ""}}, "binaryData": data}
        await client.send(calls.apply(resource_of(ConfigMap), obj, field_manager=MANAGER, force=True))
    except (KubeError, DecodeError) as error:
        log.warning("the signatures of a release are not kept", digest=verified.digest, why=str(error))


async def _kept_signatures(client: Client) -> dict[str, bytes]:
    """Returns the signatures that the ConfigMap keeps, by key; none if there is no ConfigMap. Raises KubeError."""
    try:
        config_map = await client.send(calls.get(ConfigMap, NAME, NAMESPACE))
    except NotFound:
        return {}
    return {key: bytes_of(value) for key, value in config_map.binary_data.items()}


def _size(group: Mapping[str, bytes]) -> int:
    return sum(len(key) + len(value) for key, value in group.items())
