"""Discovers which kinds a server serves, in which versions, and their paths: one request per group and version."""

from __future__ import annotations

from typing import Any

import msgspec

from kubekit.api import codec
from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.kube.request import Call


def group_version(api_version: str) -> tuple[str, str]:
    """Returns the group (empty for core) and the version of an `apiVersion`."""
    group, slash, version = api_version.partition("/")
    return (group, version) if slash else ("", group)


def list_kinds(api_version: str) -> Call[tuple[Resource, ...]]:
    """Returns a call that reads the kinds of `api_version`, without subresources.

    NotFound means that the server does not know the group or version.
    """
    group, version = group_version(api_version)
    path = f"/apis/{api_version}" if group else f"/api/{version}"
    request = calls.get_path(path).request
    return Call(request, lambda data: _decode_resources(data, group, version))


def list_versions(group: str) -> Call[tuple[str, ...]]:
    """Returns a call that reads the apiVersions of a group other than core, in the server's order.

    NotFound means that the server does not know the group, a DecodeError that its answer lists no versions.
    """
    return Call(
        calls.get_path(f"/apis/{group}").request,
        lambda data: tuple(version.group_version for version in codec.decode(_Group, data).versions),
    )


def list_group_versions() -> Call[frozenset[str]]:
    """Returns a call that reads the apiVersions of all groups but core, those of API servers that are down included.

    Source: kube-aggregator, handler_apis.go, which lists what is registered, whether it is available or not.
    """
    return Call(
        calls.get_path("/apis").request,
        lambda data: frozenset(
            version.group_version for group in codec.decode(_Groups, data).groups for version in group.versions
        ),
    )


class _GroupVersion(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str


class _Group(msgspec.Struct, frozen=True):
    """An APIGroup; every field is required, since no versions would say that none of its kinds is served."""

    versions: tuple[_GroupVersion, ...]


class _Groups(msgspec.Struct, frozen=True):
    """An APIGroupList."""

    groups: tuple[_Group, ...]


def _decode_resources(data: bytes, group: str, version: str) -> tuple[Resource, ...]:
    """Returns the kinds in an APIResourceList."""
    listed = codec.decode(dict[str, Any], data).get("resources")
    return tuple(
        Resource(group, version, str(item["kind"]), str(item["name"]), bool(item.get("namespaced")))
        for item in (listed if isinstance(listed, list) else ())
        # Subresources are listed as `resource/subresource`.
        if isinstance(item, dict) and item.get("kind") and "/" not in str(item.get("name") or "/")
    )
