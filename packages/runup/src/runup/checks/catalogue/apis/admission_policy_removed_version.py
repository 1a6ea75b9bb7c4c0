"""An admission policy matches only API versions that the target does not serve.

Applies when the target's Kubernetes serves none of the resources in the versions that a resourceRule of a bound
ValidatingAdmissionPolicy or MutatingAdmissionPolicy names, or of its binding, while the cluster's serves some, and the
other rules there do not name the same resources for the same operations in a version that stays. Only groups that the
table of removed versions knows are evaluated. matchPolicy Equivalent changes nothing: the API server converts between
the versions that it serves, and a removed version is not one of them; a rule that also names a version that stays is
fine. Before Kubernetes 1.36, which serves MutatingAdmissionPolicies by default, a failed list of them counts as empty.

Why it matters: the policy no longer refuses or changes any request, and no error shows that it has no effect.

Remedy: name a version in the rule that the target serves, or `*`; `oc get validatingadmissionpolicies -o yaml` shows
the rules.

Accepting it means that the policy has no effect any more.

Source of the rule: the Kubernetes documentation of ValidatingAdmissionPolicy (matchConstraints, matchPolicy);
apiserver, `pkg/admission/plugin/policy/matching/matching.go`, which matches rules as for webhooks; the deprecation
guide.
"""

from __future__ import annotations

from kubekit.api.extension_v1 import MatchResources
from kubekit.api.meta_v1 import Object
from runup.checks.catalogue.apis.shared.policies import MUTATING_BY_DEFAULT, PAIRS, READS, VALIDATING
from runup.checks.catalogue.apis.shared.webhooks import (
    beyond_table_finding,
    names_removed,
    versions_beyond_table,
    versions_not_covered,
)
from runup.checks.catalogue.shared import kubernetes_versions as kubernetes
from runup.checks.decide.model import DEFINITIONS, Context, Snapshot, Unreadable
from runup.checks.decide.removal_tables import removed_versions, table
from runup.checks.writing import Findings, Resource, declared, names, risk

NAME = "AdmissionPolicyRemovedVersion"
EXAMPLE = """
apiVersion: v1
kind: Node
metadata: {name: worker-0}
status: {nodeInfo: {kubeletVersion: v1.36.4}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: service-ranges}
spec:
  matchConstraints:
    resourceRules:
    - {operations: [CREATE], apiGroups: [networking.k8s.io], apiVersions: [v1beta1], resources: [servicecidrs]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: service-ranges}
spec: {policyName: service-ranges, validationActions: [Deny]}
"""


# A policy or a binding in force with a rule that names only versions that go some time.
_Suspect = tuple[Object, Resource, MatchResources]


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for each policy or binding that names only versions that the target no longer serves."""
    target = kubernetes.target_minor(context)
    # Most updates remove no version that a policy could name: then nobody is asked for policies.
    if (
        target is not None
        and table("removed-apis").knows(target)
        and not any(
            "alpha" not in version for _, version, _ in removed_versions(kubernetes.least_source_minor(context), target)
        )
    ):
        return
    lacking: Unreadable | None = None
    suspects: list[_Suspect] = []
    for policies, bindings in PAIRS:
        try:
            bound_to, listed = snapshot.list_first_served(bindings), snapshot.list_first_served(policies)
        except Unreadable as error:
            if policies is VALIDATING[0] or ((kubernetes.source_minor(snapshot, context) or 0) >= MUTATING_BY_DEFAULT):
                lacking = lacking or error
            continue
        names_in_force = {binding.spec.policy_name for binding in bound_to}
        in_force = [policy for policy in listed if policy.metadata.name in names_in_force]
        held = [(policy, policies[0], policy.spec.match_constraints) for policy in in_force]
        held += [(binding, bindings[0], binding.spec.match_resources) for binding in bound_to]
        for holder, kind, constraints in sorted(held, key=lambda each: (each[1].kind, each[0].metadata.name)):
            if constraints is not None and names_removed(constraints.resource_rules):
                suspects.append((holder, kind, constraints))
            if constraints is not None and (unclear := versions_beyond_table(constraints.resource_rules, target or 0)):
                yield beyond_table_finding(NAME, f"{kind.kind} {holder.metadata.name}", unclear)
    source = kubernetes.source_minor(snapshot, context) if suspects else None
    if suspects and (source is None or target is None):
        holder, kind, _ = suspects[0]
        yield kubernetes.versions_unknown(NAME, target, [holder], kind)
    elif source is not None and target is not None:
        for holder, kind, constraints in suspects:
            if versions := versions_not_covered(constraints.resource_rules, source, target):
                yield risk(
                    NAME,
                    f"A rule of {kind.kind} {holder.metadata.name} matches only {names(versions)}, which "
                    f"{context.target} does not serve.",
                    [holder],
                    fix="Name a version in the rule that the target serves.",
                    kind=kind,
                )
    if lacking is not None:
        raise lacking


CHECK = declared(
    run,
    NAME,
    "kube-apiserver",
    reads=(*READS, DEFINITIONS, *kubernetes.READS),
    rank=215,
    clusters="both",
)
