"""An installed operator says that it needs an API that the target does not serve.

Applies when a ClusterServiceVersion's `spec.nativeAPIs` names a version of a built-in group that is removed in the
target's Kubernetes.

Why it matters: after the update, OLM finds the requirement missing and sets the operator to Failed, then to Pending.
Its pods continue to run, but OLM neither repairs nor updates it.

Remedy: update the operator to a version that does not need it; `oc get csv NAME -o yaml` shows its nativeAPIs.

Accepting it means that the operator may not work on the target.

Source of the rule: operator-framework/api, `operators/v1alpha1` (NativeAPIs are requirements);
operator-lifecycle-manager, `pkg/controller/operators/olm` (requirements of an operator in phase Succeeded); the
deprecation guide of Kubernetes.
"""

from __future__ import annotations

from runup.checks.catalogue.olm.shared.installed_operators import READS, installed
from runup.checks.catalogue.shared.kubernetes_versions import target_minor, target_unknown
from runup.checks.decide.removal_tables import removed_versions
from runup.checks.writing import Context, Findings, Snapshot, declared, full_name, names, risk

NAME = "OperatorNeedsRemovedAPI"
EXAMPLE = """
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: shop.v1.2.0, namespace: shop}
spec: {nativeAPIs: [{group: policy, version: v1beta1, kind: PodDisruptionBudget}]}
status: {phase: Succeeded}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for each operator that requires an API that the target does not serve."""
    needing = [csv for csv in installed(snapshot) if csv.spec.native_apis]
    target = target_minor(context)
    if target is None and needing:
        yield target_unknown(NAME, needing)
        return
    removed = removed_versions(0, target or 0)
    for csv in needing:
        removed_apis = [api for api in csv.spec.native_apis if (api.group, api.version, api.kind) in removed]
        if removed_apis:
            listing = names([f"{api.kind} in {api.group}/{api.version}" for api in removed_apis])
            yield risk(
                f"{NAME}-{csv.metadata.name}",
                f"Operator {full_name(csv)} needs {listing}, which {context.target} does not serve.",
                [csv],
                fix=f"Update it first; `oc get csv {csv.metadata.name} -n {csv.metadata.namespace} -o yaml` names "
                "its needs.",
            )


CHECK = declared(run, NAME, "operator-lifecycle-manager", reads=READS, rank=460)
