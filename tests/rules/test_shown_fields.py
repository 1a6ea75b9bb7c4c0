"""Only fields that hold no secrets are shown: what the table does not name is hidden, wherever people keep secrets."""

from __future__ import annotations

from typing import Any

import pytest

from runup.rules.shown_fields import HIDDEN, without_secrets

TOKEN = "s3cr3t-t0k3n"
# Annotations in which tools keep the manifest that they applied last, or credentials.
ANNOTATIONS = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "kopf.zalando.org/last-handled-configuration",
    "objectset.rio.cattle.io/applied",
    "banzaicloud.com/last-applied",
    "meta.helm.sh/values",
    "openshift.io/token-secret.value",
)


def _object(kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, **fields}


def _container(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", **fields}]}


HEADERS = {"httpGet": {"port": 80, "path": f"/?t={TOKEN}", "httpHeaders": [{"name": "Authorization", "value": TOKEN}]}}
POD_SPECS = {
    "arguments": _container(args=[f"--password={TOKEN}"]),
    "command": _container(command=["mysqladmin", f"-p{TOKEN}"]),
    **{f"headers of a {probe}": _container(**{probe: HEADERS}) for probe in ("livenessProbe", "readinessProbe")},
    "command of a probe": _container(startupProbe={"exec": {"command": [TOKEN]}}),
    "command of a hook": _container(lifecycle={"preStop": {"exec": {"command": [TOKEN]}}}),
    "headers of a hook": _container(lifecycle={"postStart": HEADERS}),
    "path with a variable": _container(volumeMounts=[{"name": "a", "subPathExpr": TOKEN}]),
    "CSI attributes": {"volumes": [{"csi": {"driver": "d", "volumeAttributes": {"password": TOKEN}}}]},
    "flexVolume options": {"volumes": [{"flexVolume": {"driver": "d", "options": {"secret": TOKEN}}}]},
    "repository": {"volumes": [{"gitRepo": {"repository": f"https://git/?token={TOKEN}"}}]},
    "aliases of hosts": {"hostAliases": [{"ip": "10.0.0.1", "hostnames": [TOKEN]}]},
    "unknown field": {"newField": {"a": TOKEN}},
    "number": {"pin": [{"a": TOKEN}]},
    "field of another type": {"nodeName": {"a": TOKEN}, "containers": TOKEN},
    "list in a list": {"containers": [[{"args": [TOKEN]}]]},
}
OTHERS = {
    "mount options": ("v1", "PersistentVolume", {"spec": {"mountOptions": [f"password={TOKEN}"]}}),
    "attributes": ("v1", "PersistentVolume", {"spec": {"csi": {"volumeAttributes": {"key": TOKEN}}}}),
    "options": ("v1", "PersistentVolume", {"spec": {"flexVolume": {"options": {"key": TOKEN}}}}),
    "parameters": ("storage.k8s.io/v1", "StorageClass", {"parameters": {"password": TOKEN}}),
    "metadata of an attachment": (
        "storage.k8s.io/v1",
        "VolumeAttachment",
        {"status": {"attachmentMetadata": {"key": TOKEN}}},
    ),
    "inline volume": (
        "storage.k8s.io/v1",
        "VolumeAttachment",
        {"spec": {"source": {"inlineVolumeSpec": {"csi": {"volumeAttributes": {"key": TOKEN}}}}}},
    ),
    "address": (
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        {"webhooks": [{"clientConfig": {"url": f"https://host/{TOKEN}"}}]},
    ),
    "request": (
        "certificates.k8s.io/v1",
        "CertificateSigningRequest",
        {"spec": {"request": TOKEN, "extra": {"a": [TOKEN]}}},
    ),
    "log of a container": (
        "v1",
        "Pod",
        {"status": {"containerStatuses": [{"state": {"terminated": {"message": TOKEN}}}]}},
    ),
    "kernel arguments": (
        "machineconfiguration.openshift.io/v1",
        "MachineConfig",
        {"spec": {"kernelArguments": [f"rd.iscsi.password={TOKEN}"]}},
    ),
    "provider's values": (
        "machine.openshift.io/v1beta1",
        "Machine",
        {"spec": {"providerSpec": {"value": {"a": TOKEN}}}},
    ),
    "variables": ("operators.coreos.com/v1alpha1", "Subscription", {"spec": {"config": {"env": [{"value": TOKEN}]}}}),
    "fields": ("example.org/v1", "Widget", {"spec": {"password": TOKEN}, "status": {"token": TOKEN}, "extra": TOKEN}),
    "values": ("example.org/v1", "ConfigMap", {"data": {"key": TOKEN}}),
    # A kind of another group shows no more than any other custom resource.
    "node": ("example.org/v1", "Pod", {"spec": {"nodeName": TOKEN}}),
}
CONTAINERS = [{"name": "c", "env": [{"name": "PASSWORD", "value": TOKEN}]}]


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(_object("Pod", spec={"containers": CONTAINERS}), id="a variable of a pod"),
        pytest.param(
            _object("Deployment", spec={"template": {"spec": {"initContainers": CONTAINERS}}}), id="of a template"
        ),
        pytest.param(_object("ConfigMap", data={"config.json": TOKEN}), id="a ConfigMap's value"),
        pytest.param(_object("ConfigMap", binaryData={"a": TOKEN}), id="a ConfigMap's binary value"),
        pytest.param(_object("Thing", spec={"stringData": {"a": TOKEN}}), id="text for a Secret"),
        pytest.param(
            _object("MachineConfig", spec={"config": {"storage": {"files": [{"contents": {"source": TOKEN}}]}}}),
            id="a file of a MachineConfig",
        ),
        pytest.param(
            _object("MachineConfig", spec={"config": {"passwd": {"users": [{"passwordHash": TOKEN}]}}}),
            id="a password of a MachineConfig",
        ),
        pytest.param(
            _object("MachineConfig", spec={"config": {"storage": {"luks": [{"keyFile": {"source": TOKEN}}]}}}),
            id="the key of a disk of a MachineConfig",
        ),
        pytest.param(
            _object("MachineConfig", spec={"config": {"ignition": {"a": [{"httpHeaders": [{"value": TOKEN}]}]}}}),
            id="a header with which a MachineConfig fetches",
        ),
        pytest.param(_object("Route", spec={"tls": {"key": TOKEN, "termination": "edge"}}), id="the key of a Route"),
        *(
            pytest.param(
                _object(kind, spec={"volumes": [{"cloudInitNoCloud": {field: TOKEN}}]}), id=f"{field} of a {kind}"
            )
            for kind in ("VirtualMachine", "VirtualMachineInstance")
            for field in ("userData", "userDataBase64", "networkData", "networkDataBase64")
        ),
        pytest.param(_object("Proxy", spec={"httpProxy": f"http://ann:{TOKEN}@proxy:3128"}), id="a proxy's password"),
        pytest.param(
            _object("Pod", status={"message": f"{'b' * 1977} https://u:{TOKEN}@{'c' * 99}"}), id="where a text is cut"
        ),
        *(
            pytest.param(
                {"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": {key: TOKEN}}}, id=f"annotation {key}"
            )
            for key in ANNOTATIONS
        ),
        *(pytest.param(_object("Pod", spec=spec), id=f"a pod's {name}") for name, spec in POD_SPECS.items()),
        *(
            pytest.param({**_object(kind, **fields), "apiVersion": version}, id=f"{name} of a {kind}")
            for name, (version, kind, fields) in OTHERS.items()
        ),
        pytest.param({"kind": "Pod", "metadata": {"managedFields": [{"manager": TOKEN}]}}, id="managed fields"),
    ],
)
def test_hides_what_may_be_a_secret(obj: dict[str, Any]) -> None:
    """The value is nowhere; the kind stays."""
    assert TOKEN in str(obj)
    shown = without_secrets(obj)
    assert TOKEN not in str(shown)
    assert shown["kind"] == obj["kind"]


def test_shows_what_an_administrator_looks_for() -> None:
    """Names, references, counts, states and the keys of maps; of addresses all but the user."""
    containers = [
        {
            "name": "c",
            "image": "shop:1",
            "env": [
                {"name": "PASSWORD", "value": TOKEN},
                {"name": "HOST", "valueFrom": {"secretKeyRef": {"name": "db", "key": "host"}}},
            ],
            "resources": {"requests": {"cpu": "1"}},
            "livenessProbe": {"httpGet": {"port": 80}, "periodSeconds": 10},
        }
    ]
    tolerations = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]
    spec = {"nodeName": "worker-0", "containers": containers, "tolerations": tolerations, "hostNetwork": True}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False", "message": "no route"}]}
    hidden = [{**containers[0], "env": [{"name": "PASSWORD", "value": HIDDEN}, containers[0]["env"][1]]}]  # type: ignore[index]
    pod = _object("Pod", spec=spec, status=status)
    assert without_secrets(pod) == {**pod, "spec": {**spec, "containers": hidden}}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": spec}
    workload = {**_object("Deployment", spec={"replicas": 2, "template": template}), "apiVersion": "apps/v1"}
    assert without_secrets(workload)["spec"]["template"]["spec"] == {**spec, "containers": hidden}
    assert without_secrets(_object("ConfigMap", data={"key": TOKEN}))["data"] == {"key": HIDDEN}
    proxy = {**_object("Proxy", spec={"httpProxy": "http://a:b@proxy:3128/p"}), "apiVersion": "config.openshift.io/v1"}
    assert without_secrets(proxy)["spec"]["httpProxy"] == f"http://{HIDDEN}@proxy:3128/p"
    budget = {**_object("PodDisruptionBudget", status={"disruptionsAllowed": 0}), "apiVersion": "policy/v1"}
    assert without_secrets(budget) == budget
    custom = {**_object("Widget", status={"phase": "Ready", "other": True}), "apiVersion": "example.org/v1"}
    assert without_secrets(custom) == custom
    empty = _object("Pod", spec=None, status={"conditions": None, "phase": True})
    assert without_secrets(empty) == empty


def test_ends_where_an_object_does_not() -> None:
    """Objects nested deeper than any real one are cut."""
    deep: Any = TOKEN
    for _ in range(200):
        deep = [deep]
    assert TOKEN not in str(without_secrets(_object("Pod", spec={"nodeName": deep})))
