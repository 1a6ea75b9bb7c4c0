"""The CEL types of what expressions of policies see beside the objects: the request and its namespace.

As BuildRequestType and BuildNamespaceType in k8s.io/apiserver/pkg/admission/plugin/cel/compile.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from kubekit.lang.cel import CelError
from kubekit.lang.cel_types import BOOL, DYN, INT, STRING, TIMESTAMP, CelType, list_of, map_of, object_of, result_type

_STRINGS = list_of(STRING)


def _object_type(type_: str, /, **fields: CelType) -> CelType:
    return object_of(f"kubernetes.{type_}", fields.get)


_KIND = _object_type("GroupVersionKind", group=STRING, version=STRING, kind=STRING)
_RESOURCE = _object_type("GroupVersionResource", group=STRING, version=STRING, resource=STRING)
REQUEST = _object_type(
    "AdmissionRequest",
    kind=_KIND,
    resource=_RESOURCE,
    subResource=STRING,
    requestKind=_KIND,
    requestResource=_RESOURCE,
    requestSubResource=STRING,
    name=STRING,
    namespace=STRING,
    operation=STRING,
    userInfo=_object_type("UserInfo", username=STRING, uid=STRING, groups=_STRINGS, extra=map_of(_STRINGS)),
    dryRun=BOOL,
    options=DYN,
)
NAMESPACE = _object_type(
    "Namespace",
    metadata=_object_type(
        "NamespaceMetadata",
        name=STRING,
        generateName=STRING,
        namespace=STRING,
        labels=map_of(STRING),
        annotations=map_of(STRING),
        UID=STRING,
        creationTimestamp=TIMESTAMP,
        deletionGracePeriodSeconds=INT,
        deletionTimestamp=TIMESTAMP,
        generation=INT,
        resourceVersion=STRING,
        finalizers=_STRINGS,
    ),
    spec=_object_type("NamespaceSpec", finalizers=_STRINGS),
    status=_object_type(
        "NamespaceStatus",
        conditions=list_of(
            _object_type(
                "NamespaceCondition",
                status=STRING,
                type=STRING,
                lastTransitionTime=TIMESTAMP,
                message=STRING,
                reason=STRING,
            )
        ),
        phase=STRING,
    ),
)

# The engine has no authorizer: an expression that uses it is stored unchecked, and its evaluation fails.
AUTHORIZER = re.compile(r"\bauthorizer\b")


def variables_type(variables: Mapping[str, CelType]) -> dict[str, CelType]:
    """Returns the type of `variables` in a policy's expressions, by that name; nothing without variables."""
    return {"variables": object_of("kubernetes.variables", variables.get)} if variables else {}


def type_or_dyn(text: str, types_by_name: Mapping[str, CelType]) -> CelType:
    """Returns the type of an expression's result; dyn for an expression that does not compile."""
    try:
        return result_type(text, types_by_name)
    except CelError:
        return DYN
