"""The settings for access to registries, which a command, the operator or a test fills in once; mirrors among them.

Mirrors are asked before the repository itself. A mirror cannot serve another image for a digest, but it can for a tag.
So mirrors of tags are separate ones, which an administrator configures as such. Rules: ImageDigestMirrorSet of
config.openshift.io/v1, its predecessor ImageContentSourcePolicy, ImageTagMirrorSet; containers-registries.conf(5) for
wildcards.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from kubekit.http.addresses import AddressPolicy, Network
from kubekit.http.proxies import Egress
from kubekit.lang import yaml as kyaml
from kubekit.oci.credentials import Credentials
from kubekit.oci.reference import Reference, parse
from kubekit.oci.registry_errors import BadMirrors, OciError

# Kind -> the field of its spec with the entries.
KINDS = {
    "ImageDigestMirrorSet": "imageDigestMirrors",
    "ImageContentSourcePolicy": "repositoryDigestMirrors",
    "ImageTagMirrorSet": "imageTagMirrors",
}
OF_TAGS = "ImageTagMirrorSet"
NEVER_CONTACT = "NeverContactSource"


class Mirror(msgspec.Struct, frozen=True):
    """The mirrors of `source`: a registry, a repository or part of its path, or `*.domain` for subdomains.

    `of_tags`: for images by tag, else for those by digest.
    """

    source: str
    mirrors: tuple[str, ...]
    never_source: bool = False
    of_tags: bool = False

    def path_below_source(self, name: str) -> str | None:
        """Returns the part of `name` (`registry/repository`) after the source, None if it is not below the source."""
        if self.source.startswith("*."):
            host, slash, path = name.partition("/")
            return slash + path if host.endswith(self.source[1:]) else None
        return name.removeprefix(self.source) if name == self.source or name.startswith(f"{self.source}/") else None


def references_to_try(reference: Reference, mirrors: Iterable[Mirror]) -> tuple[Reference, ...]:
    """Returns the references to try for `reference`, in order. Raises BadMirrors if they do not exist."""
    name = f"{reference.host}/{reference.path}"
    of_kind = [mirror for mirror in mirrors if mirror.of_tags is not bool(reference.digest)]
    fitting = [(mirror, rest) for mirror in of_kind if (rest := mirror.path_below_source(name)) is not None]
    # The most specific source wins, as in containers-registries.conf(5).
    longest = max((len(mirror.source) for mirror, _ in fitting), default=0)
    best = [(mirror, rest) for mirror, rest in fitting if len(mirror.source) == longest]
    suffix = f"@{reference.digest}" if reference.digest else f":{reference.tag or 'latest'}"
    candidates = []
    for location in (location + rest for mirror, rest in best for location in mirror.mirrors):
        try:
            candidates.append(parse(f"{location}{suffix}"))
        except OciError as error:
            raise BadMirrors(f"{reference}: its mirror {location} is not a repository") from error
    if not any(mirror.never_source for mirror, _ in best):
        candidates.append(reference)
    if not candidates:
        raise BadMirrors(f"{reference}: {NEVER_CONTACT} is set for {best[0][0].source}, which has no mirrors")
    return tuple(dict.fromkeys(candidates))


def read_mirrors(data: bytes, name: str) -> tuple[Mirror, ...]:
    """Returns the mirrors in a file of mirror sets. Raises BadMirrors, which names `name`."""
    try:
        documents = [document for document in kyaml.load_all(data, name=name) if document is not None]
    except kyaml.YamlError as error:
        raise BadMirrors(str(error)) from error
    if not documents:
        raise BadMirrors(f"{name}: holds no {' or '.join(KINDS)}")
    return tuple(mirror for document in documents for mirror in mirrors_of_object(document, name))


def mirrors_of_object(document: Any, name: str) -> tuple[Mirror, ...]:
    """Returns the mirrors of one object. Raises BadMirrors, which names `name`."""
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind not in KINDS:
        raise BadMirrors(f"{name}: expected {' or '.join(KINDS)}, found {kind or 'no object'}")
    spec = document.get("spec")
    entries = spec.get(KINDS[kind]) if isinstance(spec, dict) else None
    if entries is not None and not isinstance(entries, list):
        raise BadMirrors(f"{name}: spec.{KINDS[kind]} is not a list")
    return tuple(
        _parse_mirror(entry, f"{name}: spec.{KINDS[kind]}[{at}]", of_tags=kind == OF_TAGS)
        for at, entry in enumerate(entries or ())
    )


def _parse_mirror(entry: Any, place: str, *, of_tags: bool) -> Mirror:
    """Returns one entry of a mirror set; `of_tags` if it is for references by tag. Raises BadMirrors."""
    source = entry.get("source") if isinstance(entry, dict) else None
    if not isinstance(source, str) or not source:
        raise BadMirrors(f"{place} has no source")
    mirrors = entry.get("mirrors") or []
    if not isinstance(mirrors, list) or not all(isinstance(item, str) and item for item in mirrors):
        raise BadMirrors(f"{place}: mirrors is not a list of repositories")
    never = entry.get("mirrorSourcePolicy") == NEVER_CONTACT
    return Mirror(source.rstrip("/"), tuple(mirror.rstrip("/") for mirror in mirrors), never, of_tags)


def _wait_in_full(seconds: float) -> bool:
    """Waits for `seconds`, and cannot be interrupted. It is a module's function, so that an Access can be pickled."""
    return threading.Event().wait(seconds)


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Credentials, mirrors, and time limits for registries.

    `inner` are the hosts (with port) that may be at inward addresses: of this machine, link-local, or of `services`,
    the networks of the cluster's Services. None, the default, is for references that an administrator wrote: whichever
    host they name may be there. A set is for references of other people, such as those of a namespace's objects.
    `egress` has the proxies and the certificate authorities, to which `ca_file` adds others. `plain_http` are hosts
    (with port) that are reached over plain HTTP besides loopback; certificates of `unchecked` hosts are not verified.
    `timeout_s` is for one wait; `request_s` is for a whole request, from the connection through its redirects to the
    last byte, and a blob gets as much more as it needs at `slowest_bytes_s`. `wait(seconds)` is called before another
    attempt and, with 0, between pieces: if it returns True, the request is abandoned, so that another thread can end a
    pull.
    """

    credentials: Credentials = msgspec.field(default_factory=Credentials)
    mirrors: tuple[Mirror, ...] = ()
    egress: Egress = Egress()
    ca_file: str = ""
    plain_http: frozenset[str] = frozenset()
    unchecked: frozenset[str] = frozenset()
    inner: frozenset[str] | None = None
    services: tuple[Network, ...] = ()
    timeout_s: float = 30.0
    request_s: float = 60.0
    slowest_bytes_s: float = 128 * 1024
    attempts: int = 4
    wait: Callable[[float], bool] = _wait_in_full
    monotonic: Callable[[], float] = time.monotonic

    def is_plain(self, host: str) -> bool:
        """Returns whether `host` is reached over plain HTTP: this machine, or a listed host."""
        return host in self.plain_http or is_loopback(host)

    def of_administrators(self) -> Access:
        """Returns the same access for references that an administrator wrote."""
        return replace(self, inner=None)

    def reach(self, host: str, registry: str, *, redirected: bool) -> AddressPolicy:
        """Returns which addresses a request to `host` may reach, for the registry `registry` or after its redirect."""
        if self.inner is None:
            return AddressPolicy(own=not redirected and host == registry, loopback=is_loopback(registry))
        return AddressPolicy(own=host in self.inner, networks=self.services)


def is_loopback(host: str) -> bool:
    """Returns whether `host`, with or without a port, is this machine."""
    try:
        # Parsed as a URL's authority, which removes the port and the brackets of an IPv6 address.
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
