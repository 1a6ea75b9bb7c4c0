"""An operator of the newer OLM is not installed as asked for, or its package is at its end.

Applies when a ClusterExtension has Installed=False, or a condition that says it is Deprecated.

Why it matters what it was to bring is missing or incomplete, and an update of the cluster does not mend it.

What to do `oc describe clusterextension NAME` says why; it shows Installed=True afterwards.

Accepting it means that this operator stays as it is.

Source of the rule operator-framework/operator-controller, `api/v1` (conditions of ClusterExtension).
"""

from __future__ import annotations

from collections.abc import Iterator

from kubekit.api.conditions import find
from runup.api.olm_v1alpha1 import ClusterExtension
from runup.checks.catalogue.declaring import declared, risk
from runup.checks.catalogue.shared.presence import DEFINITIONS, all_or_none
from runup.checks.decide.model import Context, Finding, Snapshot
from runup.checks.decide.wording import said

NAME = "ClusterExtensionNotInstalled"
BAD = (("Installed", "False", "is not installed"), ("Deprecated", "True", "is deprecated"))
EXAMPLE = """
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: argocd}
status:
  conditions: [{type: Installed, status: "False", reason: Failed, message: no bundle found}]
"""


def _run(snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    for extension in sorted(all_or_none(snapshot, ClusterExtension), key=lambda each: each.metadata.name):
        name = extension.metadata.name
        for type_, bad, words in BAD:
            condition = find(extension.status.conditions, type_)
            if condition is not None and condition.status == bad:
                yield risk(
                    f"{NAME}-{name}",
                    f"ClusterExtension {name} {words}{said(condition)}",
                    [extension],
                    severity="warning" if type_ == "Installed" else "info",
                    fix=f"See `oc describe clusterextension {name}`, and mend what it names.",
                )


CHECK = declared(
    __doc__, NAME, "operator-lifecycle-manager", (ClusterExtension, DEFINITIONS), _run, rank=480, example=EXAMPLE
)
