"""Declares how admission policies and their bindings are read, of both kinds."""

from __future__ import annotations

from kubekit.api.extension_v1 import ValidatingAdmissionPolicy as Policy
from kubekit.api.extension_v1 import ValidatingAdmissionPolicyBinding as Binding
from kubekit.api.meta_v1 import Object
from runup.checks.writing import Resource, Slim, resource_of

# The first minor version that serves MutatingAdmissionPolicies by default (`data/api-lifecycle.yaml`).
MUTATING_BY_DEFAULT = 36


def _reads(kind: str, plural: str, as_type: type[Object]) -> tuple[Resource, ...]:
    """Returns the reads of a kind of policies, preferred version first: older servers have the second."""
    return tuple(
        Slim(
            group="admissionregistration.k8s.io",
            version=version,
            kind=kind,
            plural=plural,
            namespaced=False,
            type=as_type,
        )
        for version in ("v1", "v1beta1")
    )


# Policies with their bindings.
VALIDATING = ((resource_of(Policy),), (resource_of(Binding),))
MUTATING = (
    _reads("MutatingAdmissionPolicy", "mutatingadmissionpolicies", Policy),
    _reads("MutatingAdmissionPolicyBinding", "mutatingadmissionpolicybindings", Binding),
)
PAIRS: tuple[tuple[tuple[Resource, ...], tuple[Resource, ...]], ...] = (VALIDATING, MUTATING)
READS = tuple(read for pair in PAIRS for versions in pair for read in versions)
