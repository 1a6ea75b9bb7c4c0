"""Pods that an update evicts run images that their registries no longer have.

Applies when a pod that a drain evicts, and that a controller recreates, has an image of the table
`data/withdrawn-images.yaml`. The check does not know whether the pod's next node or a mirror has the image.

Why it matters: a pod that is recreated on another node stays in ImagePullBackOff there.

Remedy: change the image in the workload's template before the update.

Accepting it is right where a mirror or every node has the image.

Source of the rule: the announcements that the rows of the table cite.
"""

from __future__ import annotations

from kubekit.rules.owners import controller_of
from runup.checks.catalogue.shared.pods import PODS, is_drained, select_pods
from runup.checks.decide.addon_images import withdrawal
from runup.checks.writing import Context, Findings, Snapshot, count, declared, names, names_of, risk

NAME = "ImageWithdrawn"
EXAMPLE = """
apiVersion: v1
kind: Pod
metadata: {name: db-0, namespace: shop, ownerReferences: [{kind: StatefulSet, name: db, controller: true}]}
spec: {nodeName: worker-0, containers: [{name: db, image: "docker.io/bitnami/postgresql:16.3.0"}]}
status: {phase: Running}
"""
_PODS_MADE_AGAIN = select_pods(
    lambda pods: [
        pod
        for pod in pods
        if pod.demands.withdrawn and is_drained(pod) and controller_of(pod.metadata.owner_references)
    ]
)


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one risk that names the pods and their images."""
    pods = _PODS_MADE_AGAIN(snapshot.listed(PODS))
    if pods:
        images = sorted({image for pod in pods for image in pod.demands.withdrawn})
        rows = [row for image in images if (row := withdrawal(image))]
        others = names(sorted({f"{row['instead']} ({row['source']})" for row in rows}))
        yield risk(
            NAME,
            f"{count(len(pods), 'pod')} ({names_of(pods)}) {'runs an image' if len(pods) == 1 else 'run images'} that "
            f"the registry no longer has: {names(images)}.",
            pods,
            fix=f"Change the image in the template: {others}.",
            kind=PODS,
        )


CHECK = declared(run, NAME, "kubelet", reads=(PODS,), rank=626, clusters="both")
