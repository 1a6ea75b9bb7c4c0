"""A certificate authority of the control plane expires soon.

Applies when the authority of the cluster (ConfigMap `kube-root-ca.crt`, key `ca.crt`), of clients (ConfigMap
`extension-apiserver-authentication`, key `client-ca-file`) or of the front proxy (there,
`requestheader-client-ca-file`), each in kube-system, has ended or ends within 90 days: a warning, and critical within
seven. If there are several certificates, the one with the latest expiry counts. Secrets and files of nodes are not
read.

Why it matters: certificates that the authority signed are refused once it has expired: kubelets, controllers and
aggregated API servers lose the API server, and an update stops in the middle. `kubeadm upgrade` renews certificates
but not authorities.

Remedy: rotate the authority before the update
(<https://kubernetes.io/docs/tasks/tls/manual-rotation-of-ca-certificates/>).

Accepting it means that the authority may expire during the update.

Source of the rule: kubernetes, `cmd/kubeadm/app/phases/certs` (authorities are made once, for ten years);
`pkg/controlplane/controller/clusterauthenticationtrust` (the ConfigMap of clients and the front proxy).
"""

from __future__ import annotations

from datetime import timedelta

from kubekit.api.core_v1 import ConfigMap
from runup.checks.catalogue.shared.certificate_bundles import BadBundle, validities
from runup.checks.writing import Context, Findings, Slim, Snapshot, declared, full_name, risk, slim_metadata, unknown

NAME = "ControlPlaneAuthorityExpires"
_SOON, _AT_ONCE = timedelta(days=90), timedelta(days=7)
_KEYS = {
    "kube-root-ca.crt": ("ca.crt",),
    "extension-apiserver-authentication": ("client-ca-file", "requestheader-client-ca-file"),
}
EXAMPLE = """
apiVersion: v1
kind: ConfigMap
metadata: {name: extension-apiserver-authentication, namespace: kube-system}
data:
  requestheader-client-ca-file: |
    -----BEGIN CERTIFICATE-----
    MIIBDTCBtaADAgECAgEBMAoGCCqGSM49BAMCMBExDzANBgNVBAMMBnNpZ25lcjAe
    Fw0yNTEyMTUwMDAwMDBaFw0yNjAxMTYwMDAwMDBaMBExDzANBgNVBAMMBnNpZ25l
    cjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOoXjGtnAyPs5WJeM7uRdGh/V3x1
    G/8g5DD1mkfCEIIIr+7GAVebN/6f1scfO9Grgb6LpNDv1il+ytBhOOX1oeswCgYI
    KoZIzj0EAwIDRwAwRAIgYR5PGxhFKH7R+QaTGA+peKsCssx5vkHwSCDJQ+jI+4QC
    IF+cmoqWU1RhvCliVWS4uWe23lurtmvZakeAbCFa/nqM
    -----END CERTIFICATE-----
"""
CONFIG_MAPS = Slim(
    group="",
    version="v1",
    kind="ConfigMap",
    plural="configmaps",
    namespaced=True,
    type=ConfigMap,
    keep=lambda config_map: ConfigMap(
        metadata=slim_metadata(config_map),
        data={key: config_map.data[key] for key in _KEYS.get(config_map.metadata.name, ()) if key in config_map.data},
    ),
    namespace="kube-system",
)


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a finding for each authority that ends soon, has ended or cannot be read."""
    for config_map in sorted(snapshot.listed(CONFIG_MAPS), key=full_name):
        for key, bundle in config_map.data.items():
            try:
                last = max((end for _, end in validities(bundle)), default=None)
            except BadBundle as bad:
                why = f"{key} of ConfigMap {full_name(config_map)} cannot be read: {bad}"
                fix = f"See `kubectl get configmap -n kube-system {config_map.metadata.name} -o yaml`."
                yield unknown(NAME, why, [config_map], fix=fix)
                continue
            if last is not None and last - context.now <= _SOON:
                yield risk(
                    f"{NAME}-{key}",
                    f"The last certificate authority in {key} of ConfigMap {full_name(config_map)} "
                    f"{'ended' if last <= context.now else 'ends'} at {last:%Y-%m-%dT%H:%M:%SZ}.",
                    [config_map],
                    severity="critical" if last - context.now <= _AT_ONCE else "warning",
                    fix="Rotate it before the update: "
                    "https://kubernetes.io/docs/tasks/tls/manual-rotation-of-ca-certificates/.",
                )


CHECK = declared(
    run, NAME, "kube-apiserver", reads=(CONFIG_MAPS,), rank=181, severity="critical", clusters="Kubernetes"
)
