"""An installed operator says that it does not run on the target's minor version.

Applies when a ClusterServiceVersion that OLM installed has the property `olm.maxOpenShiftVersion` below the target's
minor version. Each is a separate risk. A value that is not a version is Unknown, and the finding names it. The target
counts, not the next minor version: an operator that allows the next one does not block an update to it, but may block
an update over several.

Why it matters: OLM says Upgradeable=False and the update is refused; where it is forced, the operator may fail.

Remedy: update the operator first to a version that allows the target, if necessary from another channel; `oc get csv -n
NAMESPACE` shows the new one Succeeded.

Accepting it means that this operator may fail on the target.

Source of the rule: operator-lifecycle-manager, `pkg/controller/operators/openshift/helpers.go`.
"""

from __future__ import annotations

from runup.checks.catalogue.olm.shared import installed_operators as olm
from runup.checks.writing import MINOR, Context, Findings, Snapshot, declared, full_name, risk, unknown

NAME = "OperatorMaxOpenShiftVersion"
EXAMPLE = """
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: logging.v5.8.1
  namespace: openshift-logging
  annotations: {operatorframework.io/properties: '{"properties":[{"type":"olm.maxOpenShiftVersion","value":"5.0"}]}'}
status: {phase: Succeeded}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for each operator whose olm.maxOpenShiftVersion is below the target."""
    for csv in olm.installed(snapshot):
        name, namespace = csv.metadata.name, csv.metadata.namespace
        try:
            highest = olm.max_openshift_version(csv.metadata.annotations.get(olm.PROPERTIES, ""))
        except olm.BadMaximum as bad:
            yield unknown(
                NAME,
                f"operator {full_name(csv)} has {bad}",
                [csv],
                fix=f"OLM refuses minor updates for it: `oc get csv {name} -n {namespace} -o yaml`; inform its vendor.",
            )
            continue
        if highest is not None and not olm.maximum_allows(highest, context.target):
            yield risk(
                f"{NAME}-{name}",
                f"Operator {full_name(csv)} runs on OpenShift up to {highest[0]}.{highest[1]}, not on "
                f"{olm.target_name(context)}.",
                [csv],
                fix=f"Update it first, if need be from another channel; `oc get csv -n {namespace}` shows the new one.",
                kind=olm.CSVS,
            )


CHECK = declared(run, NAME, "operator-lifecycle-manager", reads=olm.READS, rank=400, updates=MINOR)
