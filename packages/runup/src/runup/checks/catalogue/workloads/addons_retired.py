"""An add-on runs that is no longer maintained.

Applies when pods run an image of the Ingress controller ingress-nginx, which ended on 24 March 2026. The risk is
informational: the add-on continues to run.

Why it matters: no version will be built or tested for the target's Kubernetes, and faults are not fixed.

Remedy: move to the replacement that the finding names, before or after this update; `oc get pods -A -o yaml` shows the
image.

Accepting it is right as long as it works and is protected by other means.

Source of the rule: <https://kubernetes.io/blog/2025/11/11/ingress-nginx-retirement/>, as `data/addons.yaml` has it.
"""

from __future__ import annotations

from runup.checks.catalogue.shared.pods import PODS
from runup.checks.decide.addon_images import running_addons
from runup.checks.decide.removal_tables import document
from runup.checks.writing import Context, Findings, Snapshot, declared, full_name, names, risk

NAME = "AddonRetired"
EXAMPLE = """
apiVersion: v1
kind: Pod
metadata: {name: ingress-nginx-controller-7c6f5d9b8-4q2wz, namespace: ingress-nginx}
spec: {nodeName: worker-0, containers: [{name: controller, image: "registry.k8s.io/ingress-nginx/controller:v1.14.0"}]}
status: {phase: Running}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a finding (info) for each add-on in use whose project has ended or ends."""
    for row in document("addons")["retired"]:
        addons = running_addons(snapshot.listed(PODS), [row])
        if not addons:
            continue
        ended = "ended" if f"{context.now:%Y-%m-%d}" > row["ended"] else "ends"
        tags = names([addon.tag or "of some digest" for addon in addons])
        yield risk(
            f"{NAME}-{row['name']}",
            f"{row['name']} {tags} {ended} on {row['ended']} ({row['source']}): after that date it gets neither fixes "
            "nor tests.",
            [min(addon.pods, key=full_name) for addon in addons],
            severity="info",
            fix=f"Move to {row['instead']}.",
            kind=PODS,
        )


CHECK = declared(run, NAME, "addons", reads=(PODS,), rank=118, severity="info", clusters="Kubernetes")
