"""A certificate ends within days, and whoever should have renewed it has not.

Applies when a Certificate of cert-manager has ended or ends within seven days although its renewalTime is past, or is
not Ready and ends within seven days; or when all certificates of one name that a machine config pool lists
(`status.certExpirys`) end within seven days. Secrets are not read: this is what other objects tell of the certificates
in them.

Why it matters what is served or trusted by it stops being so in the middle of an update perhaps: webhooks that are not
trusted refuse requests, routes and internal connections break, nodes cannot reach the API server.

What to do `oc describe certificate NAME -n NAMESPACE` says why it is not renewed (its issuer, a challenge, a limit); a
certificate of the platform is renewed by its operator, and comes to the nodes of a pool that is not paused.

Accepting it is right where it is replaced before its end.

Source of the rule cert-manager, `pkg/apis/certmanager/v1` (Certificate: notAfter, renewalTime); openshift/api,
`machineconfiguration/v1` (MachineConfigPoolStatus, certExpirys).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from runup.api.machineconfig_v1 import MachineConfigPool
from runup.api.platform_v1 import CertManagerCertificate
from runup.checks.catalogue.declaring import declared, named, refer, risk
from runup.checks.catalogue.shared.presence import DEFINITIONS, all_or_none, told_of_each
from runup.checks.decide.model import Context, Finding, Snapshot
from runup.checks.decide.wording import count, names
from runup.preflight.decide.report import ReportedResource

NAME = "CertificateExpires"
MARGIN = timedelta(days=7)
EXAMPLE = """
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: webhook, namespace: policies}
spec: {secretName: webhook-tls}
status:
  notAfter: "2026-01-17T08:00:00Z"
  renewalTime: "2025-12-18T08:00:00Z"
  conditions: [{type: Ready, status: "True"}]
"""


# What ends, when, and the object that tells it.
_Ending = tuple[str, datetime, ReportedResource]


def _run(snapshot: Snapshot, context: Context) -> Iterator[Finding]:
    yield from told_of_each(
        lambda: _findings(list(_of_cert_manager(snapshot, context.now)), context.now),
        lambda: _findings(list(_of_pools(snapshot, context.now)), context.now),
    )


def _of_cert_manager(snapshot: Snapshot, now: datetime) -> Iterator[_Ending]:
    for each in sorted(all_or_none(snapshot, CertManagerCertificate), key=named):
        if (end := _end(each, now)) is not None:
            yield f"Certificate {named(each)}", end, refer(each)


def _of_pools(snapshot: Snapshot, now: datetime) -> Iterator[_Ending]:
    for pool in sorted(all_or_none(snapshot, MachineConfigPool), key=named):
        for subject, end in sorted(_last_ends(pool).items()):
            # One that ended long ago is of an authority that nobody uses any more: the node still runs.
            if now < end <= now + MARGIN:
                yield f"{subject} of machine config pool {pool.metadata.name}", end, refer(pool)


def _findings(ending: list[_Ending], now: datetime) -> Iterator[Finding]:
    if not ending:
        return
    listing = names([f"{what} ({_when(end, now)})" for what, end, _ in ending])
    found = risk(
        NAME,
        f"{count(len(ending), 'certificate')} should have been renewed and {'was' if len(ending) == 1 else 'were'} "
        f"not: {listing}.",
        fix="See `oc describe certificate NAME -n NAMESPACE`, or the operator that keeps it: why is it not renewed?",
    )
    yield replace(found, resources=tuple(dict.fromkeys(reference for _, _, reference in ending)))


def _end(certificate: CertManagerCertificate, now: datetime) -> datetime | None:
    """Returns when a certificate ends that should have been renewed before, None for one that is in time."""
    status = certificate.status
    if status.not_after is None or status.not_after - now > MARGIN:
        return None
    is_ready = any(each.type == "Ready" and each.status == "True" for each in status.conditions)
    is_late = status.renewal_time is not None and status.renewal_time <= now
    return status.not_after if is_late or not is_ready else None


def _last_ends(pool: MachineConfigPool) -> dict[str, datetime]:
    """Returns when the last certificate of each name ends; an authority that was renewed is in the list twice."""
    ends: dict[str, datetime] = {}
    for each in pool.status.cert_expirys:
        if each.expiry is not None:
            # `CN=NAME_@1700000000` or `CN=NAME@1700000000`: the time is that of its making.
            name = each.subject.partition("@")[0].removesuffix("_").removeprefix("CN=")
            ends[name] = max(each.expiry, ends.get(name, each.expiry))
    return ends


def _when(end: datetime, now: datetime) -> str:
    return f"{'ended' if end <= now else 'ends'} at {end:%Y-%m-%dT%H:%M:%SZ}"


CHECK = declared(
    __doc__,
    NAME,
    "kube-apiserver",
    (CertManagerCertificate, MachineConfigPool, DEFINITIONS),
    _run,
    rank=182,
    example=EXAMPLE,
)
