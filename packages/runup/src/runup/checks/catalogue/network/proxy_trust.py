"""The certificate authorities that the cluster trusts its proxy with are missing or have expired.

Applies when Proxy `cluster` names a ConfigMap of `openshift-config` as trustedCA that is not there, that has no
certificate, or whose certificates have all ended. It is a warning if the last of them expires within seven days,
possibly during the update.

Why it matters: images of the target are pulled through that proxy.

Remedy: write a valid bundle into the ConfigMap, under the key `ca-bundle.crt`; `oc get co network` says Degraded=False.

Accepting it means that the target's images may not be pulled.

Source of the rule: cluster-network-operator, `pkg/controller/proxyconfig` (trustedCA).
"""

from __future__ import annotations

from datetime import timedelta

from kubekit.api.core_v1 import ConfigMap
from runup.api.cluster_settings_v1 import Proxy
from runup.checks.catalogue.shared.certificate_bundles import BUNDLE, CONFIG, BadBundle, expiry_times
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, declared, risk

NAME = "ProxyTrustBroken"
MARGIN = timedelta(days=7)
ENDS_SOON_TEXT = "has no certificate that is valid for long: the last ends"
EXAMPLE = """
apiVersion: config.openshift.io/v1
kind: Proxy
metadata: {name: cluster}
spec: {httpsProxy: "http://proxy.example.com:3128", trustedCA: {name: user-ca-bundle}}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for each Proxy whose bundle of authorities is missing, malformed or about to expire."""
    for proxy in snapshot.all_or_none(Proxy):
        name = proxy.spec.trusted_ca.name
        if not name:
            continue
        if why := _bundle_problem(snapshot.named(CONFIG, name, "openshift-config"), context):
            yield risk(
                NAME,
                f"The cluster trusts its proxy by ConfigMap openshift-config/{name}, which {why}.",
                [proxy],
                severity="warning" if why.startswith(ENDS_SOON_TEXT) else "critical",
                fix=f"Give `oc -n openshift-config get cm {name}` certificates that are valid, in its key {BUNDLE}.",
            )


def _bundle_problem(config_map: ConfigMap | None, context: Context) -> str:
    """Returns the fault of the ConfigMap, or an empty string."""
    if config_map is None:
        return "is not there"
    try:
        last = max(expiry_times(config_map.data.get(BUNDLE, "")), default=None)
    except BadBundle as bad:
        return f"has a {BUNDLE} that cannot be read: {bad}"
    if last is None:
        return f"has no certificate in {BUNDLE}"
    if last <= context.now:
        return f"has no certificate that is valid: the last ended at {last:%Y-%m-%dT%H:%M:%SZ}"
    return f"{ENDS_SOON_TEXT} at {last:%Y-%m-%dT%H:%M:%SZ}" if last - context.now <= MARGIN else ""


CHECK = declared(
    run, NAME, "cluster-network-operator", reads=(Proxy, CONFIG, DEFINITIONS), rank=680, severity="critical"
)
