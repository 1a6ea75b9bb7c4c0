"""Webhooks that would be asked about what an update writes: whom they reach, and who answers."""

from __future__ import annotations

import base64
from datetime import datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec.structs import replace
from tests.checks.catalogue.asking import BY_NAME, JSON, findings, messages_of
from tests.factories import context

from kubekit.lang import yaml
from runup.checks.catalogue.control_plane import certificate_expiry
from runup.checks.decide.engine import run_check
from runup.checks.decide.snapshots import snapshot_of


def webhooks(*policies: str, resources: str = "pods", group: str = "") -> JSON:
    """A configuration of webhooks without backends, one a policy."""
    rule = {"operations": ["CREATE"], "apiGroups": [group], "apiVersions": ["v1"], "resources": [resources]}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "policies"},
        "webhooks": [
            {
                "name": f"w{number}.example.com",
                "failurePolicy": policy,
                "clientConfig": {"service": {"namespace": "policies", "name": "webhook"}},
                "rules": [rule],
            }
            for number, policy in enumerate(policies)
        ],
    }


@pytest.mark.parametrize(
    ("configuration", "times"),
    [
        pytest.param(webhooks("Fail"), 1, id="one"),
        pytest.param(webhooks("Ignore", "Fail"), 1, id="after one that may be ignored"),
        pytest.param(webhooks("Fail", "Ignore", "Fail"), 2, id="two"),
        pytest.param(webhooks("Fail", resources="*"), 1, id="of every resource"),
        pytest.param(webhooks("Fail", resources="*/*"), 1, id="of every resource and all beneath"),
        pytest.param(webhooks("Fail", resources="jobs"), 0, id="of what is not of this group"),
        pytest.param(webhooks("Fail", group="*", resources="jobs"), 1, id="of every group"),
        pytest.param(webhooks("Fail", group="batch", resources="*"), 1, id="of another group"),
        pytest.param(webhooks("Fail", group="example.com", resources="*"), 0, id="of its own group"),
    ],
)
def test_webhooks_in_the_way(configuration: JSON, times: int) -> None:
    """Each that an update's writes must pass, and whose backend is not there."""
    assert [name for name, *_ in findings("WebhookBlocksUpdate", configuration)] == ["WebhookBlocksUpdate"] * times


def asked(rules: list[JSON] | None = None, **fields: Any) -> JSON:
    """A webhook with Fail about new pods, or what `rules` say, whose Service is not there."""
    made = webhooks("Fail")
    made["webhooks"][0] |= fields
    made["webhooks"][0]["rules"] = rules or made["webhooks"][0]["rules"]
    return made


def rule(*resources: str, group: str = "", operation: str = "CREATE", scope: str = "*") -> JSON:
    """A rule of a webhook."""
    asked_for = {"operations": [operation], "apiGroups": [group], "apiVersions": ["*"]}
    return {**asked_for, "resources": [*resources], "scope": scope}


def namespace(name: str, **labels: str) -> JSON:
    """A namespace; the API server writes its name into its labels, a file need not have it."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


LEVEL = "openshift.io/run-level"
NAME = "kubernetes.io/metadata.name"
SPARES_LEVELS = {"matchExpressions": [{"key": LEVEL, "operator": "NotIn", "values": ["0", "1"]}]}
PLATFORM = ["openshift-etcd", "openshift-dns"]
SPARES_PLATFORM = {"matchExpressions": [{"key": NAME, "operator": "NotIn", "values": PLATFORM}]}
ONLY_TEAM = {"matchLabels": {"team": "a"}}
CLUSTER = (
    namespace("openshift-etcd", **{LEVEL: "0"}),
    namespace("openshift-dns"),
    namespace("shop", team="a"),
)


@pytest.mark.parametrize(
    ("configuration", "what"),
    [
        pytest.param(asked(namespaceSelector=SPARES_LEVELS), "openshift-dns", id="spares run-levels 0 and 1"),
        pytest.param(asked(namespaceSelector=SPARES_PLATFORM), "pods in shop", id="spares the platform: drained pods"),
        pytest.param(asked(namespaceSelector=ONLY_TEAM), "pods in shop", id="one namespace of users"),
        pytest.param(asked(namespaceSelector={"matchLabels": {"team": "b"}}), "", id="no namespace at all"),
        pytest.param(
            asked([rule("deployments", group="apps")], namespaceSelector=ONLY_TEAM), "", id="not of an update"
        ),
        pytest.param(
            asked([rule("nodes", operation="UPDATE")], namespaceSelector=ONLY_TEAM),
            "may write nodes,",
            id="nodes are in no namespace that could be spared",
        ),
        pytest.param(
            asked([rule("*", scope="Namespaced")], namespaceSelector={"matchLabels": {"team": "b"}}),
            "",
            id="only of what is in a namespace",
        ),
        pytest.param(asked([rule("pods/eviction")]), "pods/eviction in every namespace", id="evictions"),
        pytest.param(asked([rule("*/eviction")]), "pods/eviction in every namespace", id="evictions of everything"),
        pytest.param(
            asked([rule("pods/*")]), "pods, pods/eviction and pods/binding in every namespace", id="all of pods"
        ),
        pytest.param(asked([rule("pods/log")]), "", id="another subresource"),
        pytest.param(asked([rule("pods", operation="CONNECT")]), "", id="what no update does"),
        pytest.param(
            asked([rule("pods", operation="UPDATE")], namespaceSelector=ONLY_TEAM), "", id="changes of users' pods"
        ),
        pytest.param(
            asked([rule("pods", operation="DELETE")], namespaceSelector=ONLY_TEAM), "pods in shop", id="drained pods go"
        ),
    ],
)
def test_whom_a_webhook_without_an_answer_stops(configuration: JSON, what: str) -> None:
    """By the namespaces that the cluster has; what is in none is never spared."""
    found = messages_of("WebhookBlocksUpdate", configuration, *CLUSTER)
    assert [what in text for text in found] == [True] * bool(what)


@pytest.mark.parametrize(
    ("selector", "result"),
    [(SPARES_LEVELS, "Applies"), (ONLY_TEAM, "Unknown"), (None, "Applies")],
    ids=["reaches what every cluster has", "nobody knows", "spares nothing"],
)
def test_namespaces_that_are_not_known(selector: JSON | None, result: str) -> None:
    """They are asked about only where they matter."""
    check = BY_NAME["WebhookBlocksUpdate"]
    objects = [asked(namespaceSelector=selector)] if selector else [asked()]
    lacking = snapshot_of(check.reads, objects, lacking=lambda read: "forbidden" if read.kind == "Namespace" else "")
    assert run_check(check, lacking, context()).result == result


SPARES_SYSTEM = {
    "matchExpressions": [{"key": NAME, "operator": "NotIn", "values": ["openshift-etcd", "openshift-dns"]}]
}


@pytest.mark.parametrize(
    ("rule_of_webhook", "selector", "written"),
    [
        pytest.param(rule("namespaces"), None, "namespaces,", id="Namespaces of the release"),
        pytest.param(rule("namespaces"), SPARES_LEVELS, "namespaces (openshift-dns)", id="some of its Namespaces"),
        pytest.param(rule("namespaces"), SPARES_SYSTEM, "", id="only users' Namespaces, which no release applies"),
        pytest.param(rule("namespaces", operation="DELETE"), None, "", id="deletion, which no release does"),
        pytest.param(rule("namespaces", scope="Namespaced"), None, "", id="a Namespace is in none"),
        pytest.param(rule("persistentvolumes", operation="UPDATE"), None, "persistentvolumes,", id="volumes that move"),
        pytest.param(rule("persistentvolumeclaims"), None, "persistentvolumeclaims in every", id="ephemeral volumes"),
        pytest.param(rule("volumeattachments", group="storage.k8s.io"), None, "volumeattachments", id="attachments"),
        pytest.param(rule("certificatesigningrequests", group="certificates.k8s.io"), None, "certificates", id="CSRs"),
        pytest.param(
            rule("endpointslices", group="discovery.k8s.io"), ONLY_TEAM, "endpointslices in shop", id="slices"
        ),
        pytest.param(rule("serviceaccounts/token"), ONLY_TEAM, "serviceaccounts/token in shop", id="tokens of pods"),
        pytest.param(
            rule("clusterversions", group="config.openshift.io"), None, "clusterversions", id="ClusterVersion"
        ),
        pytest.param(
            rule("etcds/status", group="operator.openshift.io", operation="UPDATE"),
            None,
            "etcds/status",
            id="operators",
        ),
        pytest.param(
            rule("clusterroles", group="rbac.authorization.k8s.io", operation="DELETE"), None, "", id="deleted roles"
        ),
        pytest.param(
            rule("*", group="admissionregistration.k8s.io"), None, "", id="for admission's objects none is called"
        ),
        pytest.param(rule("machinesets", group="machine.openshift.io"), None, "machinesets in every", id="machines"),
    ],
)
def test_requests_of_an_update(rule_of_webhook: JSON, selector: JSON | None, written: str) -> None:
    """Each is named, and operations or namespaces that no update uses are not."""
    configuration = asked([rule_of_webhook], **({"namespaceSelector": selector} if selector else {}))
    found = messages_of("WebhookBlocksUpdate", configuration, *CLUSTER)
    assert [f"may write {written}" in text for text in found] == [True] * bool(written)


@pytest.mark.parametrize(("label", "written"), [("a", "pods in shop,"), ("b", "")], ids=["has pods", "has no pods"])
def test_label_that_pods_need(label: str, written: str) -> None:
    """A webhook for pods with a label is called for users' pods that have it, whatever the release's objects are."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop", "labels": {"inject": "a"}}}
    configuration = asked(objectSelector={"matchLabels": {"inject": label}})
    found = messages_of("WebhookBlocksUpdate", configuration, *CLUSTER, pod)
    assert [written in text for text in found] == [True] * bool(written)


def test_match_conditions_leave_it_unknown() -> None:
    """They depend on requests that nobody has sent yet."""
    configuration = asked(matchConditions=[{"name": "a", "expression": "request.name != 'b'"}])
    ((name, _, applies, _),) = findings("WebhookBlocksUpdate", configuration, *CLUSTER)
    assert (name, applies.value) == ("WebhookBlocksUpdateUnknown", "Unknown")


SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "webhook", "namespace": "policies"}}
PEM = yaml.load_all(certificate_expiry.EXAMPLE.encode(), name="example")[0]["data"]["ca-bundle.crt"]


def service(*ports: int) -> JSON:
    """The webhook's Service."""
    return {**SERVICE, "spec": {"selector": {"app": "w"}, "ports": [{"port": port} for port in ports]}}


def backend(name: str, ready: str = "True", **metadata: Any) -> JSON:
    """A pod behind the Service."""
    meta = {"name": name, "namespace": "policies", "labels": {"app": "w"}, **metadata}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"nodeName": "worker-0"},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
    }


def trusted(text: str) -> JSON:
    """The webhook's address with a bundle."""
    bundle = base64.b64encode(text.encode()).decode()
    return {"service": {"namespace": "policies", "name": "webhook"}, "caBundle": bundle}


def authority(begin: datetime, end: datetime) -> str:
    """A certificate of an authority that is valid from `begin` to `end`."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, end).sign(key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM).decode()


TWO = (backend("a"), backend("b"))
# When the example's certificate lasts longer than an update takes.
WEEKS_BEFORE = replace(context(), now=context().now.replace(day=1))
BROKEN = PEM.replace("MIIBDTCB", "AAAAAAAA")
ANSWERS: dict[str, tuple[JSON, tuple[JSON, ...], str]] = {
    "two pods": (asked(), (service(443), *TWO), ""),
    "a Service that says no ports": (asked(), (service(), *TWO), ""),
    "another port": (asked(), (service(8443, 9443), *TWO), "has no port 443, but 8443 and 9443"),
    "the port that it names": (
        asked(clientConfig={"service": {"namespace": "policies", "name": "webhook", "port": 8443}}),
        (service(8443), *TWO),
        "",
    ),
    "no Service": (asked(), TWO, "there is no Service policies/webhook"),
    "a bundle": (asked(clientConfig=trusted(PEM)), (service(443), *TWO), ""),
    "an empty bundle means the system's": (asked(clientConfig=trusted("")), (service(443), *TWO), ""),
    "a placeholder of a bundle": (asked(clientConfig=trusted("\n")), (service(443), *TWO), "no certificate"),
    "a bundle that was left out": (asked(clientConfig=trusted("x" * 40)), (service(443), *TWO), ""),
    "a bundle that is none": (asked(clientConfig=trusted("to be injected")), (service(443), *TWO), "no certificate"),
    "one good certificate is enough": (asked(clientConfig=trusted(BROKEN + PEM)), (service(443), *TWO), ""),
    "one bad certificate": (asked(clientConfig=trusted(BROKEN)), (service(443), *TWO), "no certificate"),
}


@pytest.mark.parametrize(("configuration", "objects", "why"), ANSWERS.values(), ids=ANSWERS.keys())
def test_who_answers(configuration: JSON, objects: tuple[JSON, ...], why: str) -> None:
    """What the API server needs to reach it, and to trust it."""
    found = messages_of("WebhookBlocksUpdate", configuration, *objects, to=WEEKS_BEFORE)
    assert [why in text for text in found] == [True] * bool(why)


def test_a_bundle_that_ends_in_the_middle_of_an_update() -> None:
    """It is less grave than one that ended."""
    cluster = (asked(clientConfig=trusted(PEM)), service(443), *TWO)
    ((_, severity, _, _),) = findings("WebhookBlocksUpdate", *cluster)
    assert severity == "warning"


@pytest.mark.parametrize(
    ("life", "left", "is_told"),
    [
        pytest.param(7, 2, False, id="of a week, renewed a day before its end"),
        pytest.param(7, 0.5, True, id="of a week, not renewed"),
        pytest.param(365, 6, True, id="of a year, which ends in the middle of an update"),
        pytest.param(365, 8, False, id="of a year, after an update"),
    ],
)
def test_when_a_bundle_ends_soon(life: float, left: float, is_told: bool) -> None:
    """An update takes up to a week, and who issues certificates for less renews them in time."""
    end = context().now + timedelta(days=left)
    bundle = authority(end - timedelta(days=life), end)
    found = messages_of("WebhookBlocksUpdate", asked(clientConfig=trusted(bundle)), service(443), *TWO)
    assert ["its caBundle ends at" in text for text in found] == [True] * is_told


def test_a_certificate_that_the_cluster_signed() -> None:
    """Without a bundle nobody trusts it; a Service that has its certificate from elsewhere may do without."""
    annotated = {**SERVICE["metadata"], "annotations": {"service.beta.openshift.io/serving-cert-secret-name": "tls"}}
    signed = {**service(443), "metadata": annotated}
    (found,) = messages_of("WebhookBlocksUpdate", asked(), signed, *TWO, to=WEEKS_BEFORE)
    assert "it has no caBundle for the certificate that the cluster signed for its Service" in found
    assert messages_of("WebhookBlocksUpdate", asked(clientConfig=trusted(PEM)), signed, *TWO, to=WEEKS_BEFORE) == []


def test_a_bundle_that_ended() -> None:
    """Weeks later nobody trusts the webhook's server."""
    later = replace(context(), now=context().now.replace(month=2))
    (found,) = messages_of("WebhookBlocksUpdate", asked(clientConfig=trusted(PEM)), service(443), *TWO, to=later)
    assert "its caBundle ended at 2026-01-16T00:00:00Z" in found


ELSEWHERE = {"matchExpressions": [{"key": NAME, "operator": "NotIn", "values": ["policies"]}]}
HOME = namespace("policies")
OF_A_DAEMON_SET = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "1", "controller": True}]
SINGLE = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "Infrastructure",
    "metadata": {"name": "cluster"},
    "status": {"controlPlaneTopology": "SingleReplica"},
}


@pytest.mark.parametrize(
    ("configuration", "objects", "applies"),
    [
        pytest.param(asked(), (backend("a"),), True, id="one pod"),
        pytest.param(asked(), (backend("a"), backend("b", "False")), True, id="one of two is ready"),
        pytest.param(asked(), TWO, False, id="two pods"),
        pytest.param(asked(namespaceSelector=ELSEWHERE), (backend("a"),), False, id="spares its own namespace"),
        pytest.param(asked([rule("pods", operation="DELETE")]), (backend("a"),), False, id="does not admit new pods"),
        pytest.param(
            asked(objectSelector={"matchLabels": {"app": "w"}}), (backend("a"),), True, id="by its own labels"
        ),
        pytest.param(asked(objectSelector={"matchLabels": {"app": "x"}}), (backend("a"),), False, id="by other labels"),
        pytest.param(asked(), (backend("a", ownerReferences=OF_A_DAEMON_SET),), False, id="no drain moves it"),
        pytest.param(asked(), (backend("a"), SINGLE), False, id="the only node is not drained"),
        pytest.param(
            asked(matchConditions=[{"name": "a", "expression": "true"}]), (backend("a"),), False, id="narrowed"
        ),
    ],
)
def test_a_webhook_that_must_admit_its_only_backend(
    configuration: JSON, objects: tuple[JSON, ...], applies: bool
) -> None:
    """When that pod's node is drained, nobody admits the next one."""
    found = findings("WebhookBlocksUpdate", configuration, service(443), HOME, *objects)
    assert [severity for _, severity, *_ in found] == ["warning"] * applies


def definition(served: list[str], stored: list[str], storage: str = "v1", **config: Any) -> JSON:
    """A definition that converts by the webhook."""
    every = sorted({*served, *stored, storage})
    versions = [{"name": name, "served": name in served, "storage": name == storage} for name in every]
    client = {"service": {"namespace": "policies", "name": "webhook"}, **config}
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": client}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "kafkas.example.com"},
        "spec": {"group": "example.com", "names": {"kind": "Kafka"}, "versions": versions, "conversion": conversion},
        "status": {"storedVersions": stored},
    }


BOTH = definition(["v1", "v2"], ["v1", "v2"])


@pytest.mark.parametrize(
    ("crd", "objects", "severities"),
    [
        pytest.param(definition(["v1", "v1beta1"], ["v1", "v1beta1"]), (), ["critical"], id="stored in both"),
        pytest.param(definition(["v1"], ["v1beta1"]), (), ["critical"], id="stored in one that is not served"),
        pytest.param(definition(["v1"], ["v1", "v1beta1"]), (), ["critical"], id="some stored in one not served"),
        pytest.param(definition(["v1", "v1beta1"], ["v1"]), (), ["warning"], id="stored in one that is served"),
        pytest.param(definition(["v1"], ["v1"]), (), [], id="stored and served in one"),
        pytest.param(BOTH, (service(443), *TWO), [], id="answered"),
        pytest.param(BOTH, (service(8443), *TWO), ["critical"], id="another port"),
        pytest.param(
            definition(["v1", "v2"], ["v1", "v2"], caBundle="bm9uZQ=="),
            (service(443), *TWO),
            ["critical"],
            id="no bundle",
        ),
    ],
)
def test_conversions_that_nobody_makes(crd: JSON, objects: tuple[JSON, ...], severities: list[str]) -> None:
    """As grave as what cannot be read."""
    assert [severity for _, severity, *_ in findings("CRDConversionWebhookDown", crd, *objects)] == severities


def test_an_orphan_of_another_kind() -> None:
    """A definition is not deleted for want of a Service, its objects would go with it; an aggregated API is."""
    check = BY_NAME["CRDConversionWebhookDown"]
    (finding,) = run_check(check, snapshot_of(check.reads, [BOTH]), context()).findings
    assert finding.remediation.startswith("Install again")
    check = BY_NAME["APIServiceUnavailable"]
    condition = {"type": "Available", "status": "False", "reason": "ServiceNotFound"}
    api = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1.example.com"},
        "spec": {"service": {"namespace": "gone", "name": "api"}},
        "status": {"conditions": [condition]},
    }
    (finding,) = run_check(check, snapshot_of(check.reads, [api]), context()).findings
    assert finding.remediation.startswith("Delete APIService v1.example.com")


def test_what_is_gone_is_not_brought_up() -> None:
    """The way out is that of the cause: an orphan is deleted, a port is named, a pod is brought up."""
    check = BY_NAME["WebhookBlocksUpdate"]
    fixes = [
        run_check(check, snapshot_of(check.reads, [asked(), *objects]), context()).findings[0].remediation
        for objects in ((), (service(8443),), (service(443), backend("a", "False")))
    ]
    assert [fix.split()[0] for fix in fixes] == ["Delete", "Name", "Bring"]
