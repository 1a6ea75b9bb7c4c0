"""A manifest as it is applied: whose it is, what the cluster gives it, and what is left to others."""

from __future__ import annotations

from typing import Any

import pytest
from tests.applying.decide.tasks import task

from kubekit.error_types import Terminal
from runup.applying.decide.rendering import LABEL, ClusterValues, Proxy, render
from runup.process.tls_profile import TlsProfile, profile_of

OWNER = {"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "name": "version", "uid": "u"}
CLUSTER = ClusterValues(owner_uid="u")


def shown(found: Any, **cluster: Any) -> dict[str, Any]:
    """The object that is applied, without its label."""
    obj = render(found, ClusterValues(**{"owner_uid": "u"} | cluster)).object
    del obj["metadata"]["labels"][LABEL]
    return obj


@pytest.mark.parametrize(
    ("metadata", "owners"),
    [
        pytest.param({}, [{**OWNER, "controller": True}], id="ClusterVersion owns it"),
        pytest.param(
            {"annotations": {"release.openshift.io/create-only": "TRUE"}},
            [OWNER],
            id="and does not control what it only creates",
        ),
        pytest.param(
            {"ownerReferences": [{"kind": "Namespace", "uid": "n"}]},
            [{"kind": "Namespace", "uid": "n"}],
            id="an owner of its own is kept",
        ),
        pytest.param(
            {"ownerReferences": [{"kind": "ClusterVersion", "uid": "old"}]},
            [{**OWNER, "controller": True}],
            id="a ClusterVersion that it names is this one",
        ),
    ],
)
def test_whose_it_is(metadata: dict[str, Any], owners: list[dict[str, Any]]) -> None:
    """Owner references as in docs/reference/upstream.md 5.1."""
    assert shown(task("a", metadata=metadata))["metadata"]["ownerReferences"] == owners


def test_what_the_server_keeps_is_not_sent() -> None:
    """Status, and the metadata that nobody sets."""
    obj = shown(task("a", metadata={"creationTimestamp": None, "uid": "x"}, status={"a": 1}, data={"k": "v"}))
    assert set(obj) == {"apiVersion", "kind", "metadata", "data"}
    assert set(obj["metadata"]) == {"name", "namespace", "ownerReferences", "labels"}


@pytest.mark.parametrize(
    ("role", "sent"),
    [
        pytest.param({"aggregationRule": {"clusterRoleSelectors": []}, "rules": []}, False, id="rules that are made"),
        pytest.param({"aggregationRule": None, "rules": []}, True, id="no rule of aggregation"),
        pytest.param({"rules": []}, True, id="rules of its own"),
    ],
)
def test_rules_that_a_controller_makes_are_not_sent(role: dict[str, Any], sent: bool) -> None:
    """Applying an empty list would undo the controller's work."""
    found = shown(task("a", "ClusterRole", "rbac.authorization.k8s.io", "r", **role))
    assert ("rules" in found) is sent


def test_the_label_says_what_was_applied() -> None:
    """The hash is equal for equal content; it differs for another owner, value or injected value."""
    one = render(task("a", data={"k": "v"}), CLUSTER)
    assert one.object["metadata"]["labels"] == {LABEL: one.digest}
    assert render(task("a", data={"k": "v"}), CLUSTER).digest == one.digest
    others = (
        render(task("a", data={"k": "w"}), CLUSTER),
        render(task("a", data={"k": "v"}), ClusterValues(owner_uid="other")),
    )
    assert one.digest not in {other.digest for other in others}


def workload(**annotations: str) -> Any:
    """A Deployment of two containers."""
    pod = {"containers": [{"name": "a", "env": [{"name": "HTTP_PROXY", "value": "old"}]}, {"name": "b"}]}
    return task("a", "Deployment", "apps", "d", metadata={"annotations": annotations}, spec={"template": {"spec": pod}})


def env(obj: dict[str, Any], name: str) -> dict[str, str]:
    """A container's environment."""
    found = next(c for c in obj["spec"]["template"]["spec"]["containers"] if c["name"] == name)
    return {each["name"]: each["value"] for each in found.get("env", ())}


def test_the_proxy_goes_where_it_is_asked_for() -> None:
    """Given values replace the existing ones in the named containers."""
    obj = shown(workload(**{"config.openshift.io/inject-proxy": "a"}), proxy=Proxy("http://p", no_proxy="n"))
    assert env(obj, "a") == {"HTTP_PROXY": "http://p", "NO_PROXY": "n"}
    assert env(obj, "b") == {}


def test_a_container_that_is_not_there_is_an_error() -> None:
    """The release is wrong; it names the container."""
    with pytest.raises(Terminal, match="names container 'x', which it does not have"):
        shown(workload(**{"config.openshift.io/inject-proxy": "x"}))


def test_the_operator_gets_the_internal_address() -> None:
    """Its own Deployment's container of its name, nobody else's."""
    pod = {"containers": [{"name": "cvo"}, {"name": "other"}]}
    own = task("a", "Deployment", "apps", "cvo", spec={"template": {"spec": pod}})
    obj = shown(own, operator=("ns", "cvo"), internal_host="api-int", internal_port="6443")
    assert env(obj, "cvo") == {"KUBERNETES_SERVICE_HOST": "api-int", "KUBERNETES_SERVICE_PORT": "6443"}
    assert env(obj, "other") == {}
    assert env(shown(workload(), operator=("ns", "cvo"), internal_host="api-int"), "b") == {}


def test_a_bundle_that_somebody_injects_is_left_to_them() -> None:
    """In webhooks, conversions and API services alike."""
    annotated = {"annotations": {"service.beta.openshift.io/inject-cabundle": "true"}}
    hooks = task("a", "X", "g", metadata=annotated, webhooks=[{"name": "w", "clientConfig": {"caBundle": "Cg=="}}])
    assert shown(hooks)["webhooks"] == [{"name": "w", "clientConfig": {}}]
    conversion = {"conversion": {"webhook": {"clientConfig": {"caBundle": "Cg==", "url": "u"}}}}
    crd = task("a", "CustomResourceDefinition", "apiextensions.k8s.io", metadata=annotated, spec=conversion)
    assert shown(crd)["spec"] == {"conversion": {"webhook": {"clientConfig": {"url": "u"}}}}


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        pytest.param("APIService", {"group": "g"}, id="an API service"),
        pytest.param("Other", {"group": "g", "caBundle": "Cg=="}, id="another kind's own field"),
    ],
)
def test_the_bundle_of_an_api_service_is_left_to_others(kind: str, left: dict[str, str]) -> None:
    """Both injectors of that kind write into the spec."""
    annotated = {"annotations": {"service.beta.openshift.io/inject-cabundle": "true"}}
    found = task("a", kind, "g", metadata=annotated, spec={"group": "g", "caBundle": "Cg=="})
    assert shown(found)["spec"] == left


@pytest.mark.parametrize("value", ["false", ""])
def test_a_bundle_stays_where_nobody_injects_one(value: str) -> None:
    """Only `true` asks for it."""
    annotated = {"annotations": {"service.beta.openshift.io/inject-cabundle": value}}
    hooks = [{"name": "w", "clientConfig": {"caBundle": "Cg=="}}]
    assert shown(task("a", "X", "g", metadata=annotated, webhooks=hooks))["webhooks"] == hooks


def test_without_a_proxy_what_a_container_says_stays() -> None:
    """Nothing is set, and nothing is taken away."""
    obj = shown(workload(**{"config.openshift.io/inject-proxy": "a,b"}))
    assert (env(obj, "a"), env(obj, "b")) == ({"HTTP_PROXY": "old"}, {})
    assert "env" not in obj["spec"]["template"]["spec"]["containers"][1]


def test_containers_that_run_first_get_the_proxy_as_well() -> None:
    """By their name."""
    pod = {"initContainers": [{"name": "i"}], "containers": [{"name": "c"}]}
    annotated = {"annotations": {"config.openshift.io/inject-proxy": "i"}}
    found = task("a", "Deployment", "apps", "d", metadata=annotated, spec={"template": {"spec": pod}})
    (first,) = shown(found, proxy=Proxy(https="https://p"))["spec"]["template"]["spec"]["initContainers"]
    assert first["env"] == [{"name": "HTTPS_PROXY", "value": "https://p"}]


def test_nobody_owns_what_has_no_cluster_yet() -> None:
    """Without a uid no owner reference is possible; an invalid label is replaced."""
    found = task("a", metadata={"labels": "odd"})
    obj = render(found, ClusterValues()).object
    assert "ownerReferences" not in obj["metadata"]
    assert set(obj["metadata"]["labels"]) == {LABEL}


@pytest.mark.parametrize(
    ("namespace", "name", "host"),
    [("other", "cvo", "api-int"), ("zz", "cvo", "api-int"), ("ns", "other", "api-int"), ("ns", "cvo", "")],
)
def test_nobody_else_gets_the_internal_address(namespace: str, name: str, host: str) -> None:
    """Nor the operator, where it does not exist."""
    pod = {"containers": [{"name": name}]}
    own = task("a", "Deployment", "apps", "cvo", spec={"template": {"spec": pod}})
    assert env(shown(own, operator=(namespace, name), internal_host=host), name) == {}


CONFIG = """\
# who may ask
apiVersion: operator.openshift.io/v1alpha1
kind: GenericOperatorConfig
servingInfo:
  bindAddress: "0.0.0.0:8443"  # everywhere
  minTLSVersion: VersionTLS10
  cipherSuites:
  - OLD
leaderElection: {}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            CONFIG,
            CONFIG.replace(
                "servingInfo:\n", "servingInfo:\n  minTLSVersion: VersionTLS12\n  cipherSuites:\n  - A\n  - B\n"
            )
            .replace("  minTLSVersion: VersionTLS10\n", "")
            .replace("  cipherSuites:\n  - OLD\n", ""),
            id="in the place of what was there; comments, quotes and order stay",
        ),
        pytest.param(
            "apiVersion: config.openshift.io/v1\nkind: GenericControllerConfig\n",
            "apiVersion: config.openshift.io/v1\nkind: GenericControllerConfig\n"
            "servingInfo:\n  minTLSVersion: VersionTLS12\n  cipherSuites:\n  - A\n  - B\n",
            id="where there was none",
        ),
        pytest.param(
            "kind: Other\nservingInfo: {}\n", "kind: Other\nservingInfo: {}\n", id="another kind is left alone"
        ),
        pytest.param("no: [yaml", "no: [yaml", id="what is no YAML is left alone"),
    ],
)
def test_the_tls_profile_is_written_into_configuration(text: str, expected: str) -> None:
    """Line by line."""
    found = task(
        "a", metadata={"annotations": {"config.openshift.io/inject-tls": "true"}}, data={"config.yaml": text, "n": "x"}
    )
    obj = shown(found, tls=TlsProfile("VersionTLS12", ("A", "B")))
    assert obj["data"] == {"config.yaml": expected, "n": "x"}


def test_a_profile_that_cannot_be_read_is_an_error() -> None:
    """Nothing is guessed."""
    found = task("a", metadata={"annotations": {"config.openshift.io/inject-tls": "true"}}, data={"c": CONFIG})
    with pytest.raises(Terminal, match="APIServer cluster could not be read"):
        shown(found)


@pytest.mark.parametrize(
    ("profile", "version", "some_cipher"),
    [
        pytest.param(None, "VersionTLS12", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", id="nothing is asked for"),
        pytest.param({"type": "Old"}, "VersionTLS10", "TLS_RSA_WITH_3DES_EDE_CBC_SHA", id="old"),
        pytest.param({"type": "Modern"}, "VersionTLS13", "TLS_AES_256_GCM_SHA384", id="modern"),
        pytest.param(
            {
                "type": "Custom",
                "custom": {"minTLSVersion": "VersionTLS11", "ciphers": ["ECDHE-RSA-AES128-GCM-SHA256", "?"]},
            },
            "VersionTLS11",
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            id="of one's own, by OpenSSL's names",
        ),
    ],
)
def test_which_profile(profile: dict[str, Any] | None, version: str, some_cipher: str) -> None:
    """As APIServer `cluster` has it."""
    found = profile_of({"spec": {"tlsSecurityProfile": profile} if profile else {}})
    assert found.min_version == version
    assert some_cipher in found.ciphers
    assert all(name.startswith("TLS_") for name in found.ciphers)
