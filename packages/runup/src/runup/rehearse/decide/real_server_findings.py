"""Makes the findings of a real API server: objects of the cluster that it refuses or changes, before any release."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from kubekit.lang.text import shorten
from kubekit.lang.version import same_minor
from runup.checks.decide.kubernetes_path import version_of
from runup.checks.decide.model import Applies, Finding
from runup.checks.decide.wording import count, names
from runup.rehearse.decide.rehearsal_outcome import ObjectChange, RealServerOutcome, WriteRefused
from runup.release.decide.manifest import Identity
from runup.report.report import ReportedResource

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
    """Returns `NAMESPACE/NAME`, or the name alone of what is in no namespace."""
    return f"{identity.namespace}/{identity.name}" if identity.namespace else identity.name


def shortened(text: str, limit: int) -> str:
    """Returns a text on one line and without its last full stop, cut behind a word if it has more than `limit`."""
    return shorten(" ".join(text.split()).rstrip("."), limit, mark=" ...", at_word=True)


def findings(server: RealServerOutcome) -> Iterator[Finding]:
    """Yields what the server refuses, reads otherwise, and what of the target it cannot stand for."""
    yield from _version_findings(server)
    for kind, refusals in groupby(sorted(server.refused, key=_kind_of_refusal), key=_kind_of_refusal):
        yield _refused_finding(kind, list(refusals), server.version)
    for kind, changes in groupby(sorted(server.read_changes, key=_kind_of_change), key=_kind_of_change):
        yield _read_finding(kind, list(changes), server.version)
    if server.too_late:
        yield Finding(
            name="RehearsalServerEndedEarly",
            message=f"The time limit was reached when {server.tried} of {count(server.objects, 'object')} of "
            "the cluster had "
            "been written: whether the others would be refused is not known.",
            applies=Applies.UNKNOWN,
            remediation="Give it more time: --timeout.",
        )


def _version_findings(server: RealServerOutcome) -> Iterator[Finding]:
    """Yields a finding if the real server is of another minor version than the target."""
    of_server, wanted = version_of(server.version), version_of(server.wanted)
    if of_server is not None and wanted is not None and same_minor(of_server, wanted):
        return
    target = f"the target's Kubernetes is {server.wanted}" if server.wanted else "the target's Kubernetes is not known"
    yield Finding(
        name="RehearsalServerDiffers",
        message=(
            f"The real API server is Kubernetes {server.version}, and {target}: what differs between them is not known."
        ),
        applies=Applies.UNKNOWN,
        remediation="Name the programs of the target's minor version by --server-binaries.",
    )


def _kind_of_refusal(refused: WriteRefused) -> str:
    return _kind_name(refused.identity)


def _kind_of_change(change: ObjectChange) -> str:
    return _kind_name(change.identity)


def _kind_name(identity: Identity) -> str:
    return f"{identity.kind}.{identity.group}" if identity.group else identity.kind


def _refused_finding(kind: str, refusals: Sequence[WriteRefused], version: str) -> Finding:
    """Returns the finding about the stored objects of a kind that the server would refuse."""
    refusals_text = "; ".join(
        f"{namespaced_name(refused.identity)}: {shortened(refused.message, _LONGEST)}" for refused in refusals[:_NAMED]
    )
    more_text = f" and {len(refusals) - _NAMED} more" if len(refusals) > _NAMED else ""
    return Finding(
        name=risk_name("RehearsalStoredRefused", kind),
        message=f"{count(len(refusals), 'object')} of {kind} are stored, but would be refused on the next "
        "write by the API "
        "server "
        f"of Kubernetes {version}: {refusals_text}{more_text}.",
        resources=_resources(each.identity for each in refusals),
        remediation="Set the fields that the server names to what it takes, before the update.",
    )


def _read_finding(kind: str, changes: Sequence[ObjectChange], version: str) -> Finding:
    """Returns the finding about the objects of a kind that the server returns otherwise than stored."""
    paths = tuple(dict.fromkeys(field.path for change in changes for field in change.fields))
    return Finding(
        name=risk_name("RehearsalReadsOtherwise", kind),
        message=f"{count(len(changes), 'object')} of {kind} read otherwise from Kubernetes {version}, in "
        f"{names(paths, _NAMED)}: "
        f"{names([namespaced_name(each.identity) for each in changes], _NAMED)}.",
        severity="info",
        resources=_resources(each.identity for each in changes),
        remediation="Look whether anything compares these fields: operators, GitOps.",
    )


def _resources(identities: Iterator[Identity]) -> tuple[ReportedResource, ...]:
    return tuple(
        ReportedResource(group=identity.group, kind=identity.kind, namespace=identity.namespace, name=identity.name)
        for identity in identities
    )
