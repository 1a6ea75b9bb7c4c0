"""A certificate authority of the cluster expires within days, and there is no newer one.

Applies when, of a bundle in a ConfigMap of `openshift-config-managed` (key `ca-bundle.crt`), the certificate that is
valid longest has ended, or ends within seven days and was not renewed when four fifths of its life were over, as
authorities are. The first authorities of a cluster are valid for one day and may be renewed in the last fifth of that
day. Secrets are not read: certificates that exist only in a Secret are not evaluated. The operators that own them
report them in their ClusterOperator.

Why it matters: clients that trust this bundle refuse every connection once the authority has expired, and an update in
progress stops.

Remedy: find out which operator owns the bundle (`oc -n openshift-config-managed describe cm NAME`) and why it does not
renew the bundle; if a pool is paused, resume it.

Accepting it means that the authority may expire during the update.

Source of the rule: openshift/library-go, `pkg/operator/certrotation` (needNewSigningCertKeyPair).
"""

from __future__ import annotations

from datetime import timedelta

from runup.checks.catalogue.shared.certificate_bundles import BUNDLE, MANAGED, BadBundle, is_late, validities
from runup.checks.writing import Context, Findings, Snapshot, declared, full_name, risk, unknown

NAME = "CertificateAuthorityExpires"
MARGIN = timedelta(days=7)
EXAMPLE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-apiserver-aggregator-client-ca, namespace: openshift-config-managed}
data:
  ca-bundle.crt: |
    -----BEGIN CERTIFICATE-----
    MIIBDTCBtaADAgECAgEBMAoGCCqGSM49BAMCMBExDzANBgNVBAMMBnNpZ25lcjAe
    Fw0yNTEyMTUwMDAwMDBaFw0yNjAxMTYwMDAwMDBaMBExDzANBgNVBAMMBnNpZ25l
    cjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOoXjGtnAyPs5WJeM7uRdGh/V3x1
    G/8g5DD1mkfCEIIIr+7GAVebN/6f1scfO9Grgb6LpNDv1il+ytBhOOX1oeswCgYI
    KoZIzj0EAwIDRwAwRAIgYR5PGxhFKH7R+QaTGA+peKsCssx5vkHwSCDJQ+jI+4QC
    IF+cmoqWU1RhvCliVWS4uWe23lurtmvZakeAbCFa/nqM
    -----END CERTIFICATE-----
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a finding for each ConfigMap whose authorities end soon, have ended or cannot be read."""
    for config_map in sorted(snapshot.listed(MANAGED), key=lambda config_map: config_map.metadata.name):
        name, namespace = config_map.metadata.name, config_map.metadata.namespace
        try:
            # The one valid longest counts: authorities that were renewed stay in the bundle for a time.
            last = max(validities(config_map.data.get(BUNDLE, "")), key=lambda validity: validity[1], default=None)
        except BadBundle as bad:
            why = f"{BUNDLE} of ConfigMap {full_name(config_map)} cannot be read: {bad}"
            yield unknown(NAME, why, [config_map], fix=f"See `oc -n {namespace} get cm {name} -o yaml`.")
            continue
        if last is not None and last[1] - context.now <= MARGIN and is_late(last, context.now):
            ended = "ended" if last[1] <= context.now else "ends"
            yield risk(
                NAME,
                f"The last certificate authority of ConfigMap {full_name(config_map)} {ended} at "
                f"{last[1]:%Y-%m-%dT%H:%M:%SZ}.",
                [config_map],
                severity="critical",
                fix=f"See with `oc -n {namespace} describe cm {name}` who renews it.",
            )


CHECK = declared(run, NAME, "kube-apiserver", reads=(MANAGED,), rank=180, severity="critical", clusters="OpenShift")
