"""Reads and writes the file of a release image that declares what its checks read: `preflight-checks/reads`.

The managing operator cannot ask a newer release's Python checks what they read, and must not run that release to find
out. So the file is written when a release is made: `release new` lists the rights of the declarative checks that it
packs, and those of the Python checks in the image. `rights_of_file` reads the file back from a verified image, as data
of a third party.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from kubekit.api import codec
from kubekit.api.meta_v1 import Wire
from kubekit.api.scheme import Resource, resource_of
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ClusterVersion
from runup.api.preflight_reads_v1 import FILE, Right
from runup.checks.decide.reads import namespace_of

if TYPE_CHECKING:
    from runup.checks.decide.model import Check

FORMAT = "preflight-reads-v1"
# Limits for a file that another release wrote.
MAX_READS = 500
# Each namespace takes a Role and a RoleBinding.
MAX_NAMESPACES = 20
MAX_BYTES = 256 * 1024
# The preflight process itself reads these: the running version, the gates that select checks, image mirrors, and which
# addresses are the Services', and the proxy before registries.
_ALWAYS = (
    *(Right(r.group, r.plural) for r in (resource_of(ClusterVersion), resource_of(FeatureGate))),
    Right("config.openshift.io", "imagedigestmirrorsets"),
    Right("config.openshift.io", "imagetagmirrorsets"),
    Right("operator.openshift.io", "imagecontentsourcepolicies"),
    Right("config.openshift.io", "networks"),
    Right("config.openshift.io", "proxies"),
    Right("networking.k8s.io", "servicecidrs"),
)
_GROUP = re.compile(r"([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*)?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
# Reading these lets an account act as another, or see another's credentials. A MachineConfig holds a node's
# files, the cluster's pull secret among them; a ControllerConfig holds the registry's; an OAuthClient its own password.
FORBIDDEN = frozenset(
    {
        ("", "secrets"),
        ("machineconfiguration.openshift.io", "controllerconfigs"),
        ("machineconfiguration.openshift.io", "machineconfigs"),
        ("oauth.openshift.io", "oauthaccesstokens"),
        ("oauth.openshift.io", "oauthauthorizetokens"),
        ("oauth.openshift.io", "oauthclients"),
        ("oauth.openshift.io", "useroauthaccesstokens"),
    }
)


class BadReads(ValueError):
    """Error raised if the file cannot be used; the text says why."""


class _Reads(Wire, frozen=True):
    """The content of the file."""

    format: str
    reads: tuple[Right, ...] = ()


def rights_of_checks(checks: Iterable[Check]) -> tuple[Right, ...]:
    """Returns the rights that `checks` need, and those that every preflight needs."""
    return rights_of_reads(resource for check in checks for resource in check.reads)


def rights_of_reads(reads: Iterable[Resource]) -> tuple[Right, ...]:
    """Returns the rights to list the kinds, and those that every preflight needs."""
    return _sorted(Right(resource.group, resource.plural, namespace_of(resource)) for resource in reads)


def to_file(*rights: Iterable[Right]) -> bytes:
    """Returns the content of the file that declares all of `rights`."""
    all_rights = _sorted(right for granted in rights for right in granted)
    return msgspec.json.format(codec.encode(_Reads(FORMAT, all_rights)), indent=2) + b"\n"


def rights_of_file(data: bytes) -> tuple[tuple[Right, ...], tuple[str, ...]]:
    """Returns the declared rights that may be granted, and in words those that may not. Raises BadReads."""
    if len(data) > MAX_BYTES:
        raise BadReads(f"{FILE} has more than {MAX_BYTES} bytes")
    try:
        declared = msgspec.json.decode(data, type=_Reads)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadReads(f"{FILE} is not as expected: {error}") from error
    if declared.format != FORMAT:
        raise BadReads(f"{FILE} has format {declared.format[:60]!r}; this release reads {FORMAT}")
    if len(declared.reads) > MAX_READS:
        raise BadReads(f"{FILE} names {len(declared.reads)} kinds; an account is given {MAX_READS} at most")
    namespaces = {right.namespace for right in declared.reads}
    if len(namespaces) > MAX_NAMESPACES:
        raise BadReads(f"{FILE} names {len(namespaces)} namespaces; an account is given {MAX_NAMESPACES} at most")
    refused = [why for right in declared.reads if (why := why_not(right))]
    return _sorted(right for right in declared.reads if not why_not(right)), tuple(refused)


def why_not(right: Right) -> str:
    """Returns why no check may be given `right`, or an empty string if one may."""
    resource_text = f"{right.resource[:100]!r} of group {right.group[:100]!r}"
    if (right.group, right.resource) in FORBIDDEN:
        return f"{resource_text} may not be read: who reads it can act as another user"
    if not _GROUP.fullmatch(right.group) or not _NAME.fullmatch(right.resource):
        return f"{resource_text} does not name exactly one kind"
    if right.namespace and not _NAME.fullmatch(right.namespace):
        return f"{right.namespace[:100]!r} is not the name of a namespace"
    return ""


def _sorted(rights: Iterable[Right]) -> tuple[Right, ...]:
    """Returns the rights and those that every preflight needs, each once and in order."""
    keys = {(right.group, right.resource, right.namespace) for right in (*rights, *_ALWAYS)}
    # One for the whole cluster covers those for a namespace.
    return tuple(Right(*key) for key in sorted(keys) if not key[2] or (*key[:2], "") not in keys)
