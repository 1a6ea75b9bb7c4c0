"""An admission policy that refuses needs parameters of a kind that the cluster does not have.

Applies when a ValidatingAdmissionPolicy has failurePolicy Fail, has a binding, and has a paramKind that is neither
built in nor defined by a CustomResourceDefinition. The API server cannot compile such a policy, and applies its
failurePolicy. The risk is critical if the policy's matchConstraints match requests of an update or are empty; otherwise
it is a warning.

Why it matters: the API server refuses every request that the policy matches, including those of the update.

Remedy: install the definition, or delete the binding; `oc get validatingadmissionpolicybindings` shows it gone.

Accepting it means that objects that the policy matches cannot be written.

Source of the rule: the Kubernetes documentation of ValidatingAdmissionPolicy (paramKind, failurePolicy); apiserver,
`pkg/admission/plugin/policy/validating/dispatcher.go` (a configuration error ignores the validation actions); the
deadlock of open-policy-agent/gatekeeper#4530.
"""

from __future__ import annotations

from kubekit.api.extension_v1 import CustomResourceDefinition, Webhook
from kubekit.api.extension_v1 import ValidatingAdmissionPolicy as Policy
from kubekit.api.extension_v1 import ValidatingAdmissionPolicyBinding as Binding
from runup.checks.catalogue.apis.shared.webhooks import NAMESPACES, intercepted_objects
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.decide.built_in_groups import is_built_in
from runup.checks.writing import DEFINITIONS, Context, Findings, Snapshot, declared, risk

NAME = "AdmissionPolicyParamMissing"
EXAMPLE = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: allowed-repos}
spec:
  failurePolicy: Fail
  paramKind: {apiVersion: constraints.gatekeeper.sh/v1beta1, kind: AllowedRepos}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: allowed-repos}
spec: {policyName: allowed-repos, validationActions: [Deny]}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields a risk for each bound, failing policy whose kind of parameters the cluster has no definition of."""
    bound = {binding.spec.policy_name for binding in snapshot.all_or_none(Binding)}
    for policy in snapshot.all_or_none(Policy):
        kind, name = policy.spec.param_kind, policy.metadata.name
        # A dot alone proves nothing: definitions may have groups below k8s.io, too (gateway.networking.k8s.io).
        if (
            name not in bound
            or policy.spec.failure_policy != "Fail"
            or kind is None
            or is_built_in(kind.api_version.rpartition("/")[0])
        ):
            continue
        group, _, version = kind.api_version.rpartition("/")
        has_definition = any(
            (crd.spec.group, crd.spec.names.kind) == (group, kind.kind)
            and any(version_entry.name == version and version_entry.served for version_entry in crd.spec.versions)
            for crd in snapshot.all(CustomResourceDefinition)
        )
        if not has_definition:
            snapshot.require_all(DEFINITIONS)
            yield risk(
                NAME,
                f"ValidatingAdmissionPolicy {name} refuses what it matches, because its parameters are of kind "
                f"{kind.kind} ({kind.api_version}), which the cluster does not have.",
                [policy],
                severity="critical" if _stops_an_update(snapshot, policy) else "warning",
                fix="Install the definition of that kind, or delete the policy's bindings.",
            )


def _stops_an_update(snapshot: Snapshot, policy: Policy) -> bool:
    """Returns whether the policy matches something that an update writes, as far as its constraints show."""
    spec = policy.spec
    if spec.match_constraints is None:
        return True
    # A policy chooses its requests as a webhook does (apiserver, pkg/admission/plugin/policy/matching).
    as_webhook = Webhook(
        rules=spec.match_constraints.resource_rules,
        namespace_selector=spec.match_constraints.namespace_selector,
        object_selector=spec.match_constraints.object_selector,
    )
    return not spec.match_conditions and bool(intercepted_objects(snapshot, as_webhook))


CHECK = declared(
    run, NAME, "kube-apiserver", reads=(Policy, Binding, DEFINITIONS, NAMESPACES, PODS), rank=220, severity="critical"
)
