"""Words a problem briefly for the Progressing condition (docs/upstream-behaviour.md 6.1)."""

from __future__ import annotations

from runup.applying.decide.problems import Problem

_FIXED = {
    "UpdatePayloadResourceNotFound": "some resources could not be updated",
    "UpdatePayloadResourceConflict": "some resources could not be updated",
    "UpdatePayloadClusterDown": "the control plane is down or not responding",
    "UpdatePayloadClusterError": "the control plane is reporting an internal error",
    "UpdatePayloadClusterOverloaded": "the control plane is overloaded and is not accepting updates",
    "UpdatePayloadClusterUnauthorized": "could not authenticate to the server",
    "UpdatePayloadRetrievalFailed": "could not download the update",
    "UpdatePayloadResourceForbidden": "the server is rejecting updates",
    "UpdatePayloadResourceTypeMissing": "a required extension is not available to update",
    "UpdatePayloadResourceInvalid": "some cluster configuration is invalid",
    "UpdatePayloadIntegrity": "the contents of the update are invalid",
    "ImageVerificationFailed": "the image may not be safe to use",
    "UpgradePreconditionCheckFailed": "it may not be safe to apply this update",
    "ClusterOperatorsDegraded": "some cluster operators are degraded",
    "ClusterOperatorsNotAvailable": "some cluster operators are not available",
    "ClusterOperatorsNoVersions": "some cluster operators do not declare expected versions",
    "ClusterOperatorsUpdating": "some cluster operators are updating versions",
}
_NAMED = {
    "ClusterOperatorDegraded": ("cluster operator", "is degraded"),
    "ClusterOperatorNotAvailable": ("cluster operator", "is not available"),
    "ClusterOperatorNoVersions": ("cluster operator", "does not declare expected versions"),
    "ClusterOperatorUpdating": ("cluster operator", "is updating versions"),
    "WorkloadNotAvailable": ("workload", "has not yet successfully rolled out"),
    "WorkloadNotProgressing": ("workload", "cannot roll out"),
}


def summary_of(problem: Problem) -> str:
    """Returns a short text for `problem`, without its details."""
    if problem.reason in _FIXED:
        return _FIXED[problem.reason]
    name = problem.names[0] if problem.names else ""
    if problem.reason in _NAMED:
        noun, words = _NAMED[problem.reason]
        return f"the {noun} {name} {words}" if name else f"a {noun} {words}"
    if problem.reason.startswith("UpdatePayload"):
        return "the update could not be applied"
    if not problem.reason:
        return "an error occurred"
    return f"{name or 'an unknown error has occurred'}{' has an unknown error' if name else ''}: {problem.reason}"
