"""Lists objects of a cluster for a dump: by our own client, or by `kubectl get --raw` where only that has credentials.

Both send GET requests and nothing else.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from kubekit.api import codec
from kubekit.api.codec import DecodeError
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, Forbidden, NotFound, Unauthorized
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.list_pages import INCOMPLETE, JoinedPages, Listing, raw_page
from kubekit.kube.request import Request
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ClusterVersion
from runup.checks.decide.model import Check
from runup.checks.decide.reads import Lookup, Slim, namespace_of

JSON = dict[str, Any]
PAGE = 500
# Seconds for one page: a server that takes longer has ended the request itself (its default is 60).
LIMIT_S = 120
_SERVER_SAYS = re.compile(r"Error from server \((\w+)\): (.*)")
# What an aggregated server that is down answers, and one that serves the kind no longer.
_ABSENT = frozenset({"NotFound", "MethodNotAllowed"})


class Refused(Exception):
    """A kind could not be listed: `state` is forbidden, absent or failed, `message` the server's words."""

    def __init__(self, state: str, message: str) -> None:
        super().__init__(message)
        self.state = state
        self.message = " ".join(message.split())


class Lister(Protocol):
    """Lister of the objects of a kind."""

    def listed(self, resource: Resource, namespace: str, selector: str) -> Listing[JSON]:
        """Returns all objects. Raises Refused."""

    def named(self, resource: Resource, namespace: str, name: str) -> JSON | None:
        """Returns one object, or None. Raises Refused."""

    def server_version(self) -> str:
        """Returns the server's version of Kubernetes, or an empty string if it does not say it."""


class ClientLister:
    """Lists by our own client."""

    def __init__(self, client: SyncClient) -> None:
        self._client = client

    def listed(self, resource: Resource, namespace: str, selector: str) -> Listing[JSON]:
        """Returns all objects. Raises Refused, and Unreachable if there is no server."""
        try:
            return self._client.listing_raw(resource, namespace, label_selector=selector)
        except ApiError as error:
            raise _refusal_from(error) from error

    def named(self, resource: Resource, namespace: str, name: str) -> JSON | None:
        """Returns one object, or None. Raises Refused."""
        try:
            return self._client.send(calls.get_raw(resource, name, namespace))
        except NotFound:
            return None
        except ApiError as error:
            raise _refusal_from(error) from error

    def server_version(self) -> str:
        """Returns the server's version of Kubernetes, or an empty string if it does not say it."""
        try:
            return self._client.send(calls.server_version())
        except (ApiError, DecodeError):
            return ""


def _refusal_from(error: ApiError) -> Refused:
    if isinstance(error, Forbidden | Unauthorized):
        return Refused("forbidden", error.message)
    return Refused("absent" if isinstance(error, NotFound) else "failed", error.message)


class ProgramLister:
    """Lists by a program, `kubectl` or `oc`, with the words that select the cluster."""

    def __init__(self, program: str, arguments: tuple[str, ...] = ()) -> None:
        self._program = (program, *arguments)

    def listed(self, resource: Resource, namespace: str, selector: str) -> Listing[JSON]:
        """Returns all objects. Raises Refused."""
        pages: JoinedPages[JSON] = JoinedPages()
        gaps: list[str] = []
        token = ""
        while True:
            call = calls.list_raw(resource, namespace, label_selector=selector, limit=PAGE, continue_=token)
            data, warnings = self._get(call.request)
            page = raw_page(data, resource)
            pages.add(page)
            gaps += warnings
            token = page.continue_
            if not token:
                return pages.listing(tuple(dict.fromkeys(gaps)))

    def named(self, resource: Resource, namespace: str, name: str) -> JSON | None:
        """Returns one object, or None. Raises Refused."""
        try:
            data, _ = self._get(calls.get_raw(resource, name, namespace).request)
        except Refused as refused:
            if refused.state == "absent":
                return None
            raise
        try:
            return codec.decode(dict, data)
        except DecodeError as error:
            raise Refused("failed", f"{resource.kind} {name} could not be read: {error}") from error

    def server_version(self) -> str:
        """Returns the server's version of Kubernetes, or an empty string if it does not say it."""
        try:
            call = calls.server_version()
            return call.decode(self._get(call.request)[0])
        except (Refused, DecodeError):
            return ""

    def _get(self, request: Request) -> tuple[bytes, list[str]]:
        """Returns the body, and the reasons that the server's warnings give for an incomplete list. Raises Refused."""
        command = [*self._program, "get", "--raw", request.target]
        try:
            completed = subprocess.run(command, capture_output=True, check=False, timeout=LIMIT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Refused("failed", f"{self._program[0]}: {error}") from error
        error_text = completed.stderr.decode(errors="replace")
        if completed.returncode:
            match = _SERVER_SAYS.search(error_text)
            reason, message = (match[1], match[2]) if match else ("", error_text)
            state = (
                "absent" if reason in _ABSENT else "forbidden" if reason in ("Forbidden", "Unauthorized") else "failed"
            )
            raise Refused(state, message)
        prefix = f"Warning: {INCOMPLETE}"
        return completed.stdout, [
            line.removeprefix(prefix) for line in error_text.splitlines() if line.startswith(prefix)
        ]


# Never collected, whatever a check of somebody else reads.
NEVER = frozenset({"secrets"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedKind:
    """A kind as it must be listed.

    `versions`: its resource in the versions that checks read; the first one that is served is listed. `namespaces`: the
    only ones that are read; none means all. `lookup`: only the objects that others refer to are read, by name.
    `metadata_only`: the content of the objects is dropped, because it holds secrets.
    """

    versions: tuple[Resource, ...]
    namespaces: tuple[str, ...] = ()
    selector: str = ""
    lookup: Lookup | None = None
    metadata_only: bool = False

    @property
    def name(self) -> str:
        """The resource's name, `PLURAL.GROUP`."""
        return self.versions[0].name


# A rendered configuration holds the pull secret, and may hold passwords and keys.
_METADATA_ONLY = frozenset({"machineconfigs.machineconfiguration.openshift.io"})


def kinds_read_by(
    checks: Iterable[Check], operator_namespace: str, further: Iterable[tuple[Resource, str]] = ()
) -> tuple[WantedKind, ...]:
    """Returns the kinds that `checks` read, by name, those that every check needs, and `further` ones.

    Each of `further` is a resource and the namespace that it is read in, empty for all. The ConfigMaps of
    `operator_namespace` say which risks are accepted.
    """
    # Each resource with the namespace that it is limited to, empty for all.
    reads: list[tuple[Resource, str]] = [(resource_of(ClusterVersion), ""), (resource_of(FeatureGate), "")]
    reads.append((resource_of(ConfigMap), operator_namespace))
    reads += further
    for resource in (resource for check in checks for resource in check.reads):
        reads.append((resource, namespace_of(resource)))
        if isinstance(resource, Lookup) and resource.of is not None:
            reads.append((resource.of, ""))
    rows_by_kind: dict[tuple[str, str], list[tuple[Resource, str]]] = {}
    for resource, namespace in reads:
        if resource.plural not in NEVER:
            rows_by_kind.setdefault((resource.group, resource.plural), []).append((resource, namespace))
    kinds = []
    for rows in rows_by_kind.values():
        # One kind to collect for several reads of it, wide enough for all of them.
        versions = {
            each.version: Resource(each.group, each.version, each.kind, each.plural, namespaced=each.namespaced)
            for each, _ in rows
        }
        namespaces = {namespace for _, namespace in rows}
        selectors = {each.label_selector if isinstance(each, Slim) else "" for each, _ in rows}
        lookups = [each for each, _ in rows if isinstance(each, Lookup)]
        kind = WantedKind(
            versions=tuple(versions.values()),
            namespaces=() if "" in namespaces else tuple(sorted(namespaces)),
            # Of several selectors none can be sent: one list is for all who read the kind.
            selector=next(iter(selectors)) if len(selectors) == 1 else "",
            lookup=lookups[0] if len(lookups) == len(rows) else None,
            metadata_only=rows[0][0].name in _METADATA_ONLY,
        )
        kinds.append(kind)
    # What is looked up by name comes after what names it.
    return tuple(sorted(kinds, key=lambda kind: (kind.lookup is not None, kind.name)))
