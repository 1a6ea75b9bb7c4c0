"""Determines why the API server refused a task, from the code and the text of its answer."""

from __future__ import annotations

import re

from runup.rehearse.decide.rehearsal_outcome import RefusalKind

# k8s.io/apiserver/pkg/admission/plugin/policy/validating: how a denial is worded.
_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^']+)'")
_NOT_COMPILED = "compilation error:"
_QUOTA = "exceeded quota:"
# k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation.
_STORED_VERSION = "status.storedVersions"
# Words of k8s.io/kubernetes/pkg/apis/*/validation and of apimachinery for fields that are fixed at creation.
_IMMUTABLE = (
    "field is immutable",
    "may not be changed",
    "may not change once set",
    "cannot change roleRef",
    "is forbidden from being changed",
    "updates to statefulset spec for fields other than",
    "spec is immutable after creation",
    "updates to parameters are forbidden",
    "updates to provisioner are forbidden",
    "updates to reclaimPolicy are forbidden",
    "may not be updated",
)


def kind_of(message: str) -> tuple[RefusalKind, str]:
    """Returns why an answer with that message refuses, and the policy that did, if one did."""
    if match := _POLICY.search(message):
        # A server does not take a policy that it cannot compile: what fails here is the copy's own.
        kind = RefusalKind.NOT_KNOWN if _NOT_COMPILED in message else RefusalKind.POLICY
        return kind, match[1]
    if _QUOTA in message:
        return RefusalKind.QUOTA, ""
    if _STORED_VERSION in message:
        return RefusalKind.STORED_VERSION, ""
    if any(phrase in message for phrase in _IMMUTABLE):
        return RefusalKind.IMMUTABLE, ""
    return RefusalKind.INVALID, ""
