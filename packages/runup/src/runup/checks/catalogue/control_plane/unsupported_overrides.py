"""A component of the control plane is configured in an unsupported way.

Applies when `unsupportedConfigOverrides` of the operator of kube-apiserver, kube-controller-manager, kube-scheduler,
etcd, authentication, openshift-apiserver or openshift-controller-manager is set, also to an empty object.

Why it matters: the operator reports Upgradeable=False because of it, and the target's component is not tested with it.

Remedy: `oc edit kubeapiserver cluster` (or what the finding names) and remove the overrides; the operator's Upgradeable
condition is then True.

Accepting it means that the target runs with an untested configuration.

Source of the rule: openshift/library-go, `pkg/operator/unsupportedconfigoverridescontroller`, which the operators of
all static pods (`pkg/operator/staticpod/controllers.go`: etcd is one) and those of authentication, openshift-apiserver
and openshift-controller-manager run.
"""

from __future__ import annotations

from typing import Any

from runup.api import operator_v1
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, declared, names, resource_of, risk

NAME = "UnsupportedConfigOverrides"
# The operators that say Upgradeable=False for their overrides, and their components.
CONFIGURED: tuple[tuple[type[Any], str], ...] = (
    (operator_v1.KubeAPIServer, "kube-apiserver"),
    (operator_v1.KubeControllerManager, "kube-controller-manager"),
    (operator_v1.KubeScheduler, "kube-scheduler"),
    (operator_v1.Etcd, "etcd"),
    (operator_v1.Authentication, "authentication"),
    (operator_v1.OpenShiftAPIServer, "openshift-apiserver"),
    (operator_v1.OpenShiftControllerManager, "openshift-controller-manager"),
)
EXAMPLE = """
apiVersion: operator.openshift.io/v1
kind: KubeScheduler
metadata: {name: cluster}
spec: {unsupportedConfigOverrides: {arguments: {v: ["9"]}}}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a risk for each operator configuration that has unsupportedConfigOverrides."""
    for kind, component in CONFIGURED:
        for operator in snapshot.all_or_none(kind):
            overrides = operator.spec.unsupported_config_overrides
            if overrides is not None:
                keys = sorted(map(str, overrides)) if isinstance(overrides, dict) else [str(overrides)[:60]]
                yield risk(
                    NAME,
                    f"{component} is configured in an unsupported way: unsupportedConfigOverrides "
                    f"{f'has {names(keys)}' if keys else 'is an empty object'}.",
                    [operator],
                    fix=f"`oc edit {kind.__name__.lower()}.operator.openshift.io cluster`, and take the overrides out.",
                )


READS = (*(resource_of(kind) for kind, _ in CONFIGURED), DEFINITIONS)
CHECK = declared(run, NAME, "kube-apiserver", reads=READS, rank=290)
