"""The cluster's nodes may not pull the target's image from where it is.

Applies when Image `cluster` names allowed registries and none of them covers the target's image, or blocked ones and
one of them does. Entries are a registry, a registry with the beginning of a path, or `*.` and a domain. A blocked entry
that has the running release's repository too does not keep the target away: the machine-config operator leaves such an
entry out, or uses it only as far as mirrors take its place.

Why it matters: the container runtime of each node refuses the image, so the preflight's and the update's own pods end
in ImagePullBackOff, and the update stops at its beginning.

Remedy: name the registry in
`spec.registrySources.allowedRegistries`, or take it out of `blockedRegistries` (`oc edit image.config.openshift.io
cluster`), and wait until the pools are updated. A mirror does not help by itself: the policy is about the name that is
asked for.

Accepting it means that the update stops at its first image.

Source of the rule: the OpenShift documentation of image configuration resources, and containers-policy.json(5): the
scopes of transport `docker`; openshift/machine-config-operator, `pkg/controller/container-runtime-config`
(getValidBlockedAndAllowedRegistries).
"""

from __future__ import annotations

from runup.api.cluster_settings_v1 import Image
from runup.api.config_v1 import ClusterVersion
from runup.checks.catalogue.shared.pull_specs import covers, repository_of, running_repository
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, declared, risk, unknown

NAME = "TargetRegistryRefused"
EXAMPLE = """
apiVersion: config.openshift.io/v1
kind: Image
metadata: {name: cluster}
spec: {registrySources: {allowedRegistries: [registry.example.com, "image-registry.openshift-image-registry.svc:5000"]}}
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk if spec.registrySources keeps nodes from pulling the target's image."""
    for config in snapshot.all_or_none(Image):
        sources = config.spec.registry_sources
        if not sources.allowed_registries and not sources.blocked_registries:
            continue
        repository = repository_of(context.target_image)
        if not repository:
            yield unknown(
                NAME,
                "Image cluster limits the registries, and the target's image is not known",
                [config],
                fix="Compare spec.registrySources of `oc get image.config.openshift.io cluster -o yaml` with it.",
            )
            continue
        why = ""
        if blocking := [registry for registry in sources.blocked_registries if covers(registry, repository)]:
            running = running_repository(snapshot)
            entry = next((registry for registry in blocking if not covers(registry, running)), "")
            why = f"blockedRegistries has {entry}" if entry else ""
        allowed = sources.allowed_registries
        if not why and allowed and not any(covers(registry, repository) for registry in allowed):
            why = "allowedRegistries names no registry that has it"
        if why:
            yield risk(
                NAME,
                f"Nodes may not pull the target's image {repository}: {why}.",
                [config],
                severity="critical",
                fix="Change spec.registrySources by `oc edit image.config.openshift.io cluster`; the pools follow.",
            )


CHECK = declared(
    run, NAME, "machine-config-operator", reads=(Image, ClusterVersion, DEFINITIONS), rank=700, severity="critical"
)
