"""Everything that a cluster has, to compare before and after."""

from __future__ import annotations

from typing import Any

from tests.servers import eventually

from kubekit.api import codec
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError
from kubekit.kube.client_sync import SyncClient

# Written by controllers at times of their own.
PASSING = {("", "Event"), ("events.k8s.io", "Event"), ("coordination.k8s.io", "Lease")}


def everything(client: SyncClient) -> dict[str, str]:
    """The resourceVersion of each object, by group, kind, namespace and name; of all kinds that can be listed."""
    found = {}
    groups = codec.decode(dict[str, Any], client.send(calls.get_path("/apis")))["groups"]
    for version in ("v1", *(group["preferredVersion"]["groupVersion"] for group in groups)):
        for resource in client.send(calls.list_kinds(version)):
            if (resource.group, resource.kind) in PASSING:
                continue
            try:
                items = client.listing_raw(resource).items
            except ApiError as error:
                assert error.code in (403, 404, 405), error  # reviews and the like cannot be listed
                continue
            for item in items:
                metadata = item["metadata"]
                name = f"{resource.name} {metadata.get('namespace', '')}/{metadata['name']}"
                found[name] = metadata.get("resourceVersion", "")
    return found


def settled(client: SyncClient) -> dict[str, str]:
    """Everything that there is, once two looks see the same: controllers are at work on a new server."""
    seen: list[dict[str, str]] = []

    def same() -> bool:
        seen.append(everything(client))
        return len(seen) > 1 and seen[-1] == seen[-2]

    eventually(same, "nothing changes any more")
    return seen[-1]
