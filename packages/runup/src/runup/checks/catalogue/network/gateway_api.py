"""Definitions of the Gateway API are not the platform's.

Applies when the target is 4.19 or later and the cluster has CustomResourceDefinitions of the group
gateway.networking.k8s.io that the ingress operator does not manage, or that are of the experimental channel. Before the
update to 4.19 it also applies to those that the operator will take over, as a warning, and to the group
gateway.networking.x-k8s.io.

Why it matters: from 4.19 on the ingress operator brings these definitions itself, of one version and of the standard
channel. With others it says Degraded, and the update stops; fields that its definitions lack are lost from objects.

Remedy: back the objects up, and delete or replace the definitions and the component that installed them before the
update; `oc get crd | grep -F gateway.networking` shows them.

Accepting it is right for definitions that are those of the target's version.

Source of the rule: cluster-ingress-operator, `pkg/operator/controller/gatewayapi` (managedCRDs,
listUnmanagedGatewayAPICRDs); the OpenShift documentation of updating to 4.19 (Gateway API management succession).
"""

from __future__ import annotations

from kubekit.api.extension_v1 import CustomResourceDefinition
from runup.checks.writing import DEFINITIONS, MINOR, Context, Findings, Snapshot, count, declared, names_of, risk

NAME = "GatewayAPIForeign"
FIRST_VERSION_WITH_CRDS = (4, 19)
GROUP, EXPERIMENTAL_GROUP = "gateway.networking.k8s.io", "gateway.networking.x-k8s.io"
CHANNEL = "gateway.networking.k8s.io/channel"
# The resources that the operator brings in some release since 4.19; the later ones came one by one.
MANAGED = frozenset(
    {"gatewayclasses", "gateways", "grpcroutes", "httproutes", "referencegrants"}
    | {"backendtlspolicies", "listenersets", "tlsroutes"}
)
EXAMPLE = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tcproutes.gateway.networking.k8s.io, annotations: {gateway.networking.k8s.io/channel: experimental}}
spec:
  group: gateway.networking.k8s.io
  names: {kind: TCPRoute, plural: tcproutes}
  versions: [{name: v1alpha2, served: true, storage: true}]
"""


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for Gateway API definitions that are not the target's, and one for those that it takes over."""
    if context.target.minor_version < FIRST_VERSION_WITH_CRDS:
        return
    taken_over = context.source.minor_version < FIRST_VERSION_WITH_CRDS
    groups = (GROUP, EXPERIMENTAL_GROUP) if taken_over else (GROUP,)
    definitions = sorted(
        (definition for definition in snapshot.all(CustomResourceDefinition) if definition.spec.group in groups),
        key=lambda definition: definition.metadata.name,
    )
    foreign = [
        definition
        for definition in definitions
        if (
            definition.metadata.annotations.get(CHANNEL) == "experimental"
            or definition.spec.group != GROUP
            or definition.spec.names.plural not in MANAGED
        )
    ]
    if foreign:
        yield risk(
            NAME,
            f"{count(len(foreign), 'definition')} of the Gateway API {'is' if len(foreign) == 1 else 'are'} not what "
            f"{context.target} brings: {names_of(foreign)}.",
            foreign,
            severity="critical",
            fix="Back their objects up, and delete them with whatever installed them: `oc get crd | grep -F "
            "gateway.networking`.",
        )
    expected_definitions = [definition for definition in definitions if definition not in foreign]
    if taken_over and expected_definitions:
        yield risk(
            NAME,
            f"The ingress operator of {context.target} takes over {count(len(expected_definitions), 'definition')} of "
            f"the Gateway API: {names_of(expected_definitions)}.",
            expected_definitions,
            fix="See that they are of the version that the target brings, and that nobody else manages them.",
        )


CHECK = declared(
    run, NAME, "ingress", reads=(DEFINITIONS,), rank=378, severity="critical", updates=MINOR, clusters="OpenShift"
)
