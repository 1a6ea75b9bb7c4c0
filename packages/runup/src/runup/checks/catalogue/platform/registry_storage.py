"""The cluster's image registry stores its images in an emptyDir, which the next drain deletes.

Applies when the registry's configuration says managementState Managed and storage emptyDir.

Why it matters: when its node is drained, the pod moves and all images that were pushed to it are lost, such as images
that were built in the cluster.

Remedy: give the registry a volume or an object store (`oc edit configs.imageregistry.operator.openshift.io cluster`).

Accepting it is right where no images are pushed to the registry.

Source of the rule: openshift/cluster-image-registry-operator, documentation of `storage.emptyDir` (not for production).
"""

from __future__ import annotations

from runup.api.operator_v1 import ImageRegistryConfig
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, declared, risk

NAME = "ImageRegistryEphemeral"
EXAMPLE = """
apiVersion: imageregistry.operator.openshift.io/v1
kind: Config
metadata: {name: cluster}
spec: {managementState: Managed, storage: {emptyDir: {}}}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a risk if the image registry stores its images in an emptyDir."""
    for config in snapshot.all_or_none(ImageRegistryConfig):
        if config.spec.management_state == "Managed" and config.spec.storage.empty_dir is not None:
            yield risk(
                NAME,
                "The image registry keeps its images in an emptyDir, which is gone when its node is drained.",
                [config],
                fix="Give it a volume or an object store: `oc edit configs.imageregistry.operator.openshift.io "
                "cluster`.",
            )


CHECK = declared(run, NAME, "image-registry", reads=(ImageRegistryConfig, DEFINITIONS), rank=670)
