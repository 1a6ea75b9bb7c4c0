"""ValidatingAdmissionPolicies on each server: what they deny, and in which words.

A real server's informers need a moment until a policy is in force; what is expected here is what it answers then.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.contract.api import JSON, Answer, Api

GROUP = "/apis/admissionregistration.k8s.io/v1"
POLICIES, BINDINGS = f"{GROUP}/validatingadmissionpolicies", f"{GROUP}/validatingadmissionpolicybindings"
DEADLINE_S = 90.0
CONFIG_MAPS = {
    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE", "DELETE"],
    "resources": ["configmaps"],
}  # fmt: skip
BY_KIND = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}


@dataclass
class Policies:
    """Policies of one test, each with a binding, for one namespace alone."""

    api: Api
    namespace: str
    names: list[str] = field(default_factory=list)

    def create(self, spec: JSON, binding: JSON | None = None) -> Answer:
        """Creates a policy, and its binding if the policy is accepted; returns the answer to the first."""
        name = f"p-{uuid.uuid4().hex[:8]}"
        meta = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
        here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}}}
        matched = {"resourceRules": [CONFIG_MAPS], **here, **spec.get("matchConstraints", {})}
        spec = {**spec, "matchConstraints": matched}
        made = self.api.post(POLICIES, {**meta, "kind": "ValidatingAdmissionPolicy", "spec": spec})
        if made.code != 201:
            return made
        self.names.append(name)
        bound = {"policyName": name, "validationActions": ["Deny"], "matchResources": here, **(binding or {})}
        self.api.post(BINDINGS, {**meta, "kind": "ValidatingAdmissionPolicyBinding", "spec": bound}).ok()
        return made

    def settle(self) -> None:
        """Waits until what was created is in force: a policy that is created after it is."""
        self.create({"validations": [{"expression": "object == null || object.metadata.name != 'sentinel'"}]})
        until(lambda: self.configmap("sentinel", dryRun="All").code, 422)

    def configmap(self, name: str, data: JSON | None = None, labels: JSON | None = None, **query: str) -> Answer:
        """Asks for a new ConfigMap."""
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels or {}}}
        return self.api.post(f"/api/v1/namespaces/{self.namespace}/configmaps", {**body, "data": data or {}}, **query)

    def nameless_message(self, answer: Answer) -> str:
        """Returns an answer's message without the names of this test."""
        text = str(answer.body.get("message", ""))
        for name in self.names:
            text = text.replace(name, "P")
        return text.replace(self.namespace, "NS")

    def remove(self) -> None:
        """Removes all, so that later tests are not slower for it."""
        for name in self.names:
            self.api.delete(f"{BINDINGS}/{name}")
            self.api.delete(f"{POLICIES}/{name}")


@pytest.fixture
def policies(api: Api, namespace: str) -> Iterator[Policies]:
    """No policies yet."""
    made = Policies(api, namespace)
    yield made
    made.remove()


def until(ask: Callable[[], Any], expected: Any) -> None:
    """Waits for an answer; fails with the last one. A server whose policies are in force gives it at once."""
    deadline = time.monotonic() + DEADLINE_S
    while (answer := ask()) != expected and time.monotonic() < deadline:
        time.sleep(0.05)
    assert answer == expected


def check(**more: Any) -> JSON:
    """A policy with one validation."""
    return {"validations": [more]}


DENIED = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'P' with binding 'P' denied request: "
OF_POLICY = "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'P' denied request: "
IS_ONE = "object.data.x == '1'"
NONE_FOUND = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
# What the policy is, its binding, the ConfigMap's data, code and message.
CASES: tuple[tuple[str, JSON, JSON | None, JSON, int, str], ...] = (
    ("the expression", check(expression=IS_ONE), None, {"x": "2"}, 422, f"{DENIED}failed expression: {IS_ONE}"),
    ("what holds", check(expression=IS_ONE), None, {"x": "1"}, 201, ""),
    ("its message", check(expression=IS_ONE, message=" no way "), None, {"x": "2"}, 422, f"{DENIED}no way"),
    (
        "its message's expression, and a reason",
        check(expression=IS_ONE, messageExpression="'x is ' + object.data.x", reason="Forbidden"),
        None, {"x": "2"}, 403, f"{DENIED}x is 2",
    ),
    (
        "a message of two lines is not shown",
        check(expression="false", messageExpression="'a\\nb'", message="plain"), None, {}, 422, f"{DENIED}plain",
    ),
    (
        "a missing key", check(expression=IS_ONE), None, {}, 422,
        f"{DENIED}expression '{IS_ONE}' resulted in error: no such key: data",
    ),
    (
        "a comparison without an overload", check(expression="object.data.x > 1"), None, {"x": "2"}, 422,
        f"{DENIED}expression 'object.data.x > 1' resulted in error: no such overload",
    ),
    ("a missing key that is ignored", {"failurePolicy": "Ignore", **check(expression=IS_ONE)}, None, {}, 201, ""),
    (
        "variables of variables",
        {
            "variables": [
                {"name": "a", "expression": "object.data.x"}, {"name": "b", "expression": "variables.a + '!'"}
            ],
            **check(expression="variables.b == '1!'", messageExpression="variables.b"),
        },
        None, {"x": "2"}, 422, f"{DENIED}2!",
    ),
    (
        "a variable without a value",
        {"variables": [{"name": "a", "expression": "object.data.x"}], **check(expression="variables.a == '1'")},
        None, {}, 422,
        f"{DENIED}expression 'variables.a == '1'' resulted in error: "
        'composited variable "a" fails to evaluate: no such key: data',
    ),
    (
        "a variable without a value that is not needed",
        {"variables": [{"name": "a", "expression": "object.data.x"}], **check(expression="true || variables.a == ''")},
        None, {}, 201, "",
    ),
    (
        "a message cannot use a variable that asks the authorizer",
        {
            "variables": [{"name": "a", "expression": "authorizer.path('/x').check('get').allowed()"}],
            **check(expression="!variables.a", messageExpression="'it is ' + string(variables.a)"),
        },
        None, {}, 422, f"{DENIED}failed expression: !variables.a",
    ),
    (
        "the request",
        check(
            expression="request.operation == 'DELETE'",
            messageExpression="request.userInfo.username + ' ' + request.resource.resource + ' ' + request.namespace "
            "+ ' ' + request.kind.kind + ' ' + request.name + ' ' + string(request.dryRun)",
        ),
        None, {}, 422, f"{DENIED}kubernetes-admin configmaps NS ConfigMap a true",
    ),
    (
        "the namespace",
        check(expression="oldObject != null", messageExpression="namespaceObject.metadata.name"), None, {}, 422,
        f"{DENIED}NS",
    ),
    (
        "a parameter",
        {**BY_KIND, **check(expression="params.data.max == '1'", messageExpression="'not ' + params.data.max")},
        {"paramRef": {"name": "limits", "parameterNotFoundAction": "Deny"}}, {}, 422, f"{DENIED}not 7",
    ),
    (
        "a parameter by its label",
        {**BY_KIND, **check(expression="params.data.max == '1'", messageExpression="'not ' + params.data.max")},
        {"paramRef": {"selector": {"matchLabels": {"is": "limits"}}, "parameterNotFoundAction": "Deny"}}, {}, 422,
        f"{DENIED}not 7",
    ),
    (
        "a parameter that is missing", {**BY_KIND, **check(expression="params.data.x == '1'")},
        {"paramRef": {"name": "nothing", "parameterNotFoundAction": "Deny"}}, {}, 422, f"{DENIED}{NONE_FOUND}",
    ),
    (
        "a parameter that may be missing", {**BY_KIND, **check(expression="params.data.x == '1'")},
        {"paramRef": {"name": "nothing", "parameterNotFoundAction": "Allow"}}, {}, 201, "",
    ),
    (
        "a parameter that the binding does not name", {**BY_KIND, **check(expression="params != null")}, None, {}, 422,
        f"{DENIED}failed expression: params != null",
    ),
    (
        "parameters of a kind that there is not",
        {"paramKind": {"apiVersion": "no.example.com/v1", "kind": "Foo"}, **check(expression="true")},
        {"paramRef": {"name": "x", "parameterNotFoundAction": "Deny"}}, {}, 422,
        f"{OF_POLICY}failed to configure policy: failed to find resource referenced by paramKind: "
        "'no.example.com/v1, Kind=Foo'",
    ),
    (
        "a match condition that does not hold",
        {"matchConditions": [{"name": "m", "expression": "object.metadata.name != 'a'"}], **check(expression="false")},
        None, {}, 201, "",
    ),
    (
        "a match condition without a value",
        {"matchConditions": [{"name": "m", "expression": "object.data.y == 'a'"}], **check(expression="false")},
        None, {}, 422, f"{DENIED}expression 'object.data.y == 'a'' resulted in error: no such key: data",
    ),
    (
        "a match condition without a value beside one that does not hold",
        {
            "matchConditions": [
                {"name": "m", "expression": "object.data.y == 'a'"}, {"name": "n", "expression": "false"}
            ],
            **check(expression="false"),
        },
        None, {}, 201, "",
    ),
    (
        "an object's label that is missing",
        {
            "matchConstraints": {"objectSelector": {"matchLabels": {"b": "c"}}, "resourceRules": [CONFIG_MAPS]},
            **check(expression="false"),
        },
        None, {}, 201, "",
    ),
    (
        "an object's label",
        {
            "matchConstraints": {
                "objectSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
                "resourceRules": [CONFIG_MAPS],
            },
            **check(expression="false"),
        },
        None, {}, 422, f"{DENIED}failed expression: false",
    ),
    (
        "a resource that is left out",
        {
            "matchConstraints": {"resourceRules": [CONFIG_MAPS], "excludeResourceRules": [CONFIG_MAPS]},
            **check(expression="false"),
        },
        None, {}, 201, "",
    ),
    (
        "the first of two", {"validations": [{"expression": "false", "message": m} for m in ("one", "two")]}, None, {},
        422, f"{DENIED}one",
    ),
    (
        "a quantity", check(expression="quantity('1Gi').isGreaterThan(quantity('2Gi'))", message="less"), None, {}, 422,
        f"{DENIED}less",
    ),
)  # fmt: skip

# Questions to the authorizer and their answers in CEL, or why there is none.
PODS = "authorizer.group('').resource('pods')"
VIEWER = "authorizer.serviceAccount('NS', 'viewer')"
OF_VIEWER = f"{VIEWER}.group('').resource('configmaps').namespace('NS')"
REASON = 'RBAC: allowed by RoleBinding "viewer/NS" of Role "viewer" to ServiceAccount "viewer/NS"'
MISSING = 'RBAC: role.rbac.authorization.k8s.io "missing" not found'
ASKED = (
    ("an administrator's right", f"{PODS}.check('delete').allowed()", "true"),
    ("an administrator has no reason", f"{PODS}.check('delete').reason()", "''"),
    ("the resource of the request", "authorizer.requestResource.check('create').allowed()", "true"),
    ("no right", f"{VIEWER}.group('').resource('pods').namespace('NS').check('get').allowed()", "false"),
    ("a right", f"{OF_VIEWER}.check('get').allowed()", "true"),
    ("a right by its name", f"{OF_VIEWER}.name('s').check('update').allowed()", "true"),
    ("a right by another name", f"{OF_VIEWER}.name('t').check('update').allowed()", "false"),
    ("a right elsewhere", f"{VIEWER}.group('').resource('configmaps').check('get').allowed()", "false"),
    (
        "a right to a subresource",
        f"{VIEWER}.group('apps').resource('deployments').subresource('scale').namespace('NS').check('update').allowed()",
        "true",
    ),
    ("a reason", f"{OF_VIEWER}.check('get').reason()", f"'{REASON}'"),
    ("a role that is missing", f"{OF_VIEWER}.check('delete').reason()", f"'{MISSING}'"),
    ("no error", f"{OF_VIEWER}.check('delete').errored()", "false"),
    ("the text of no error", f"{PODS}.check('get').error()", "''"),
    ("a path", "authorizer.path('/healthz').check('get').allowed()", "true"),
    ("a path of an account", f"{VIEWER}.path('/metrics').check('get').allowed()", "false"),
    (
        "selectors", f"{OF_VIEWER}.fieldSelector('metadata.name=a').labelSelector('a in (b)').check('get').allowed()",
        "true",
    ),
    ("a selector that cannot be read", f"{OF_VIEWER}.labelSelector('a in b').check('get').allowed()", "true"),
    ("no path", "authorizer.path(' ').check('get').allowed()", "path must not be empty"),
    ("no resource", "authorizer.group('').resource('').check('get').allowed()", "resource must not be empty"),
    (
        "a bad account", "authorizer.serviceAccount('NS', 'A b').path('/').check('get').allowed()",
        "Invalid service account name",
    ),
    (
        "a bad namespace", "authorizer.serviceAccount('A.b', 'a').path('/').check('get').allowed()",
        "Invalid service account namespace",
    ),
    ("two checks", "[1, 2].all(i, authorizer.path('/x').check('get').allowed())", "true"),
    (
        "too many checks", "[1, 2, 3].all(i, authorizer.path('/x').check('get').allowed())",
        "operation cancelled: actual cost limit exceeded",
    ),
)  # fmt: skip


@pytest.mark.parametrize(("question", "expected"), [row[1:] for row in ASKED], ids=[row[0] for row in ASKED])
def test_questions_to_the_authorizer(policies: Policies, question: str, expected: str) -> None:
    """Expressions see the rights of the user who writes, and of any ServiceAccount."""
    here = policies.namespace
    rules = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["s"], "verbs": ["update"]},
        {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["update"]},
    ]
    rbac = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{here}"
    policies.api.post(f"{rbac}/roles", {"metadata": {"name": "viewer"}, "rules": rules}).ok()
    for name in ("viewer", "missing"):
        ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
        bound = {"roleRef": ref, "subjects": [{"kind": "ServiceAccount", "name": "viewer", "namespace": here}]}
        policies.api.post(f"{rbac}/rolebindings", {"metadata": {"name": name}, **bound}).ok()
    is_value = expected[0] == "'" or expected in ("true", "false")
    denying = f"!({question} == {expected})" if is_value else question
    denied_by = f"failed expression: {denying}" if is_value else f"expression '{denying}' resulted in error: {expected}"
    policies.create(check(expression=denying.replace("NS", here))).ok()
    policies.settle()

    def answer() -> tuple[int, str]:
        got = policies.configmap("a", dryRun="All")
        return got.code, policies.nameless_message(got)

    until(answer, (422, f"{DENIED}{denied_by}"))


@pytest.mark.parametrize(
    ("spec", "binding", "data", "code", "message"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_a_new_object(
    policies: Policies, spec: JSON, binding: JSON | None, data: JSON, code: int, message: str
) -> None:
    """The answer to a ConfigMap."""
    policies.configmap("limits", {"max": "7"}, {"is": "limits"}).ok()
    policies.create(spec, binding).ok()
    policies.settle()

    def answer() -> tuple[int, str]:
        got = policies.configmap("a", data, {"a": "b"}, dryRun="All")
        return got.code, policies.nameless_message(got)

    until(answer, (code, message))


REFUSED = (
    (
        "syntax", check(expression="object.data.x == "),
        'spec.validations[0].expression: Invalid value: "object.data.x == ": compilation failed: '
        "ERROR: <input>:1:18: Syntax error: mismatched input '<EOF>' "
        "expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', "
        "NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | object.data.x == \n | .................^",
    ),
    (
        "no truth value", check(expression="'a'"),
        "spec.validations[0].expression: Invalid value: \"'a'\": must evaluate to bool but got string",
    ),
    (
        "a message of any type", check(expression="true", messageExpression="object.metadata.namespace"),
        'spec.validations[0].messageExpression: Invalid value: "object.metadata.namespace": '
        "must evaluate to string but got dyn",
    ),
    (
        "a field that a request has not", check(expression="request.verb == 'get'"),
        "spec.validations[0].expression: Invalid value: \"request.verb == 'get'\": compilation failed: "
        "ERROR: <input>:1:8: undefined field 'verb'\n | request.verb == 'get'\n | .......^",
    ),
    (
        "a variable that there is not",
        {"variables": [{"name": "a", "expression": "1"}], **check(expression="variables.b == 1")},
        'spec.validations[0].expression: Invalid value: "variables.b == 1": compilation failed: ERROR: <input>:1:10: '
        "undefined field 'b'\n | variables.b == 1\n | .........^",
    ),
    (
        "a question about nothing", check(expression="authorizer.group('').check('get').allowed()"),
        "spec.validations[0].expression: Invalid value: \"authorizer.group('').check('get').allowed()\": "
        "compilation failed: ERROR: <input>:1:27: found no matching overload for 'check' applied to "
        "'kubernetes.authorization.GroupCheck.(string)'\n | authorizer.group('').check('get').allowed()\n | "
        "..........................^",
    ),
    (
        "a field of the authorizer", check(expression="authorizer.user == 'me'"),
        "spec.validations[0].expression: Invalid value: \"authorizer.user == 'me'\": compilation failed: "
        "ERROR: <input>:1:11: unexpected failed resolution of 'kubernetes.authorization.Authorizer'\n"
        " | authorizer.user == 'me'\n | ..........^",
    ),
    (
        "a decision that is no truth value", check(expression="authorizer.path('/x').check('get')"),
        "spec.validations[0].expression: Invalid value: \"authorizer.path('/x').check('get')\": "
        "must evaluate to bool but got kubernetes.authorization.Decision",
    ),
    (
        "a reason that is no truth value", check(expression="authorizer.path('/x').check('get').reason()"),
        "spec.validations[0].expression: Invalid value: \"authorizer.path('/x').check('get').reason()\": "
        "must evaluate to bool but got string",
    ),
    (
        "a number as a verb", check(expression="authorizer.path('/x').check(1).allowed()"),
        "spec.validations[0].expression: Invalid value: \"authorizer.path('/x').check(1).allowed()\": "
        "compilation failed: ERROR: <input>:1:28: found no matching overload for 'check' applied to "
        "'kubernetes.authorization.PathCheck.(int)'\n | authorizer.path('/x').check(1).allowed()\n"
        " | ...........................^",
    ),
    (
        "an authorizer in a message",
        check(expression="true", messageExpression="authorizer.path('/x').check('get').reason()"),
        "spec.validations[0].messageExpression: Invalid value: \"authorizer.path('/x').check('get').reason()\": "
        "compilation failed: ERROR: <input>:1:1: undeclared reference to 'authorizer' (in container '')\n"
        " | authorizer.path('/x').check('get').reason()\n | ^",
    ),
    (
        "nothing", {},
        "[spec.validations: Required value: validations or auditAnnotations must contain at least one item, "
        "spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item]",
    ),
)  # fmt: skip


@pytest.mark.parametrize(("spec", "why"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_policy_that_is_refused(policies: Policies, spec: JSON, why: str) -> None:
    """Its expressions are compiled when it is created."""
    answer = policies.create(spec)
    assert answer.code == 422
    assert answer.message.partition(" is invalid: ")[2] == why


def test_a_change_and_a_deletion(policies: Policies) -> None:
    """Both have the object as it was; a deletion has no other."""
    policies.configmap("a", {"x": "1"}).ok()
    policies.create(
        check(expression="object == null || oldObject == null || object.data.x == oldObject.data.x", message="x")
    )
    policies.create(check(expression="object != null || oldObject.data.x == '2'", message="not yet"))
    policies.settle()
    path = f"/api/v1/namespaces/{policies.namespace}/configmaps/a"
    changed = lambda: policies.nameless_message(policies.api.merge(path, {"data": {"x": "2"}}, dryRun="All"))  # noqa: E731
    until(changed, f"{DENIED}x")
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "3"}}
    assert policies.nameless_message(policies.api.apply(path, applied, "m", force="true")) == f"{DENIED}x"
    assert policies.nameless_message(policies.api.delete(path)) == f"{DENIED}not yet"
    of_all = policies.nameless_message(policies.api.delete(path.rpartition("/")[0]))
    assert of_all == f"{DENIED}not yet".replace('"a"', '"Unknown"')
    assert policies.api.get(path).ok()["data"] == {"x": "1"}


def test_warnings_and_the_audit_log(policies: Policies) -> None:
    """Who does not deny may warn, and note in the audit log; annotations of a policy are noted, too."""
    noted = {"auditAnnotations": [{"key": "who", "valueExpression": "'it is ' + object.metadata.name"}]}
    policies.create({**check(expression="false", message="careful"), **noted}, {"validationActions": ["Warn", "Audit"]})
    policies.settle()
    name = policies.names[0]
    text = f"Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': careful"
    until(lambda: policies.configmap("a", dryRun="All").warnings, (f'299 - "{text}"',))
    answer = policies.configmap("a")
    assert answer.code == 201
    events = map(json.loads, Path(policies.api.kubeconfig).with_name("audit.log").read_text().splitlines())
    event = next(each for each in events if each["auditID"] == answer.headers["audit-id"])
    assert event["annotations"][f"{name}/who"] == "it is a"
    assert json.loads(event["annotations"]["validation.policy.admission.k8s.io/validation_failure"]) == [
        {
            "message": "careful", "policy": name, "binding": name, "expressionIndex": 0,
            "validationActions": ["Warn", "Audit"],
        }
    ]  # fmt: skip


def test_a_bad_policy_can_be_taken_away(policies: Policies) -> None:
    """No policy decides on policies, whatever it says it matches."""
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    # Of what is in no namespace the field is missing, which would be an error: nothing else could be made meanwhile.
    of_namespace = f"has(request.namespace) && request.namespace == '{policies.namespace}'"
    here = {"matchConditions": [{"name": "here", "expression": of_namespace}]}
    matched = {"matchConstraints": {"resourceRules": [everything]}}
    policies.create({**matched, **here, **check(expression="false")}, {"matchResources": {}}).ok()
    until(lambda: policies.configmap("a", dryRun="All").code, 422)
    name = policies.names[0]
    assert policies.api.merge(f"{POLICIES}/{name}", {"metadata": {"labels": {"a": "b"}}}).code == 200
    assert policies.api.delete(f"{POLICIES}/{name}").code == 200
    until(lambda: policies.configmap("a", dryRun="All").code, 201)
