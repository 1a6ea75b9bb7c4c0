"""Admission webhooks on each server: whom they are asked about, in which order, and what their answers do.

A real server's informers need a moment until a configuration is in force; what is expected is what it answers then.
"""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.contract.api import JSON, Answer, Api
from tests.contract.converter import Converter, converter

GROUP = "/apis/admissionregistration.k8s.io/v1"
DEADLINE_S = 30.0
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}


def respond(question: JSON, **response: Any) -> JSON:
    """An AdmissionReview with a response that allows, unless it says otherwise."""
    made = {"uid": question["request"]["uid"], "allowed": True, **response}
    return {"apiVersion": question["apiVersion"], "kind": "AdmissionReview", "response": made}


def patch(*operations: JSON) -> JSON:
    """The members of a response with a JSON patch."""
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def add(key: str, value: str = "1") -> JSON:
    """The operation that adds a member to the data of a ConfigMap."""
    return {"op": "add", "path": f"/data/{key}", "value": value}


@dataclass
class Hooks:
    """Webhook configurations of one test, for its namespace alone; each has its own webhook server."""

    api: Api
    namespace: str
    folder: Path
    made: list[tuple[str, str]] = field(default_factory=list)

    def configure(self, kind: str, *hooks: JSON, name: str = "") -> str:
        """Creates a configuration (`mutating` or `validating`); each hook has its changes to the usual one."""
        name = name or f"h-{uuid.uuid4().hex[:8]}"
        here = {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}}
        usual = {"sideEffects": "None", "admissionReviewVersions": ["v1"], "rules": [RULE], "namespaceSelector": here}
        webhooks = [{"name": f"h{index}.example.com", **usual, **hook} for index, hook in enumerate(hooks)]
        plural = f"{kind}webhookconfigurations"
        self.api.post(f"{GROUP}/{plural}", {"metadata": {"name": name}, "webhooks": webhooks}).ok()
        self.made.append((plural, name))
        return name

    def configmap(self, name: str = "a", data: JSON | None = None, **query: str) -> Answer:
        """Asks for a new ConfigMap."""
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"a": "b"}}}
        path = f"/api/v1/namespaces/{self.namespace}/configmaps"
        return self.api.post(path, {**body, "data": data or {"x": "1"}}, **{"dryRun": "All", **query})

    def settle(self, kind: str) -> None:
        """Waits until what was configured is in force: a webhook that is configured after it is."""
        nobody = {"clientConfig": {"url": "https://127.0.0.1:1/"}}
        last = f"zz-{uuid.uuid4().hex[:8]}"
        self.configure(kind, {**nobody, "rules": [{**RULE, "resources": ["secrets"]}]}, name=last)
        secret = {"metadata": {"name": "sentinel"}}
        until(
            lambda: self.api.post(f"/api/v1/namespaces/{self.namespace}/secrets", secret, dryRun="All").code != 201,
            True,
        )

    def audited(self, answer: Answer) -> dict[str, str]:
        """Returns the annotations of a request in the audit log."""
        log = Path(self.api.kubeconfig).with_name("audit.log")
        events = (json.loads(line) for line in log.read_text().splitlines())
        event = next(each for each in events if each["auditID"] == answer.headers["audit-id"])
        return dict(event["annotations"])

    def remove(self) -> None:
        """Removes all."""
        for plural, name in self.made:
            self.api.delete(f"{GROUP}/{plural}/{name}")


def until(ask: Callable[[], Any], expected: Any) -> None:
    """Waits for an answer; fails with the last one."""
    deadline = time.monotonic() + DEADLINE_S
    while (answer := ask()) != expected and time.monotonic() < deadline:
        time.sleep(0.05)
    assert answer == expected


@pytest.fixture
def hooks(api: Api, namespace: str, tmp_path: Path) -> Iterator[Hooks]:
    """No webhooks yet."""
    made = Hooks(api, namespace, tmp_path)
    yield made
    made.remove()


@pytest.fixture
def hook(tmp_path: Path) -> Iterator[Converter]:
    """A webhook that allows everything."""
    with converter(tmp_path / "hook", respond) as made:
        yield made


def client(hook: Converter, path: str = "/") -> JSON:
    """The member of a webhook that names a server."""
    return {"clientConfig": {"url": f"{hook.url}{path}", "caBundle": hook.ca_bundle}}


def outcome(answer: Answer, hook: Converter) -> tuple[int, Any]:
    """Code, and the data of an object or the message of a failure, without what differs from run to run."""
    if answer.code >= 400:
        text = answer.message.replace(hook.url, "URL")
        for question in hook.questions:
            text = text.replace(question["uid"], "UID")
        return answer.code, text
    return answer.code, answer.body["data"]


CALLED = 'Internal error occurred: failed calling webhook "h0.example.com": '
FAILED = f"{CALLED}failed to call webhook: "
INVALID = f"{CALLED}received invalid webhook response: "
DENIED = 'admission webhook "h0.example.com" denied the request'
Respond = Callable[[JSON], Any]
# Kind of the webhook, its fields, its answer, the code, and the data or the message.
CASES: tuple[tuple[str, str, JSON, Respond, int, Any], ...] = (
    ("allows", "validating", {}, respond, 201,
     {"x": "1"}),
    ("refuses", "validating", {}, lambda q: respond(q, allowed=False), 400,
     DENIED + ' without explanation'),
    ("refuses with a message", "validating", {},
     lambda q: respond(q, allowed=False, status={"message": "no", "code": 418, "reason": "Teapot"}), 418,
     DENIED + ': no'),
    ("refuses with a reason", "validating", {},
     lambda q: respond(q, allowed=False, status={"reason": "Nope", "status": "Success", "code": 200}), 400,
     DENIED + ': Nope'),
    ("changes", "mutating", {}, lambda q: respond(q, **patch(add("y"))), 201,
     {"x": "1", "y": "1"}),
    ("refuses as a mutating one", "mutating", {}, lambda q: respond(q, allowed=False), 400,
     DENIED + ' without explanation'),
    ("an empty patch", "mutating", {}, lambda q: respond(q, **patch()), 201,
     {"x": "1"}),
    ("a patch that does not fit", "mutating", {},
     lambda q: respond(q, **patch({"op": "remove", "path": "/data/none"})), 500,
     ("Internal error occurred: error in remove for path: '/data/none': Unable to remove nonexistent key: "
      "none: missing value")),
    ("a patch to another type", "mutating", {},
     lambda q: respond(q, **patch({"op": "add", "path": "/data", "value": 1})), 500,
     ('Internal error occurred: json: cannot unmarshal number into Go struct field ConfigMap.data of type '
      'map[string]string')),
    ("a patch with an unknown field", "mutating", {},
     lambda q: respond(q, **patch({"op": "add", "path": "/other", "value": 1})), 201,
     {"x": "1"}),
    ("a patch that is none", "mutating", {},
     lambda q: respond(q, patchType="JSONPatch", patch=base64.b64encode(b"{}").decode()), 500,
     CALLED + ('received undecodable patch in webhook response: json: cannot unmarshal object into Go value of type '
      'jsonpatch.Patch')),
    ("a patch without a type", "mutating", {}, lambda q: respond(q, patch=patch(add("y"))["patch"]), 500,
     INVALID + 'webhook returned response.patch but not response.patchType'),
    ("a type without a patch", "mutating", {}, lambda q: respond(q, patchType="JSONPatch"), 500,
     INVALID + 'webhook returned response.patchType but not response.patch'),
    ("an unknown type of patch", "mutating", {},
     lambda q: respond(q, patchType="Merge", patch=patch(add("y"))["patch"]), 500,
     CALLED + 'unsupported patch type "Merge"'),
    ("a patch of a validating one", "validating", {}, lambda q: respond(q, **patch(add("y"))), 500,
     INVALID + 'validating webhook may not return response.patch'),
    ("a patch of an invalid object", "mutating", {},
     lambda q: respond(q, **patch({"op": "add", "path": "/data/b~1d", "value": ""})), 422,
     ('ConfigMap "a" is invalid: data[b/d]: Invalid value: "b/d": a valid config key must consist of '
      'alphanumeric characters, \'-\', \'_\' or \'.\' (e.g. \'key.name\',  or \'KEY_NAME\',  or '
      '\'key-name\', regex used for validation is \'[-._a-zA-Z0-9]+\')')),
    ("another uid", "validating", {}, lambda q: respond(q, uid="x"), 500,
     INVALID + 'expected response.uid="UID", got "x"'),
    ("no response", "validating", {}, lambda q: {"apiVersion": q["apiVersion"], "kind": "AdmissionReview"}, 500,
     INVALID + 'webhook response was absent'),
    ("another kind", "validating", {}, lambda q: {**respond(q), "kind": "Review"}, 500,
     FAILED + 'no kind "Review" is registered for version "admission.k8s.io/v1" in scheme "pkg/runtime/scheme.go:110"'),
    ("no version", "validating", {}, lambda q: {"response": respond(q)["response"]}, 500,
     INVALID + 'expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind='),
    ("another version", "validating", {}, lambda q: {**respond(q), "apiVersion": "admission.k8s.io/v1beta1"}, 500,
     FAILED + 'converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion'),
    ("v1beta1", "validating", {"admissionReviewVersions": ["v1beta1"]}, lambda q: respond(q, uid=""), 201,
     {"x": "1"}),
    ("a patch in v1beta1", "mutating", {"admissionReviewVersions": ["v2", "v1beta1", "v1"]},
     lambda q: respond(q, patch=patch(add("y"))["patch"]), 201,
     {"x": "1", "y": "1"}),
    ("no JSON", "validating", {}, lambda q: (200, "hello"), 500,
     FAILED + ('couldn\'t get version/kind; json parse error: json: cannot unmarshal string into Go value of type '
      'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string '
      '"json:\\"kind,omitempty\\"" }')),
    ("an empty answer", "validating", {}, lambda q: (200, ""), 500,
     FAILED + '0-length response with status code: 200 and content type: application/json'),
    ("400", "validating", {}, lambda q: (400, "bad"), 500,
     FAILED + 'the server rejected our request for an unknown reason'),
    ("403", "validating", {}, lambda q: (403, "forbidden"), 500,
     FAILED + 'unknown'),
    ("404", "validating", {}, lambda q: (404, "not here"), 500,
     FAILED + 'the server could not find the requested resource'),
    ("500", "validating", {}, lambda q: (500, "broken\n"), 500,
     FAILED + 'an error on the server ("unknown") has prevented the request from succeeding'),
    ("503", "validating", {}, lambda q: (503, ""), 500,
     FAILED + 'the server is currently unable to handle the request'),
    ("a redirection", "validating", {}, lambda q: (302, ""), 500,
     FAILED + 'the server responded with the status code 302 but did not return more information'),
    ("a failure that is ignored", "validating", {"failurePolicy": "Ignore"}, lambda q: (500, "broken"), 201,
     {"x": "1"}),
    ("a refusal by one that ignores failures", "validating", {"failurePolicy": "Ignore"},
     lambda q: respond(q, allowed=False), 400,
     DENIED + ' without explanation'),
    ("an ignored failure of a mutating one", "mutating", {"failurePolicy": "Ignore"}, lambda q: (500, "x"), 201,
     {"x": "1"}),
    ("a patch that does not fit is not ignored", "mutating", {"failurePolicy": "Ignore"},
     lambda q: respond(q, **patch({"op": "remove", "path": "/data/none"})), 500,
     ("Internal error occurred: error in remove for path: '/data/none': Unable to remove nonexistent key: "
      "none: missing value")),
    ("a timeout", "validating", {"timeoutSeconds": 1}, lambda q: time.sleep(1.5) or respond(q), 500,
     FAILED + 'Post "URL/?timeout=1s": context deadline exceeded'),
    ("a timeout that is ignored", "validating", {"timeoutSeconds": 1, "failurePolicy": "Ignore"},
     lambda q: time.sleep(1.5) or respond(q), 201,
     {"x": "1"}),
    ("a condition that does not hold", "validating",
     {"matchConditions": [{"name": "m", "expression": "object.metadata.name != 'a'"}]},
     lambda q: respond(q, allowed=False), 201,
     {"x": "1"}),
    ("a condition that holds", "validating",
     {"matchConditions": [{"name": "m", "expression": "object.metadata.name == 'a' && request.operation == 'CREATE'"}]},
     lambda q: respond(q, allowed=False), 400,
     DENIED + ' without explanation'),
    ("a condition without a value", "validating",
     {"matchConditions": [{"name": "m", "expression": "object.data.none == 'a'"}]}, respond, 403,
     'configmaps "a" is forbidden: expression \'object.data.none == \'a\'\' resulted in error: no such key: none'),
    ("a condition without a value, ignored", "validating",
     {"matchConditions": [{"name": "m", "expression": "object.data.none == 'a'"}], "failurePolicy": "Ignore"},
     lambda q: respond(q, allowed=False), 201,
     {"x": "1"}),
    ("a condition that asks the authorizer", "validating",
     {"matchConditions": [{"name": "m", "expression": "authorizer.requestResource.check('create').allowed()"}]},
     lambda q: respond(q, allowed=False), 400,
     DENIED + ' without explanation'),
    ("an object selector", "validating", {"objectSelector": {"matchLabels": {"a": "b"}}},
     lambda q: respond(q, allowed=False), 400,
     DENIED + ' without explanation'),
    ("another object selector", "validating", {"objectSelector": {"matchLabels": {"a": "c"}}},
     lambda q: respond(q, allowed=False), 201,
     {"x": "1"}),
    ("another namespace", "validating", {"namespaceSelector": {"matchLabels": {"a": "c"}}},
     lambda q: respond(q, allowed=False), 201,
     {"x": "1"}),
    ("another operation", "validating", {"rules": [{**RULE, "operations": ["UPDATE", "DELETE", "CONNECT"]}]},
     lambda q: respond(q, allowed=False), 201,
     {"x": "1"}),
    ("another resource", "validating", {"rules": [{**RULE, "resources": ["secrets", "configmaps/status"]}]},
     lambda q: respond(q, allowed=False), 201,
     {"x": "1"}),
    ("everything", "validating", {"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"],
                                             "resources": ["*/*"], "scope": "Namespaced"}]},
     lambda q: respond(q, allowed=False), 400,
     DENIED + ' without explanation'),
    ("another scope", "validating", {"rules": [{**RULE, "scope": "Cluster"}]},
     lambda q: respond(q, allowed=False), 201,
     {"x": "1"}),
    ("no rules", "validating", {"rules": []}, lambda q: respond(q, allowed=False), 201,
     {"x": "1"}),
    ("a service that does not exist", "validating",
     {"clientConfig": {"service": {"name": "none", "namespace": "default", "path": "/x"}}}, respond, 500,
     FAILED + 'Post "https://none.default.svc:443/x?timeout=10s": service "none" not found'),
    ("nobody listens", "validating", {"clientConfig": {"url": "https://127.0.0.1:1/x"}}, respond, 500,
     FAILED + 'Post "https://127.0.0.1:1/x?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused'),
    ("an unknown authority", "validating", {"clientConfig": {"url": "URL/x"}}, respond, 500,
     FAILED + ('Post "URL/x?timeout=10s": tls: failed to verify certificate: x509: certificate signed by unknown '
      'authority')),
    ("a bad authority", "validating", {"clientConfig": {"url": "URL/x", "caBundle": "eHg="}}, respond, 500,
     CALLED + 'could not get REST client: unable to load root certificates: unable to parse bytes as PEM block'),
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "fields", "answer", "code", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_an_answer(
    hooks: Hooks, hook: Converter, kind: str, fields: JSON, answer: Respond, code: int, expected: Any
) -> None:
    """The answer to a ConfigMap, when a second webhook shows that the first is in force."""
    hook.answer = answer
    usual = client(hook)
    if "clientConfig" in fields:
        config = {
            key: value.replace("URL", hook.url) if isinstance(value, str) else value
            for key, value in fields["clientConfig"].items()
        }
        fields = {**fields, "clientConfig": config}
    hooks.configure(kind, {**usual, **fields})
    hooks.settle(kind)
    code_and_data = outcome(hooks.configmap(), hook)
    if hooks.api.name == "sandbox" and "error in remove" in str(expected):
        assert code_and_data[0] == code  # which operation fails, and why, is not in the sandbox's message
    else:
        assert code_and_data == (code, expected)


@pytest.fixture
def second(tmp_path: Path) -> Iterator[Converter]:
    """Another webhook that allows everything."""
    with converter(tmp_path / "second", respond) as made:
        yield made


def test_the_order(hooks: Hooks, hook: Converter) -> None:
    """Mutating webhooks run by the name of the configuration, then in its order; each sees what the one before did."""

    def append(question: JSON) -> JSON:
        so_far = question["request"]["object"]["data"].get("order", "")
        return respond(question, **patch(add("order", f"{so_far}{len(so_far)}")))

    hook.answer = append
    prefix = f"h-{uuid.uuid4().hex[:8]}"
    for name in (f"{prefix}-b", f"{prefix}-a"):
        hooks.configure("mutating", client(hook), client(hook), name=name)
    hooks.settle("mutating")
    hook.questions.clear()
    assert hooks.configmap().ok()["data"] == {"x": "1", "order": "0123"}
    annotations = hooks.audited(hooks.configmap())
    assert {key.rpartition("/")[2]: json.loads(value) for key, value in annotations.items() if "mutation" in key} == {
        f"round_0_index_{index}": {
            "configuration": f"{prefix}-{name}",
            "webhook": f"h{at}.example.com",
            "mutated": True,
        }
        for index, (name, at) in enumerate((name, at) for name in "ab" for at in (0, 1))
    }


@pytest.mark.parametrize(("policy", "calls"), [("Never", 2), ("IfNeeded", 3)])
def test_a_second_call(hooks: Hooks, hook: Converter, second: Converter, policy: str, calls: int) -> None:
    """A webhook is called again if one after it changed the object, and its reinvocationPolicy says so."""
    second.answer = lambda question: respond(question, **patch(add("y")))
    hooks.configure("mutating", {**client(hook), "reinvocationPolicy": policy}, client(second))
    hooks.settle("mutating")
    hook.questions.clear(), second.questions.clear()
    assert hooks.configmap().ok()["data"] == {"x": "1", "y": "1"}
    seen = [question["object"]["data"] for question in hook.questions]
    assert (len(hook.questions) + len(second.questions), seen[-1]) == (
        calls, {"x": "1", "y": "1"} if calls == 3 else {"x": "1"},
    )  # fmt: skip


def test_a_webhook_that_changes_nothing_new_is_called_twice_at_most(hooks: Hooks, hook: Converter) -> None:
    """Two that always change what the other did are each called twice."""
    hook.answer = lambda q: respond(q, **patch(add("n", str(int(q["request"]["object"]["data"].get("n", "0")) + 1))))
    both = {**client(hook), "reinvocationPolicy": "IfNeeded"}
    hooks.configure("mutating", both, both)
    hooks.settle("mutating")
    assert hooks.configmap().ok()["data"]["n"] == "4"


EVERY = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["configmaps", "deployments/*"]}


def test_what_a_webhook_sees(hooks: Hooks, hook: Converter, second: Converter) -> None:
    """The request, and both states of the object; a mutating one before the server has named and dated it."""
    for kind, server in (("mutating", hook), ("validating", second)):
        hooks.configure(kind, {**client(server), "rules": [EVERY]})
        hooks.settle(kind)
    api, path = hooks.api, f"/api/v1/namespaces/{hooks.namespace}/configmaps"
    config_map = {"kind": "ConfigMap", "apiVersion": "v1", "data": {"x": "1"}}

    def seen(answer: Answer) -> list[JSON]:
        answer.ok()
        questions = [hook.questions.pop(), second.questions.pop()]
        assert not hook.questions
        assert not second.questions
        return questions

    hook.questions.clear(), second.questions.clear()
    first, last = seen(api.post(path, {**config_map, "metadata": {"generateName": "g-"}}, dryRun="All"))
    version = {"group": "", "version": "v1"}
    assert {key: first[key] for key in first if key not in ("uid", "object", "userInfo")} == {
        "kind": {**version, "kind": "ConfigMap"}, "resource": {**version, "resource": "configmaps"},
        "requestKind": {**version, "kind": "ConfigMap"}, "requestResource": {**version, "resource": "configmaps"},
        "namespace": hooks.namespace, "operation": "CREATE", "oldObject": None, "dryRun": True,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "dryRun": ["All"]},
    }  # fmt: skip
    assert first["userInfo"]["groups"] == ["system:masters", "system:authenticated"]
    user = json.loads(Path(api.kubeconfig).read_text())["users"][0]["user"]
    der = ssl.PEM_cert_to_DER_cert(base64.b64decode(user["client-certificate-data"]).decode())
    fingerprint = f"X509SHA256={hashlib.sha256(der).hexdigest()}"
    assert first["userInfo"]["extra"] == {"authentication.kubernetes.io/credential-id": [fingerprint]}
    assert set(first["object"]["metadata"]) - {"creationTimestamp"} == {"generateName", "managedFields", "namespace"}
    assert last["name"] == last["object"]["metadata"]["name"]
    assert last["object"]["metadata"]["uid"]
    first, last = seen(api.post(path, {**config_map, "metadata": {"name": "a"}}, fieldManager="me"))
    assert first["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"}
    first, last = seen(api.merge(f"{path}/a", {"data": {"x": "2"}}))
    for question in (first, last):
        assert (question["operation"], question["name"], question["dryRun"]) == ("UPDATE", "a", False)
        assert (question["oldObject"]["data"], question["object"]["data"]) == ({"x": "1"}, {"x": "2"})
    first, last = seen(api.delete(f"{path}/a", {"gracePeriodSeconds": 0}))
    for question in (first, last):
        assert (question["operation"], question["object"], question["oldObject"]["data"]) == (
            "DELETE",
            None,
            {"x": "2"},
        )
        assert question["options"] == {
            "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1", "gracePeriodSeconds": 0,
        }  # fmt: skip
    seen(api.post(path, {**config_map, "metadata": {"name": "b"}}))
    first, last = seen(api.delete(path))
    assert "name" not in first
    assert first["oldObject"]["metadata"]["name"] == "b"


def test_a_subresource(hooks: Hooks, hook: Converter) -> None:
    """A status is written through its subresource, of which a webhook changes nothing else."""
    hooks.configure("mutating", {**client(hook), "rules": [EVERY]})
    hooks.settle("mutating")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    body = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    path = f"/apis/apps/v1/namespaces/{hooks.namespace}/deployments"
    hooks.api.post(path, body).ok()
    hook.answer = lambda question: respond(
        question,
        **patch(
            {"op": "add", "path": "/status/readyReplicas", "value": 1},
            {"op": "add", "path": "/spec/replicas", "value": 7},
        ),
    )
    changed = hooks.api.merge(f"{path}/d/status", {"status": {"replicas": 1}}).ok()
    assert (changed["spec"]["replicas"], changed["status"]) == (1, {"replicas": 1, "readyReplicas": 1})
    assert (hook.questions[-1]["subResource"], hook.questions[-1]["requestSubResource"]) == ("status", "status")


@pytest.mark.parametrize(("policy", "asked"), [("Exact", False), ("Equivalent", True)])
def test_another_version(hooks: Hooks, hook: Converter, policy: str, asked: bool) -> None:
    """A rule of one version is met by all of them, and the webhook gets the object in that version."""
    rule = {**RULE, "apiGroups": ["autoscaling"], "apiVersions": ["v1"], "resources": ["horizontalpodautoscalers"]}
    hook.answer = lambda question: respond(
        question, **patch({"op": "replace", "path": "/spec/maxReplicas", "value": 9})
    )
    hooks.configure("mutating", {**client(hook), "rules": [rule], "matchPolicy": policy})
    hooks.settle("mutating")
    hook.questions.clear()
    spec = {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}
    path = f"/apis/autoscaling/v2/namespaces/{hooks.namespace}/horizontalpodautoscalers"
    made = hooks.api.post(path, {"metadata": {"name": "h"}, "spec": spec}).ok()
    assert made["spec"]["maxReplicas"] == (9 if asked else 3)
    assert [(q["kind"]["version"], q["requestKind"]["version"], q["object"]["apiVersion"]) for q in hook.questions] == [
        ("v1", "v2", "autoscaling/v1")
    ] * asked


def test_warnings_and_the_audit_log(hooks: Hooks, hook: Converter, second: Converter) -> None:
    """A webhook may warn, and note in the audit log; an ignored failure is noted there."""
    hook.answer = lambda question: respond(question, warnings=["careful"], auditAnnotations={"k": "v", "a/b": "c"})
    second.answer = lambda question: (500, "")
    hooks.configure("validating", client(hook), {**client(second), "failurePolicy": "Ignore"})
    hooks.configure("mutating", {**client(second), "failurePolicy": "Ignore"})
    for kind in ("validating", "mutating"):
        hooks.settle(kind)
    answer = hooks.configmap()
    assert answer.warnings == ('299 - "careful"',)
    found = hooks.audited(answer)
    assert {key: value for key, value in found.items() if key.startswith(("h0", "failed-open"))} == {
        "h0.example.com/k": "v",
        "failed-open.validating.webhook.admission.k8s.io/round_0_index_1": "h1.example.com",
        "failed-open.mutation.webhook.admission.k8s.io/round_0_index_0": "h0.example.com",
    }


def test_webhooks_decide_on_no_configuration(hooks: Hooks, hook: Converter) -> None:
    """A bad webhook can be taken away, whatever its rules say."""
    hook.answer = lambda question: respond(question, allowed=False)
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}
    name = hooks.configure("validating", {**client(hook), "rules": [everything]})
    hooks.settle("validating")
    assert hooks.configmap().code == 400
    path = f"{GROUP}/validatingwebhookconfigurations/{name}"
    assert hooks.api.merge(path, {"metadata": {"labels": {"a": "b"}}}).code == 200
    assert hooks.api.delete(path).code == 200
    until(lambda: hooks.configmap().code != 400, True)


def test_a_changed_spec_counts_as_a_generation(hooks: Hooks, hook: Converter) -> None:
    """A webhook's change in an update counts as a change of the spec."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    body = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    path = f"/apis/apps/v1/namespaces/{hooks.namespace}/deployments"
    hooks.api.post(path, body).ok()
    hook.answer = lambda question: respond(question, **patch({"op": "add", "path": "/spec/replicas", "value": 7}))
    rule = {**RULE, "apiGroups": ["apps"], "operations": ["UPDATE"], "resources": ["deployments"]}
    hooks.configure("mutating", {**client(hook), "rules": [rule]})
    hooks.settle("mutating")
    changed = hooks.api.merge(f"{path}/d", {"metadata": {"labels": {"c": "d"}}}).ok()
    assert (changed["spec"]["replicas"], changed["metadata"]["generation"]) == (7, 2)


def test_an_endless_answer(hooks: Hooks, hook: Converter) -> None:
    """A webhook that answers too much fails; the server reads a part of it."""
    hook.answer = lambda question: (200, "x" * (17 << 20))
    hooks.configure("validating", client(hook))
    hooks.settle("validating")
    answer = hooks.configmap()
    assert answer.code == 500
    assert hooks.api.name != "sandbox" or answer.message == f"{FAILED}the answer has more than 16777216 bytes"


def test_others_are_served_while_a_webhook_decides(hooks: Hooks, hook: Converter) -> None:
    """A slow webhook delays its own write alone."""
    decide = threading.Event()
    hook.answer = lambda question: (decide.wait(20), respond(question))[1]
    hooks.configure("validating", client(hook))
    hooks.settle("validating")
    answers: list[Answer] = []
    waiting = threading.Thread(target=lambda: answers.append(hooks.configmap()))
    waiting.start()
    until(lambda: len(hook.questions), 1)
    other = Api("other", hooks.api.kubeconfig)
    assert other.get("/api/v1/namespaces").code == 200
    assert not answers
    other.close()
    decide.set()
    waiting.join()
    assert answers[0].code == 201


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", "/"),
        ("/x", "/x"),
        ("//x", "/x"),
        ("/x//y/", "/x/y"),
        ("/x/./z/../y", "/x/y"),
        ("/x%2Fy/a%20b", "/x/y/a%20b"),
    ],
)
def test_the_path_of_a_url_is_cleaned(hooks: Hooks, hook: Converter, path: str, expected: str) -> None:
    """Duplicate slashes are removed before the request, so that no server redirects it (path.Join of Go)."""
    hooks.configure("validating", client(hook, path))
    hooks.settle("validating")
    hooks.configmap().ok()
    assert hook.paths[-1] == expected


CONTAINERS = {"containers": [{"name": "c", "image": "i"}]}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": CONTAINERS}
DEPLOYMENT = {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}}
TARGET = {"target": {"kind": "Node", "name": "n"}}
# The subresource, the object that has it, the request's body, what a mutating webhook changes, and what both see.
SUBRESOURCES = (
    ("apps/v1", "deployments", "scale", DEPLOYMENT, {"spec": {"replicas": 2}}, ("/spec/replicas", 3),
     ("autoscaling/v1 Scale", "UPDATE")),
    ("v1", "pods", "eviction", {"spec": CONTAINERS}, {}, ("/metadata/labels", {"a": "b"}),
     ("policy/v1 Eviction", "CREATE")),
    ("v1", "pods", "binding", {"spec": CONTAINERS}, TARGET, ("/target/name", "m"), ("/v1 Binding", "CREATE")),
    ("v1", "serviceaccounts", "token", {}, {"spec": {"audiences": ["a"]}}, ("/spec/expirationSeconds", 1200),
     ("authentication.k8s.io/v1 TokenRequest", "CREATE")),
)  # fmt: skip


@pytest.mark.parametrize(
    ("version", "plural", "part", "of", "body", "change", "expected"),
    SUBRESOURCES,
    ids=[row[2] for row in SUBRESOURCES],
)
def test_the_object_of_a_subresource(
    hooks: Hooks,
    hook: Converter,
    second: Converter,
    version: str,
    plural: str,
    part: str,
    of: JSON,
    body: JSON,
    change: tuple[str, Any],
    expected: tuple[str, str],
) -> None:
    """Webhooks see the Scale, Eviction, Binding or TokenRequest itself, and may change or refuse it."""
    group = version.partition("/")[0] if "/" in version else ""
    root = f"/apis/{version}" if group else f"/api/{version}"
    path = f"{root}/namespaces/{hooks.namespace}/{plural}"
    hooks.api.post(path, {"metadata": {"name": "it"}, **of}).ok()
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["*"], "resources": [f"{plural}/{part}"]}
    for kind, server in (("mutating", hook), ("validating", second)):
        hooks.configure(kind, {**client(server), "rules": [rule]})
        hooks.settle(kind)
    hook.answer = lambda question: respond(question, **patch({"op": "add", "path": change[0], "value": change[1]}))
    second.answer = lambda question: respond(question, allowed=False)

    def ask() -> Answer:
        if part == "scale":
            return hooks.api.merge(f"{path}/it/scale", body)
        return hooks.api.post(f"{path}/it/{part}", {"metadata": {"name": "it"}, **body})

    assert outcome(ask(), second) == (400, 'admission webhook "h0.example.com" denied the request without explanation')
    for question in (hook.questions[-1], second.questions[-1]):
        about = question["kind"]
        assert (f"{about['group']}/{about['version']} {about['kind']}", question["operation"]) == expected
        assert (question["resource"]["resource"], question["subResource"]) == (plural, part)
        assert (question["requestKind"], question["requestSubResource"]) == (about, part)
        assert question["object"]["kind"] == about["kind"]
        assert (question["oldObject"] or {}).get("kind") == (about["kind"] if part == "scale" else None)
        assert question["name"] == "it"
    seen = second.questions[-1]["object"]
    for member in change[0].strip("/").split("/"):
        seen = seen[member]
    assert seen == change[1]
    second.answer = respond
    answer = ask().ok()
    if part == "scale":
        assert answer["spec"]["replicas"] == 3
    elif part == "token":
        assert answer["spec"]["expirationSeconds"] == 1200
    elif part == "binding":
        assert hooks.api.get(f"{path}/it").ok()["spec"]["nodeName"] == "m"


def test_a_policy_decides_about_the_scale(hooks: Hooks) -> None:
    """Expressions see the Scale, and the requests of other subresources pass."""
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["deployments/scale"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": hooks.namespace}}
    spec = {
        "matchConstraints": {"resourceRules": [rule], "namespaceSelector": here},
        "validations": [{"expression": "object.kind == 'Scale' && object.spec.replicas < 5", "message": "too many"}],
    }
    name = f"p-{uuid.uuid4().hex[:8]}"
    for plural, content in (
        ("validatingadmissionpolicies", spec),
        ("validatingadmissionpolicybindings", {"policyName": name, "validationActions": ["Deny"]}),
    ):
        hooks.api.post(f"{GROUP}/{plural}", {"metadata": {"name": name}, "spec": content}).ok()
        hooks.made.append((plural, name))
    path = f"/apis/apps/v1/namespaces/{hooks.namespace}/deployments"
    hooks.api.post(path, {"metadata": {"name": "it"}, **DEPLOYMENT}).ok()
    until(lambda: hooks.api.merge(f"{path}/it/scale", {"spec": {"replicas": 7}}, dryRun="All").code, 422)
    answer = hooks.api.merge(f"{path}/it/scale", {"spec": {"replicas": 7}})
    denied = f"ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: too many"
    assert answer.message == f'deployments.apps "it" is forbidden: {denied}'
    assert hooks.api.merge(f"{path}/it/scale", {"spec": {"replicas": 4}}).ok()["spec"]["replicas"] == 4
