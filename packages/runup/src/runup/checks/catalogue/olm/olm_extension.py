"""A ClusterExtension is not installed as specified, or its package is deprecated.

Applies when a ClusterExtension has Installed=False, a condition that says it is Deprecated, or, installed, has been
Progressing with reason Retrying, Blocked, InvalidConfiguration or ProgressDeadlineExceeded for ten minutes or more: its
next version cannot be installed. One whose condition Installed is missing or Unknown is Unknown.

Why it matters: its content is missing or incomplete, and an update of the cluster does not fix it.

Remedy: `oc describe clusterextension NAME` says why; it shows Installed=True afterwards.

Accepting it means that this operator stays as it is.

Source of the rule: operator-framework/operator-controller, `api/v1` (conditions of ClusterExtension).
"""

from __future__ import annotations

from kubekit.api.conditions import find
from runup.api.olm_v1alpha1 import ClusterExtension
from runup.checks.writing import (
    DEFINITIONS,
    DOWN_PATIENCE,
    Context,
    Findings,
    Snapshot,
    condition_text,
    declared,
    risk,
    unknown,
)

NAME = "ClusterExtensionNotInstalled"
UNHEALTHY_CONDITIONS = (("Installed", "False", "is not installed"), ("Deprecated", "True", "is deprecated"))
# Reasons of Progressing with which no next version comes by itself.
STUCK_REASONS = ("Retrying", "Blocked", "InvalidConfiguration", "ProgressDeadlineExceeded")
EXAMPLE = """
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: argocd}
status:
  conditions: [{type: Installed, status: "False", reason: Failed, message: no bundle found}]
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a finding for each bad condition of each ClusterExtension."""
    for extension in sorted(
        snapshot.all_or_none(ClusterExtension), key=lambda cluster_extension: cluster_extension.metadata.name
    ):
        name = extension.metadata.name
        for type_, bad, words in UNHEALTHY_CONDITIONS:
            condition = find(extension.status.conditions, type_)
            if condition is not None and condition.status == bad:
                yield risk(
                    f"{NAME}-{name}",
                    f"ClusterExtension {name} {words}{condition_text(condition)}",
                    [extension],
                    severity="warning" if type_ == "Installed" else "info",
                    fix=f"See `oc describe clusterextension {name}`, and fix what it names.",
                )
        progressing, installed = (
            find(extension.status.conditions, "Progressing"),
            find(extension.status.conditions, "Installed"),
        )
        if installed is None or installed.status == "Unknown":
            yield unknown(
                NAME,
                f"ClusterExtension {name} does not report whether it is installed",
                [extension],
                fix=f"See `oc describe clusterextension {name}`, and the pods of operator-controller.",
            )
        # One that is not installed has its finding already.
        elif (
            installed.status != "False"
            and progressing is not None
            and (
                progressing.reason in STUCK_REASONS
                and (
                    progressing.last_transition_time is None
                    or context.now - progressing.last_transition_time >= DOWN_PATIENCE
                )
            )
        ):
            yield risk(
                f"{NAME}-{name}",
                f"ClusterExtension {name} cannot become what is asked for{condition_text(progressing)}",
                [extension],
                fix=f"See `oc describe clusterextension {name}`, and fix what it names.",
            )


CHECK = declared(run, NAME, "operator-lifecycle-manager", reads=(ClusterExtension, DEFINITIONS), rank=480)
