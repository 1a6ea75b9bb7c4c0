"""The versions of Kubernetes that the server can be, and their feature gates."""

from __future__ import annotations

import subprocess
import sys
import zlib
from importlib.resources import files
from typing import Any

import orjson
import pytest

from kubesandbox.apiserver import kubernetes_version, version_tables
from kubesandbox.apiserver.json_copy import merge_patch
from kubesandbox.apiserver.objects.gated_fields import drop_disabled
from kubesandbox.apiserver.served_kinds import BUILTIN

POD = next(kind for kind in BUILTIN if kind.kind == "Pod")
CORE = "io.k8s.api.core.v1 core"
TYPES = version_tables.parse_types(files("kubesandbox.apiserver.schema").joinpath("builtin_types.txt").read_bytes())


def _document(minor: str) -> dict[str, Any]:
    """Returns the content of the file of a version."""
    compressed = files("kubesandbox.apiserver").joinpath("versions", f"{minor}.json.z").read_bytes()
    document: dict[str, Any] = orjson.loads(zlib.decompress(compressed))
    return document


@pytest.mark.parametrize(
    ("version", "gates", "message"),
    [
        pytest.param("1.32", "", "'1.32' is not a version of Kubernetes that can be served; choose of 1.33", id="old"),
        pytest.param("1.99", "", "'1.99' is not a version", id="newer than the tables"),
        pytest.param("latest", "", "'latest' is not a version", id="no number"),
        pytest.param("1.34", "Nonsense=true", "unrecognized feature gate: Nonsense", id="unknown gate"),
        # Of 1.35: pkg/features/kube_features.go.
        pytest.param("1.34", "GenericWorkload=true", "unrecognized feature gate: GenericWorkload", id="later gate"),
        pytest.param("1.34", "HostnameOverride", "missing bool value for HostnameOverride", id="gate without a value"),
        pytest.param("1.34", "HostnameOverride=on", 'parsing "on": invalid syntax', id="value that Go cannot parse"),
        pytest.param(
            "1.34", "DynamicResourceAllocation=false,SidecarContainers=false",
            "cannot set feature gate SidecarContainers to false, feature is locked to true", id="locked gate",
        ),
    ],
)  # fmt: skip
def test_refuses_a_version_or_gates(version: str, gates: str, message: str) -> None:
    """In the words of kube-apiserver (k8s.io/component-base/featuregate), for gates."""
    with pytest.raises(ValueError) as refused:
        kubernetes_version.choose(version, gates)
    assert message in str(refused.value)


def test_refuses_a_choice_after_the_tables_are_read() -> None:
    """Otherwise one half of the server would have another version than the other half."""
    assert kubernetes_version.number() == 34
    with pytest.raises(RuntimeError):
        kubernetes_version.choose("1.36")


@pytest.mark.parametrize(
    ("type_name", "field", "first"),
    [
        # CHANGELOG-1.34.md to CHANGELOG-1.37.md of Kubernetes, "API Change".
        ("PodSpec", "hostnameOverride", 34),
        ("EnvVarSource", "fileKeyRef", 34),
        ("PodSpec", "schedulingGroup", 36),
        ("EmptyDirVolumeSource", "mode", 37),
        ("PodSpec", "nodeName", 33),
    ],
)
def test_a_field_is_known_from_its_first_version(type_name: str, field: str, first: int) -> None:
    """Earlier versions refuse it as an unknown field if validation is strict."""
    known = []
    for minor in kubernetes_version.RELEASES:
        types = merge_patch(TYPES, _document(minor)["types"])
        if any(word.startswith(f"{field}:") for word in types[CORE][type_name].replace("!:", ":").split()):
            known.append(int(minor.partition(".")[2]))
    assert known == [number for number in range(33, 38) if number >= first]


def test_a_field_of_an_alpha_gate_is_dropped_unless_it_is_stored() -> None:
    """HostnameOverride is an alpha gate of 1.34, and so is ContainerRestartRules (kube_features.go)."""
    container = {"name": "a", "restartPolicyRules": [{"action": "Restart"}]}

    def pod() -> dict[str, object]:
        return orjson.loads(orjson.dumps({"spec": {"hostnameOverride": "x", "containers": [container]}}))  # type: ignore[no-any-return]

    new = pod()
    drop_disabled(POD, new, None)
    assert new == {"spec": {"containers": [{"name": "a"}]}}
    changed = pod()
    drop_disabled(POD, changed, {"spec": {"hostnameOverride": "y", "containers": [{"name": "a"}]}})
    assert changed == {"spec": {"hostnameOverride": "x", "containers": [{"name": "a"}]}}


_CHOSEN = """
from kubesandbox.apiserver import kubernetes_version
kubernetes_version.choose("1.37", "H2CContainerProbe=true,WatchList=false")
from kubesandbox.apiserver.initial_objects import initial_objects
from kubesandbox.apiserver.published.discovery_documents import VERSION
from kubesandbox.apiserver.schema.builtin import builtin_schema
from kubesandbox.apiserver.served_kinds import BUILTIN
pod = {"spec": {"containers": [{"name": "a", "livenessProbe": {"httpGet": {"port": 80}}}]}}
probe = builtin_schema("", "v1", "Pod").complete(pod)["spec"]["containers"][0]["livenessProbe"]["httpGet"]
node = next(kind for kind in BUILTIN if kind.kind == "CSINode")
print(VERSION["gitVersion"], probe["protocol"], node.has_status, kubernetes_version.gates_without_effect())
"""


def test_a_process_serves_the_version_that_it_chose() -> None:
    """Its defaults, subresources and gates are those of 1.37."""
    done = subprocess.run([sys.executable, "-c", _CHOSEN], capture_output=True, text=True, check=True)
    assert done.stdout.split(maxsplit=3) == ["v1.37.0+kubesandbox", "HTTP1", "True", "['WatchList']\n"]
