"""Decides on a write by the stored ValidatingAdmissionPolicies and their bindings.

In: a write. Out: nothing, or ApiError; warnings and audit annotations are added to the request's. Policies are read
from the store at each write: what is stored is in force, without the moment that a real server's informers take.
Expressions are checked against the types of objects when a policy is stored, as a controller does some time after
(k8s.io/apiserver/pkg/admission/plugin/policy/validating/typechecking.go).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kubekit.lang.cel import CelError
from kubekit.lang.cel_authorizer import Authorize
from kubekit.lang.cel_types import DYN, CelType, type_faults
from kubekit.rules import policy_evaluation as evaluation
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.schema import cel_declarations
from kubesandbox.apiserver.schema.structural import SchemaNode
from kubesandbox.apiserver.served_kinds import Kind, KindTable
from kubesandbox.apiserver.store import Store

JSON = dict[str, Any]
# Returns the objects of a kind in a namespace, or in all, as the kind serves them.
Read = Callable[[Kind, str], list[JSON]]

_GROUP = "admissionregistration.k8s.io"
POLICIES = f"validatingadmissionpolicies.{_GROUP}"
_BINDINGS = f"validatingadmissionpolicybindings.{_GROUP}"
_AUDIT = "validation.policy.admission.k8s.io/validation_failure"
# The metadata of a namespace that expressions see (CreateNamespaceObject).
_SHOWN_METADATA = ("name", "generateName", "namespace", "labels", "annotations", "uid", "creationTimestamp",
                   "finalizers", "resourceVersion")  # fmt: skip
_CODES = {"Forbidden": 403, "Invalid": 422, "RequestEntityTooLarge": 413, "Unauthorized": 401}


class _Unusable(Exception):
    """Error raised if a policy or a binding cannot be used as it is configured."""


@dataclass(frozen=True, slots=True)
class _Denial:
    policy: str
    binding: str
    decision: evaluation.Decision

    def __str__(self) -> str:
        by = f" with binding '{self.binding}'" if self.binding else ""
        return f"ValidatingAdmissionPolicy '{self.policy}'{by} denied request: {self.decision.message}"


class PolicyAdmission:
    """The policies of a server; one instance for the whole of it."""

    def __init__(self, store: Store, kinds: KindTable, read_objects: Read, authorize: Authorize) -> None:
        self._store, self._kinds, self._read, self._authorize = store, kinds, read_objects, authorize

    def check(self, write: evaluation.Write, warnings: list[str], annotations: dict[str, str]) -> None:
        """Lets a write pass, or raises ApiError with the first denial."""
        policies = self._store.items(POLICIES, "")
        if not policies or evaluation.is_exempt(write.kind):
            return
        namespace = None
        if write.namespace and write.kind.resource != "namespaces":
            entry = self._store.get("namespaces", "", write.namespace)
            namespace = entry.load() if entry else None
        if namespace is not None:
            metadata = {key: value for key, value in namespace["metadata"].items() if key in _SHOWN_METADATA}
            namespace = {**namespace, "metadata": metadata}
        denials: list[_Denial] = []
        for policy in (entry.load() for entry in policies):
            if evaluation.matches_criteria(policy["spec"].get("matchConstraints") or {}, write, _labels_of(namespace)):
                denials += self._denials(policy, write, namespace, warnings=warnings, annotations=annotations)
        if denials:
            text, reason = str(denials[0]), denials[0].decision.reason
            error = status_errors.forbidden(write.kind.plural, write.kind.group, write.name or "Unknown", text)
            error.reason, error.code = reason, _CODES.get(reason, 422)
            error.details = {**(error.details or {}), "causes": [{"message": text}]}
            raise error

    def _denials(
        self,
        policy: JSON,
        write: evaluation.Write,
        namespace: JSON | None,
        *,
        warnings: list[str],
        annotations: dict[str, str],
    ) -> Iterator[_Denial]:
        """Yields the denials of one policy through each of its bindings; adds its warnings and audit annotations."""
        name, values = policy["metadata"]["name"], dict[str, list[str]]()
        all_bindings = (entry.load() for entry in self._store.items(_BINDINGS, ""))
        bindings = [binding for binding in all_bindings if binding["spec"].get("policyName") == name]
        try:
            kind = self._param_kind(policy) if bindings else None
        except _Unusable as error:
            yield from _misconfiguration_denial(policy, "", f"failed to configure policy: {error}")
            return
        for binding in bindings:
            if not evaluation.matches_criteria(
                binding["spec"].get("matchResources") or {}, write, _labels_of(namespace)
            ):
                continue
            try:
                params = self._read_params(kind, binding["spec"].get("paramRef"), write.namespace)
            except _Unusable as error:
                why = f"failed to configure binding: {error}"
                yield from _misconfiguration_denial(policy, binding["metadata"]["name"], why)
                continue
            for param in params:
                outcome = evaluation.Evaluation(policy, write, param, namespace, authorize=self._authorize).outcome()
                for decision in outcome.decisions:
                    if decision.denied:
                        yield from _carry_out_actions(
                            policy, binding, decision, warnings=warnings, annotations=annotations
                        )
                for key, value in outcome.annotations:
                    if value not in values.setdefault(key, []):
                        values[key].append(value)
        annotations.update({f"{name}/{key}": ", ".join(texts) for key, texts in values.items()})

    def _param_kind(self, policy: JSON) -> Kind | None:
        """Returns the kind of a policy's parameters, or None. Raises _Unusable if it is not served."""
        param_kind = policy["spec"].get("paramKind")
        if not param_kind:
            return None
        for kind in self._kinds:
            if (kind.api_version, kind.kind) == (param_kind.get("apiVersion"), param_kind.get("kind")):
                return kind
        kind_text = f"{param_kind.get('apiVersion')}, Kind={param_kind.get('kind')}"
        raise _Unusable(f"failed to find resource referenced by paramKind: '{kind_text}'")

    def _read_params(self, kind: Kind | None, ref: JSON | None, namespace: str) -> list[JSON | None]:
        """Returns the parameters that a binding refers to. Raises _Unusable. Without any reference it is None once."""
        if kind is None or not ref:
            return [None]
        within = ref.get("namespace") or ""
        if within and not kind.namespaced:
            raise _Unusable("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
        if kind.namespaced and not within:
            within = namespace
            if not within:
                why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
                raise _Unusable(why)
        params: list[JSON | None] = []
        for obj in self._read(kind, within):
            named = obj["metadata"]["name"] == ref.get("name")
            if named if ref.get("name") else evaluation.selects_labels(ref.get("selector"), _labels_of(obj) or {}):
                params.append(obj)
        if not params and ref.get("parameterNotFoundAction") == "Deny":
            raise _Unusable("no params found for policy binding with `Deny` parameterNotFoundAction")
        return params


def _labels_of(obj: JSON | None) -> dict[str, str] | None:
    return None if obj is None else (obj["metadata"].get("labels") or {})


def _misconfiguration_denial(policy: JSON, binding: str, why: str) -> Iterator[_Denial]:
    if policy["spec"].get("failurePolicy") != "Ignore":
        yield _Denial(policy["metadata"]["name"], binding, evaluation.Decision(denied=True, message=why))


def _carry_out_actions(
    policy: JSON, binding: JSON, decision: evaluation.Decision, *, warnings: list[str], annotations: dict[str, str]
) -> Iterator[_Denial]:
    """Does what the binding says about a failed validation: denies, warns, or notes it for the audit log."""
    name, by = policy["metadata"]["name"], binding["metadata"]["name"]
    actions = binding["spec"].get("validationActions") or ()
    for action in actions:
        if action == "Deny":
            yield _Denial(name, by, decision)
        elif action == "Warn":
            text = f"Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{by}': {decision.message}"
            if text not in warnings:
                warnings.append(text)
        elif action == "Audit":
            failure = {
                "message": decision.message, "policy": name, "binding": by, "expressionIndex": decision.index,
                "validationActions": list(actions),
            }  # fmt: skip
            annotations.setdefault(_AUDIT, json.dumps([failure], separators=(",", ":")))


# Returns the schema of a kind's objects, or None.
SchemaOf = Callable[[Kind], SchemaNode | None]

_MOST_TYPES = 10  # maxTypesToCheck


def policy_status(policy: JSON, kinds: Iterable[Kind], schema_of: SchemaOf) -> JSON:
    """Returns the status of a policy: the checked generation, and type warnings for the kinds whose schema is known."""
    spec, known = policy["spec"], tuple(kinds)
    types = {
        kind: cel_declarations.served_type(schema)
        for kind in _matched_kinds(spec, known)
        if (schema := schema_of(kind)) is not None
    }
    types_by_name = dict(cel_declarations.POLICY_VARIABLES)
    if param_kind := spec.get("paramKind") or {}:
        named = (param_kind.get("apiVersion"), param_kind.get("kind"))
        params = next((kind for kind in known if (kind.api_version, kind.kind) == named), None)
        schema = schema_of(params) if params is not None else None
        types_by_name["params"] = cel_declarations.served_type(schema) if schema is not None else DYN
    warnings = []
    for index, validation in enumerate(spec.get("validations") or ()):
        for key in ("expression", "messageExpression"):
            expression = validation.get(key)
            if not expression:
                continue
            faults = (
                _fault_for_kind(kind, expression, spec, {**types_by_name, "object": type_, "oldObject": type_})
                for kind, type_ in types.items()
            )
            if warning := "\n".join(filter(None, faults)):
                warnings.append({"fieldRef": f"spec.validations[{index}].{key}", "warning": warning})
    checking = {"expressionWarnings": warnings} if warnings else {}
    return {"observedGeneration": policy["metadata"].get("generation", 1), "typeChecking": checking}


def _fault_for_kind(kind: Kind, expression: str, spec: JSON, types: dict[str, CelType]) -> str:
    """Returns why an expression does not fit the types of one kind, or ""."""
    variables: dict[str, CelType] = {}
    for variable in spec.get("variables") or ():
        variables[variable["name"]] = cel_declarations.type_or_dyn(
            variable["expression"], types | cel_declarations.variables_type(variables)
        )
    try:
        why = type_faults(expression, types | cel_declarations.variables_type(variables))
    except CelError as error:
        why = str(error)
    return f"{kind.group}/{kind.version}, Kind={kind.kind}: {why}\n" if why else ""


def _matched_kinds(spec: JSON, kinds: tuple[Kind, ...]) -> list[Kind]:
    """Returns the kinds that the policy's rules name; a rule with a wildcard names none."""
    matched: set[Kind] = set()
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        groups, versions = rule.get("apiGroups") or (), rule.get("apiVersions") or ()
        resources = [resource for resource in rule.get("resources") or () if not set(resource) & set("*/")]
        if "*" not in "".join((*groups, *versions)):
            matched |= {k for k in kinds if k.group in groups and k.version in versions and k.plural in resources}
    return sorted(matched, key=lambda kind: (kind.group, kind.version, kind.kind))[:_MOST_TYPES]
