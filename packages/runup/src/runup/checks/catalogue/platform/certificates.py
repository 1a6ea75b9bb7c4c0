"""A certificate expires within days, and its controller has not renewed it.

Applies when a Certificate of cert-manager has ended or ends within seven days although its renewalTime is past or no
renewal is scheduled, or is not Ready and ends within seven days; or when all certificates of one name that a machine
config pool lists (`status.certExpirys`) end within seven days, and four fifths of the life of the last one were over an
hour ago or more, when its owner renews it. The life of such a certificate is derived from the time in its name; a
certificate without one is not evaluated. Secrets are not read: the check uses what other objects report of the
certificates in them.

Why it matters: the certificate may expire during the update: calls of webhooks fail, routes and internal connections
break, and nodes cannot reach the API server.

Remedy: `oc describe certificate NAME -n NAMESPACE` says why it is not renewed (its issuer, a challenge, a limit); an
operator renews each certificate of the platform, and nodes get it if their pool is not paused.

Accepting it is right where the certificate is replaced before it expires.

Source of the rule: cert-manager, `pkg/apis/certmanager/v1` (Certificate: notAfter, renewalTime); openshift/api,
`machineconfiguration/v1` (MachineConfigPoolStatus, certExpirys); openshift/library-go, `pkg/operator/certrotation`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

from kubekit.api.meta_v1 import Object
from kubekit.lang.text import count
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.api.platform_v1 import CertManagerCertificate
from runup.checks.catalogue.shared.certificate_bundles import Validity, is_late
from runup.checks.decide.wording import names
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, declared, full_name, risk, yield_from_all

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


_NAME_AND_TIME = re.compile(r"CN=([^@,]+?)_?@(\d{9,11})(?:,|$)")
# What ends, when, and the object that shows it.
_Ending = tuple[str, datetime, Object]


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a finding about cert-manager's certificates, and one about those of machine config pools."""

    def renewal_finding(read_endings: Callable[[Snapshot, datetime], Iterator[_Ending]]) -> Findings:
        endings = list(read_endings(snapshot, context.now))
        if not endings:
            return
        texts = [
            f"{text} ({'ended' if end <= context.now else 'ends'} at {end:%Y-%m-%dT%H:%M:%SZ})"
            for text, end, _ in endings
        ]
        yield risk(
            NAME,
            f"{count(len(endings), 'certificate')} should have been renewed and "
            f"{'was' if len(endings) == 1 else 'were'} not: {names(texts)}.",
            {id(holder): holder for _, _, holder in endings}.values(),
            fix="See `oc describe certificate NAME -n NAMESPACE`, or the operator that keeps it: why is it not "
            "renewed?",
        )

    yield from yield_from_all(partial(renewal_finding, _of_cert_manager), partial(renewal_finding, _of_pools))


def _of_cert_manager(snapshot: Snapshot, now: datetime) -> Iterator[_Ending]:
    """Yields cert-manager's certificates that end within `MARGIN`, and are not ready or should have been renewed."""
    for certificate in sorted(snapshot.all_or_none(CertManagerCertificate), key=full_name):
        status = certificate.status
        if status.not_after is None or status.not_after - now > MARGIN:
            continue
        is_ready = any(condition.type == "Ready" and condition.status == "True" for condition in status.conditions)
        # Without a renewalTime, cert-manager has scheduled no renewal.
        if not is_ready or status.renewal_time is None or status.renewal_time <= now:
            yield f"Certificate {full_name(certificate)}", status.not_after, certificate


def _of_pools(snapshot: Snapshot, now: datetime) -> Iterator[_Ending]:
    """Yields the certificates of machine config pools that end within `MARGIN` and were not renewed in time."""
    for pool in sorted(snapshot.all_or_none(MachineConfigPool), key=full_name):
        last: dict[str, Validity] = {}
        for expiry in pool.status.cert_expirys:
            # `CN=NAME_@1700000000` or `CN=NAME@1700000000`: the time is that of its making (library-go, certrotation).
            match = _NAME_AND_TIME.match(expiry.subject)
            if expiry.expiry is None or match is None:
                continue
            validity = (datetime.fromtimestamp(int(match[2]), UTC), expiry.expiry)
            last[match[1]] = max(validity, last.get(match[1], validity), key=lambda validity_entry: validity_entry[1])
        for name, (begin, end) in sorted(last.items()):
            # One that ended long ago is of an authority that nobody uses any more: the node still runs.
            if now < end <= now + MARGIN and is_late((begin, end), now):
                yield f"{name} of machine config pool {pool.metadata.name}", end, pool


CHECK = declared(
    run,
    NAME,
    "kube-apiserver",
    reads=(CertManagerCertificate, MachineConfigPool, DEFINITIONS),
    rank=182,
    clusters="both",
)
