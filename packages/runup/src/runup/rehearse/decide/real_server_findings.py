"""Makes the findings of a real API server: objects of the cluster that it refuses or changes, before any release."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeVar

from kubekit.lang.text import count, shorten
from kubekit.lang.version import same_minor
from kubekit.rules.version_skew import version_of
from runup.checks.decide.model import Applies, Finding
from runup.checks.decide.wording import names
from runup.rehearse.decide.rehearsal_outcome import ObjectChange, RealServerOutcome, WriteRefused
from runup.release.decide.manifest import Identity
from runup.report.report import ReportedResource

T = TypeVar("T", ObjectChange, WriteRefused)
# Objects that a message names; the resources have the others.
_NAMED = 3
_LONGEST = 300

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9.-]")
# Names of risks may have 256 characters (report/report.py).
_LONGEST_NAME = 250


def risk_name(name: str, *parts: str) -> str:
    """Returns the name of a finding about one thing: what a risk's name may not hold becomes a dash."""
    tail = "-".join(_NOT_IN_NAMES.sub("-", part) for part in parts if part)
    return f"{name}-{tail}"[:_LONGEST_NAME] if tail else name


def namespaced_name(identity: Identity) -> str:
    """Returns `NAMESPACE/NAME`, or only the name of a cluster-scoped object."""
    return f"{identity.namespace}/{identity.name}" if identity.namespace else identity.name


def shortened(text: str, limit: int) -> str:
    """Returns a text on one line and without its last full stop, cut behind a word if it has more than `limit`."""
    return shorten(" ".join(text.split()).rstrip("."), limit, mark=" ...", at_word=True)


def reported_resources(identities: Iterable[Identity]) -> tuple[ReportedResource, ...]:
    """Returns the objects as the resources of a finding, each once."""
    return tuple(
        ReportedResource(group=each.group, kind=each.kind, namespace=each.namespace, name=each.name)
        for each in dict.fromkeys(identities)
    )


def findings(server: RealServerOutcome) -> Iterator[Finding]:
    """Yields what the server refuses, reads otherwise, and what of the target it cannot represent."""
    of_server, wanted = version_of(server.version), version_of(server.wanted)
    if of_server is None or wanted is None or not same_minor(of_server, wanted):
        target = f"is {server.wanted}" if server.wanted else "is not known"
        yield Finding(
            name="RehearsalServerDiffers",
            message=f"The real API server is Kubernetes {server.version}, and the target's Kubernetes {target}: what "
            "differs between them is not known.",
            applies=Applies.UNKNOWN,
            remediation="Name the programs of the target's minor version by --server-binaries.",
        )
    for kind, refusals in _by_kind(server.refused):
        texts = [f"{namespaced_name(each.identity)}: {shortened(each.message, _LONGEST)}" for each in refusals[:_NAMED]]
        more_text = f" and {len(refusals) - _NAMED} more" if len(refusals) > _NAMED else ""
        yield Finding(
            name=risk_name("RehearsalStoredRefused", kind),
            message=f"{count(len(refusals), 'object')} of {kind} are stored, but would be refused on the next write by "
            f"the API server of Kubernetes {server.version}: {'; '.join(texts)}{more_text}.",
            resources=reported_resources(each.identity for each in refusals),
            remediation="Set the fields that the server names to what it takes, before the update.",
        )
    for kind, changes in _by_kind(server.read_changes):
        paths = tuple(dict.fromkeys(field.path for change in changes for field in change.fields))
        objects = names([namespaced_name(each.identity) for each in changes], _NAMED)
        yield Finding(
            name=risk_name("RehearsalReadsOtherwise", kind),
            message=f"{count(len(changes), 'object')} of {kind} read otherwise from Kubernetes {server.version}, in "
            f"{names(paths, _NAMED)}: {objects}.",
            severity="info",
            resources=reported_resources(each.identity for each in changes),
            remediation="Look whether anything compares these fields: operators, GitOps.",
        )
    if server.too_late:
        yield Finding(
            name="RehearsalServerEndedEarly",
            message=f"The time limit was reached when {server.tried} of {count(server.objects, 'object')} of the "
            "cluster had been written: whether the others would be refused is not known.",
            applies=Applies.UNKNOWN,
            remediation="Give it more time: --timeout.",
        )


def _by_kind(outcomes: Iterable[T]) -> Iterator[tuple[str, list[T]]]:
    """Yields the outcomes of each kind with its name, sorted by that."""
    by_kind: dict[str, list[T]] = {}
    for each in outcomes:
        kind = f"{each.identity.kind}.{each.identity.group}" if each.identity.group else each.identity.kind
        by_kind.setdefault(kind, []).append(each)
    yield from sorted(by_kind.items())
