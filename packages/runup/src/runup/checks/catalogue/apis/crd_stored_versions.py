"""Objects may still be stored in a version of their kind that the target's definition does not have.

Applies when the target's own manifests bring a CustomResourceDefinition, the cluster has one of that name, and
`status.storedVersions` names a version that is not in the target's `spec.versions`. The result is Unknown if the
manifests of the release cannot be read, or if a definition with such a version has no storedVersions. On clusters
without a ClusterVersion, only add-ons install definitions. There the check warns about a definition that stores a
version that is missing in its own `spec.versions`.

Why it matters: the API server refuses such a definition, so the update stops at it.

Remedy: rewrite the objects in the storage version (a StorageVersionMigration, or `oc get KIND -A -o yaml | oc replace
-f -`), then remove the version from the status: `oc patch crd NAME --subresource=status --type=merge -p ...`; `oc get
crd NAME -o jsonpath='{.status.storedVersions}'` shows the remaining versions.

Accepting it means that the update stops
there.

Source of the rule: kubernetes, `apiextensions-apiserver/pkg/apis/apiextensions/validation` (a stored version must
appear in spec.versions); the complaints of cluster-api#6691, strimzi#12751 and karpenter#2157.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubekit.api.extension_v1 import CustomResourceDefinition
from runup.api.clusterversion_json import mapping, mappings
from runup.checks.decide.cluster_kinds import ClusterKind
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, declared, names, risk, unknown

NAME = "CRDStoredVersionDropped"
EXAMPLE = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: machines.machine.openshift.io}
spec:
  group: machine.openshift.io
  names: {kind: Machine, plural: machines}
  versions: [{name: v1alpha1, served: true, storage: false}, {name: v1beta1, served: true, storage: true}]
status: {storedVersions: [v1alpha1, v1beta1]}
---
# Of the target:
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: machines.machine.openshift.io, annotations: {example: target}}
spec:
  group: machine.openshift.io
  versions: [{name: v1beta1, served: true, storage: true}]
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for each definition with a stored version that the target's definition lacks."""
    definitions = snapshot.all(CustomResourceDefinition)
    if not definitions:
        return
    if context.cluster is ClusterKind.KUBERNETES:
        yield from _incomplete(definitions)
        return
    if context.manifests is None:
        yield unknown(NAME, "the target's manifests could not be read", fix="Check with the release's whole image.")
        return
    target_versions: dict[str, frozenset[str]] = {}
    definition_manifests = [
        manifest
        for manifest in context.manifests
        if isinstance(manifest, dict) and manifest.get("kind") == "CustomResourceDefinition"
    ]
    for manifest in definition_manifests:
        defined_name, spec = mapping(manifest, "metadata").get("name"), mapping(manifest, "spec")
        if isinstance(defined_name, str) and isinstance(spec.get("versions"), list):
            target_versions[defined_name] = frozenset(
                str(version["name"]) for version in mappings(spec, "versions") if "name" in version
            )
    for crd in sorted(definitions, key=lambda definition: definition.metadata.name):
        name = crd.metadata.name
        dropped = [
            version
            for version in crd.status.stored_versions
            if name in target_versions and version not in target_versions[name]
        ]
        if not crd.status.stored_versions and name in target_versions:
            # The API server writes the field when the definition is created; any of its versions may be stored.
            if lost := sorted({version.name for version in crd.spec.versions} - target_versions[name]):
                why = f"{name} does not report its storedVersions, and {context.target} does not have {names(lost)}"
                yield unknown(NAME, why, [crd], fix=f"See `oc get crd {name} -o yaml`.")
        elif dropped:
            yield risk(
                NAME,
                f"Objects of {name} may be stored in {names(dropped)}, which the definition of {context.target} "
                f"does not have (it has {names(sorted(target_versions[name]))}).",
                [crd],
                severity="critical",
                fix=f"Rewrite the objects, then patch the status; `oc get crd {name} -o yaml` shows storedVersions.",
            )


def _incomplete(definitions: Iterable[CustomResourceDefinition]) -> Findings:
    """Yields one finding that names the definitions without a version in which objects of theirs may be stored."""
    incomplete = [
        (crd, missing)
        for crd in sorted(definitions, key=lambda definition: definition.metadata.name)
        if (missing := {*crd.status.stored_versions} - {version.name for version in crd.spec.versions})
    ]
    if incomplete:
        listing = names([f"{crd.metadata.name} ({names(sorted(missing))})" for crd, missing in incomplete])
        yield risk(
            NAME,
            f"Objects may be stored in a version that their definition does not have: {listing}. The API server "
            "refuses the next update of such a definition.",
            [crd for crd, _ in incomplete],
            fix="Rewrite the objects in the storage version, then take the version out of status.storedVersions with "
            "`kubectl patch crd NAME --subresource=status --type=merge -p ...`.",
        )


CHECK = declared(
    run, NAME, "cluster-version-operator", reads=(DEFINITIONS,), rank=300, severity="critical", clusters="both"
)
