"""A collected dump has the fields that runup reads, and no others that may hold secrets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from tests.checks.catalogue.test_examples import BY_NAME, ROWS, changed

from kubekit.api.scheme import Resource, resource_of
from kubekit.api.workloads_v1 import Deployment
from kubekit.lang import yaml as kyaml
from runup.checks.catalogue import CHECKS
from runup.checks.decide import check_page
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Check
from runup.checks.decide.reads import Read, Slim
from runup.facts.collect import COMPLETE, CollectedKind, with_known_fields
from runup.facts.collected_fields import (
    NOT_COLLECTED,
    as_text,
    collected_fields,
    fields_left_out,
    reducer,
    why_insufficient,
)
from runup.rehearse.decide import drain_inputs
from runup.rules.shown_fields import parsed
from runup.updatestatus.control.status_reads import READS

JSON = dict[str, Any]
TOKEN = "s3cr3t-t0k3n"


def _reads() -> Iterator[Resource]:
    """Everything that runup reads of a dump, each with the type that it is decoded as."""
    yield from (resource for check in CHECKS for resource in check.reads)
    yield from (resource for resource, _ in READS)
    for kind in drain_inputs.KINDS:
        known = {name: getattr(kind.resource, name) for name in Resource.__struct_fields__}
        yield Slim(**known, type=kind.type)


@pytest.mark.parametrize("read", dict.fromkeys(_reads()), ids=str)
def test_keeps_each_field_that_is_read(read: Resource) -> None:
    """A field that a type has and the dump does not: name it in `rules/data/collected-fields.txt`, with its reason."""
    assert fields_left_out(read, collected_fields(read)) == []
    assert why_insufficient(read, as_text(collected_fields(read))) == ""


def _reduced(check: Check) -> Check:
    """The check with an example as a dump would have it."""
    by_kind = {(read.api_version.rpartition("/")[0], read.kind): read for read in check.reads}
    documents = []
    for document in kyaml.load_all(check.example):
        group = str(document.get("apiVersion") or "").rpartition("/")[0] if isinstance(document, dict) else ""
        read = by_kind.get((group, str(document.get("kind")))) if isinstance(document, dict) else None
        annotations = (document.get("metadata") or {}).get("annotations") or {} if read else {}
        if read is not None and annotations.get("example") != "target":
            document = reducer(read, collected_fields(read), policies_deny=True)(document)
        documents.append(json.dumps(document))
    return replace(check, example="\n---\n".join(documents))


CASES = [
    *((name, check, None) for name, check in BY_NAME.items()),
    *((row.id, changed(BY_NAME[row.check], row.changes), row.context) for row in ROWS),
]


@pytest.mark.parametrize(("check", "context"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_finds_the_same_in_a_dump(check: Check, context: Any) -> None:
    """For each example of each check, and all that is nearly it."""
    whole_snapshot, of_example = check_page.example(check)
    reduced_snapshot, _ = check_page.example(_reduced(check))
    chosen = of_example
    if context is not None:
        chosen = replace(context, manifests=of_example.manifests, catalogs=of_example.catalogs)
    assert run_check(check, reduced_snapshot, chosen).findings == run_check(check, whole_snapshot, chosen).findings


def _container(**fields: Any) -> JSON:
    return {"spec": {"containers": [{"name": "c", **fields}]}}


HEADERS = {"httpGet": {"port": 80, "path": f"/?t={TOKEN}", "httpHeaders": [{"name": "Authorization", "value": TOKEN}]}}
POD = Resource(group="", version="v1", kind="Pod", plural="pods", namespaced=True)
MAP = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
VOLUME = Resource(group="", version="v1", kind="PersistentVolume", plural="persistentvolumes", namespaced=False)
CLASS = Resource(group="storage.k8s.io", version="v1", kind="StorageClass", plural="storageclasses", namespaced=False)
DEPLOYMENTS = resource_of(Deployment)
DAEMON_SETS = Resource(group="apps", version="v1", kind="DaemonSet", plural="daemonsets", namespaced=True)
BINDINGS = Resource(
    group="admissionregistration.k8s.io",
    version="v1",
    kind="ValidatingAdmissionPolicyBinding",
    plural="validatingadmissionpolicybindings",
    namespaced=False,
)
KUBE_APISERVER = Resource(
    group="operator.openshift.io", version="v1", kind="KubeAPIServer", plural="kubeapiservers", namespaced=False
)
MODULE = Resource(group="kmm.sigs.x-k8s.io", version="v1beta1", kind="Module", plural="modules", namespaced=True)
PLANTED: dict[str, tuple[Resource, JSON]] = {
    "arguments": (POD, _container(args=[f"--password={TOKEN}"])),
    "argument of its own": (POD, _container(args=["--password", TOKEN, "--feature-gates", "A=true"])),
    "command": (POD, _container(command=["mysqladmin", f"-p{TOKEN}"])),
    "variable": (POD, _container(env=[{"name": "P", "value": TOKEN}])),
    "headers of a probe": (POD, _container(livenessProbe=HEADERS)),
    "command of a probe": (POD, _container(startupProbe={"exec": {"command": [TOKEN]}})),
    "hook": (POD, _container(lifecycle={"preStop": {"exec": {"command": [TOKEN]}}, "postStart": HEADERS})),
    "CSI attributes of a pod": (POD, {"spec": {"volumes": [{"csi": {"volumeAttributes": {"password": TOKEN}}}]}}),
    "flexVolume options": (POD, {"spec": {"volumes": [{"flexVolume": {"options": {"secret": TOKEN}}}]}}),
    "unknown volume": (POD, {"spec": {"volumes": [{"newVolume": {"secret": TOKEN}}]}}),
    "log of a container": (POD, {"status": {"containerStatuses": [{"state": {"terminated": {"message": TOKEN}}}]}}),
    "unknown field": (POD, {"spec": {"newField": {"a": TOKEN}}, "data": TOKEN}),
    "CSI attributes": (VOLUME, {"spec": {"csi": {"driver": "d", "volumeAttributes": {"password": TOKEN}}}}),
    "mount options": (VOLUME, {"spec": {"mountOptions": [f"password={TOKEN}"]}}),
    "parameters": (CLASS, {"parameters": {"password": TOKEN}}),
    "ConfigMap": (MAP, {"data": {"password": TOKEN}, "binaryData": {"key": TOKEN}}),
    "key among certificates": (
        MAP, {"data": {"ca-bundle.crt": f"-----BEGIN RSA PRIVATE KEY-----\n{TOKEN}\n-----END RSA PRIVATE KEY-----\n"}},
    ),
    "workload": (DEPLOYMENTS, {"spec": {"template": _container(env=[{"name": "P", "value": TOKEN}])}}),
    "annotation of a template": (DEPLOYMENTS, {"spec": {"template": {"metadata": {"annotations": {"other": TOKEN}}}}}),
    "override": (KUBE_APISERVER, {"spec": {"unsupportedConfigOverrides": {"apiServerArguments": {"token": [TOKEN]}}}}),
    "build argument": (
        MODULE, {"spec": {"moduleLoader": {"container": {"build": {"buildArgs": [{"name": "P", "value": TOKEN}]}}}}},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("resource", "obj"), PLANTED.values(), ids=list(PLANTED))
@pytest.mark.parametrize("namespace", ["shop", "kube-system"])
def test_leaves_secrets_out(resource: Resource, obj: JSON, namespace: str) -> None:
    """Also the annotations of other tools, and the user of an address in a text that is kept."""
    annotations = {f"{tool}/last-applied": TOKEN for tool in ("kubectl.kubernetes.io", "kopf.zalando.org")}
    metadata = {"name": "a", "namespace": namespace, "annotations": annotations}
    status = {**(obj.get("status") or {}), "conditions": [{"type": "A", "message": f"https://user:{TOKEN}@host/path"}]}
    whole = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **obj, "status": status}
    reduced = reducer(resource, collected_fields(resource), policies_deny=False)(whole)
    assert TOKEN not in json.dumps(reduced)
    assert reduced["metadata"]["annotations"] == dict.fromkeys(annotations, NOT_COLLECTED)
    assert reduced["status"]["conditions"] == [{"type": "A", "message": "https://host/path"}]


@pytest.mark.parametrize(
    ("namespace", "actions", "keeps"),
    [("kube-system", ["Deny"], True), ("shop", ["Deny"], False), ("kube-system", ["Audit"], False)],
    ids=["the platform's", "a user's", "a policy that does not deny"],
)
def test_keeps_what_a_policy_reads(namespace: str, actions: list[str], keeps: bool) -> None:
    """A policy may read any field of the workloads that the update writes."""
    daemon_set = {
        "metadata": {"name": "a", "namespace": namespace},
        "spec": {"template": _container(env=[{"name": "P", "value": "v"}])},
    }
    binding = {"metadata": {"name": "a"}, "spec": {"validationActions": actions}}
    kinds = [
        CollectedKind(name=read.name, state=COMPLETE, resource=read, lists=(("", {"items": [item]}),))
        for read, item in ((DAEMON_SETS, daemon_set), (BINDINGS, binding))
    ]
    (_, reduced), *_ = with_known_fields(kinds, [])[0].lists
    (container,) = reduced["items"][0]["spec"]["template"]["spec"]["containers"]
    assert (container["env"] == [{"name": "P", "value": "v"}]) is keeps


def _read(*fields: str) -> Read:
    return Read(group="", version="v1", kind="Pod", plural="pods", namespaced=True, fields=fields)


@pytest.mark.parametrize(
    ("fields", "missing"),
    [
        (("spec.nodeName", "status.phase"), []),
        (("spec.containers",), ["spec.containers"]),
        (("spec.containers.image", "spec.hostAliases"), ["spec.hostAliases"]),
    ],
    ids=["kept", "kept in part", "not kept"],
)
def test_another_check_lacks_what_is_left_out(fields: tuple[str, ...], missing: list[str]) -> None:
    """A check that is not built in, or of a later version: it is Unknown, and the message names the way out."""
    recorded = as_text(collected_fields(POD))
    assert parsed(recorded) == collected_fields(POD)
    why = why_insufficient(_read(*fields), recorded)
    expected = f"the dump leaves out fields of pods ({', '.join(missing)}); collect it with `--whole-objects`"
    assert why == (expected if missing else "")
    # The reads of checks that are installed next to runup are known when the dump is collected.
    assert why_insufficient(_read(*fields), as_text(collected_fields(POD, [_read(*fields)]))) == ""
