"""Decides on a write by the stored ValidatingAdmissionPolicies and their bindings.

In: a write. Out: nothing, or ApiError; warnings and audit annotations are added to the request's. Policies are read
from the store at each write: what is stored is in force, without the moment that a real server's informers take.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.policies.evaluation import Decision, Evaluation
from kubesandbox.apiserver.policies.matching import Write, is_exempt, matches_criteria, selects_labels
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
    decision: Decision

    def __str__(self) -> str:
        by = f" with binding '{self.binding}'" if self.binding else ""
        return f"ValidatingAdmissionPolicy '{self.policy}'{by} denied request: {self.decision.message}"


class PolicyAdmission:
    """The policies of a server; one instance for the whole of it."""

    def __init__(self, store: Store, kinds: KindTable, read_objects: Read) -> None:
        self._store, self._kinds, self._read = store, kinds, read_objects

    def check(self, write: Write, warnings: list[str], annotations: dict[str, str]) -> None:
        """Lets a write pass, or raises ApiError with the first denial."""
        policies = self._store.items(POLICIES, "")
        if not policies or is_exempt(write.kind):
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
            if matches_criteria(policy["spec"].get("matchConstraints") or {}, write, _labels_of(namespace)):
                denials += self._denials(policy, write, namespace, warnings=warnings, annotations=annotations)
        if denials:
            text, reason = str(denials[0]), denials[0].decision.reason
            error = status_errors.forbidden(write.kind.plural, write.kind.group, write.name or "Unknown", text)
            error.reason, error.code = reason, _CODES.get(reason, 422)
            error.details = {**(error.details or {}), "causes": [{"message": text}]}
            raise error

    def _denials(
        self, policy: JSON, write: Write, namespace: JSON | None, *, warnings: list[str], annotations: dict[str, str]
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
            if not matches_criteria(binding["spec"].get("matchResources") or {}, write, _labels_of(namespace)):
                continue
            try:
                params = self._read_params(kind, binding["spec"].get("paramRef"), write.namespace)
            except _Unusable as error:
                why = f"failed to configure binding: {error}"
                yield from _misconfiguration_denial(policy, binding["metadata"]["name"], why)
                continue
            for param in params:
                outcome = Evaluation(policy, write, param, namespace).outcome()
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
        """Returns the kind of a policy's parameters, None if it has none. Raises _Unusable if it is not served."""
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
            if named if ref.get("name") else selects_labels(ref.get("selector"), _labels_of(obj) or {}):
                params.append(obj)
        if not params and ref.get("parameterNotFoundAction") == "Deny":
            raise _Unusable("no params found for policy binding with `Deny` parameterNotFoundAction")
        return params


def _labels_of(obj: JSON | None) -> dict[str, str] | None:
    return None if obj is None else (obj["metadata"].get("labels") or {})


def _misconfiguration_denial(policy: JSON, binding: str, why: str) -> Iterator[_Denial]:
    if policy["spec"].get("failurePolicy") != "Ignore":
        yield _Denial(policy["metadata"]["name"], binding, Decision(True, why))


def _carry_out_actions(
    policy: JSON, binding: JSON, decision: Decision, *, warnings: list[str], annotations: dict[str, str]
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
