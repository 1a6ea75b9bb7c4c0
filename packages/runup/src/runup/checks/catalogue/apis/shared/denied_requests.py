"""Evaluates admission policies for the requests of an update (`update_requests`).

Requests that differ only in what a policy does not read have the same answer, and are evaluated once. A policy whose
answer depends on what is not known about a request cannot be evaluated for it: fields of objects that are not read,
parameters, an authorizer, or which of several users sends it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from kubekit.lang.cel import CelError
from kubekit.rules.policy_evaluation import Evaluation, Write, matches_criteria, paths_read
from kubekit.rules.webhooks import is_named, is_resource_named
from runup.checks.catalogue.apis.shared.update_requests import Request, Requests, Source
from runup.checks.writing import Unreadable

JSON = dict[str, Any]
Paths = frozenset[tuple[str, ...]]
# More different requests are not evaluated of one policy: an evaluation takes a tenth of a millisecond.
MOST_EVALUATIONS = 10_000


class Outcome:
    """The requests that a policy denies, with its message, and those for which it could not be evaluated.

    `lacking` is the error of a kind that could not be listed.
    """

    def __init__(self) -> None:
        self.denied: dict[str, str] = {}
        self.open: dict[str, None] = {}
        self.lacking: Unreadable | None = None


def denied_requests(policy: JSON, bindings: Sequence[JSON], requests: Requests, *, mutates: bool = False) -> Outcome:
    """Returns which requests of the update the policy denies through one of its bindings.

    Of a policy that mutates, the requests that it changes are left open.
    """
    return _Evaluator(policy, bindings, requests, mutates=mutates).outcome()


class _Evaluator:
    """The evaluation of one policy for all requests."""

    def __init__(self, policy: JSON, bindings: Sequence[JSON], requests: Requests, *, mutates: bool) -> None:
        self._spec: JSON = policy.get("spec") or {}
        self._constraints: JSON = self._spec.get("matchConstraints") or {}
        self._bound: list[JSON] = [binding.get("matchResources") or {} for binding in bindings]
        self._requests, self._mutates = requests, mutates
        variables = tuple((each["name"], each["expression"]) for each in self._spec.get("variables") or ())
        self._conditions = [(each, _paths(each, variables)) for each in self._spec.get("matchConditions") or ()]
        self._validations = [(each, _paths(each, variables)) for each in self._spec.get("validations") or ()]
        read = [paths for _, paths in (*self._conditions, *self._validations) if paths is not None]
        self._read = sorted({path for paths in read for path in paths if path[0] != "variables"})
        self._answers: dict[bytes, bool | None] = {}
        self._outcome = Outcome()

    def outcome(self) -> Outcome:
        """Returns the outcome for all requests that could be listed."""
        for source in self._requests.sources():
            if not _is_named(self._constraints, source) or not any(_is_named(each, source) for each in self._bound):
                continue
            try:
                for request in source.requests():
                    if self._is_matched(request.write):
                        self._note(source, request)
            except Unreadable as error:
                self._outcome.lacking = self._outcome.lacking or error
        return self._outcome

    def _is_matched(self, write: Write) -> bool:
        """Returns whether the policy's criteria and those of one of its bindings select a request."""
        labels = self._requests.labels_of(write.namespace)
        return matches_criteria(self._constraints, write, labels) and any(
            matches_criteria(each, write, labels) for each in self._bound
        )

    def _note(self, source: Source, request: Request) -> None:
        """Adds a request to those that the policy denies, or to those for which it cannot be evaluated."""
        words = f"{source.operation} of {source.resource}"
        namespace = request.write.namespace
        evaluation = self._evaluation(request.write, namespace)
        whole = {
            "known": [request.known, request.known_old],
            "read": [evaluation.value_at(path) for path in self._read],
        }
        key = msgspec.json.encode((words, whole), enc_hook=str)
        if key in self._answers:
            return
        if len(self._answers) >= MOST_EVALUATIONS:
            self._outcome.open[f"{words} (more than {MOST_EVALUATIONS} different ones)"] = None
            return
        self._answers[key] = None
        messages = [self._message(replace(request.write, user=user), request) for user in request.users]
        if all(messages):
            self._outcome.denied.setdefault(words, messages[0] or "")
        elif not source.denials_only and any(message != "" for message in messages):
            self._outcome.open[words] = None

    def _evaluation(self, write: Write, namespace: str, **changes: Any) -> Evaluation:
        known = self._requests.namespaces().get(namespace) if namespace else None
        return Evaluation({"spec": {**self._spec, **changes}}, write, None, known)

    def _message(self, write: Write, request: Request) -> str | None:
        """Returns the message of a denial, an empty one if the request passes, None if that is not known."""
        known, unknown = self._split(self._conditions, request)
        if self._evaluation(write, write.namespace).is_excluded(known):
            return ""
        if self._mutates or self._spec.get("paramKind"):
            return None
        validations, others = self._split(self._validations, request)
        changes = {"matchConditions": known, "validations": validations, "auditAnnotations": []}
        denied = [
            each for each in self._evaluation(write, write.namespace, **changes).outcome().decisions if each.denied
        ]
        # An error of our engine may not be one of the API server's, except for a missing field.
        certain = [each for each in denied if not each.is_error or "no such key" in each.message]
        if certain and not unknown:
            return certain[0].message or "it gives no message"
        return None if unknown or others or denied else ""

    def _split(self, rules: list[tuple[JSON, Paths | None]], request: Request) -> tuple[list[JSON], list[JSON]]:
        """Returns the rules for which all is known that they read of a request, and the others."""
        known = [rule for rule, paths in rules if paths is not None and all(map(request.knows, paths))]
        return known, [rule for rule, _ in rules if rule not in known]


def _paths(rule: JSON, variables: tuple[tuple[str, str], ...]) -> Paths | None:
    """Returns the paths that a rule's expression reads, None if it does not compile here."""
    try:
        return paths_read(rule["expression"], variables)
    except CelError:
        return None


def _is_named(criteria: JSON, source: Source) -> bool:
    """Returns whether a rule of the criteria names the operation and the resource, in whatever version and scope."""
    rules = criteria.get("resourceRules") or ()
    return not rules or any(
        is_named(source.operation, rule.get("operations") or ())
        and is_named(source.group, rule.get("apiGroups") or ())
        and is_resource_named(source.resource, rule.get("resources") or ())
        for rule in rules
    )
