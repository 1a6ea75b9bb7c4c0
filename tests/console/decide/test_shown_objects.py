"""What of an object is shown: its YAML, without secrets and without the places where people keep them all the same."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cli.preflight.render import samples

from kubekit.lang import yaml as kyaml
from runup.console.decide.shown_objects import (
    HIDDEN,
    MOST_OBJECTS,
    MOST_YAML,
    evidence_of,
    is_secret,
    objects_to_show,
    yaml_of,
)
from runup.preflight.decide.findings import Findings
from runup.report.report import ReportedResource

TOKEN = "s3cr3t-t0k3n"
NODE = ReportedResource(group="", kind="Node", namespace="", name="worker-0")
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def _object(kind: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "a"}, **fields}


CONTAINERS = [{"name": "c", "env": [{"name": "PASSWORD", "value": TOKEN}, {"name": "HOST", "valueFrom": {"a": "b"}}]}]


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
        pytest.param(_object("Job", spec={"args": [f"git clone https://{TOKEN}@git/a b"]}), id="a token in a command"),
        pytest.param(
            _object("Pod", spec={"a": f"{'b' * 1977} https://u:{TOKEN}@{'c' * 99}"}), id="where a text is cut"
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": {APPLIED: TOKEN}}}, id="what was applied"
        ),
        pytest.param({"kind": "Pod", "metadata": {"managedFields": [{"manager": TOKEN}]}}, id="managed fields"),
    ],
)
def test_what_is_hidden(obj: dict[str, Any]) -> None:
    """The value is nowhere; everything else is as it was."""
    assert TOKEN in str(obj)
    assert TOKEN not in yaml_of(obj)
    assert kyaml.load(yaml_of(obj))["kind"] == obj["kind"]


def test_what_is_shown() -> None:
    """Names of variables and keys stay, and so does all else."""
    shown = kyaml.load(yaml_of(_object("Pod", spec={"containers": CONTAINERS, "nodeName": "worker-0"})))
    assert shown["spec"]["nodeName"] == "worker-0"
    assert shown["spec"]["containers"][0]["env"] == [
        {"name": "PASSWORD", "value": HIDDEN},
        {"name": "HOST", "valueFrom": {"a": "b"}},
    ]
    assert kyaml.load(yaml_of(_object("ConfigMap", data={"key": TOKEN})))["data"] == {"key": HIDDEN}
    # Only of a Route is a "key" a secret, and only what stands before the host is.
    tolerated = {"key": "node.kubernetes.io/not-ready", "url": "https://host/@a"}
    assert kyaml.load(yaml_of(_object("Pod", spec=tolerated)))["spec"] == tolerated
    proxied = kyaml.load(yaml_of(_object("Proxy", spec={"httpProxy": "http://a:b@proxy:3128/p"})))
    assert proxied["spec"]["httpProxy"] == f"http://{HIDDEN}@proxy:3128/p"


@pytest.mark.parametrize(
    ("item", "obj", "told"),
    [
        pytest.param(
            ReportedResource(group="", kind="Secret", namespace="a", name="b"),
            _object("Secret"),
            "never shown",
            id="a Secret",
        ),
        pytest.param(
            ReportedResource(group="", kind="secret", namespace="a", name="b"),
            None,
            "never shown",
            id="however it is written",
        ),
        pytest.param(NODE, _object("Secret", data={"a": TOKEN}), "never shown", id="one that is called otherwise"),
        pytest.param(NODE, None, "not there any more", id="an object that is gone"),
    ],
)
def test_what_has_no_yaml(item: ReportedResource, obj: dict[str, Any] | None, told: str) -> None:
    """The reason stands in its place."""
    evidence = evidence_of(item, samples.FOUND, obj)
    assert evidence.yaml == ""
    assert told in evidence.why
    assert is_secret(item) == (item.kind.lower() == "secret")


def test_a_long_object_is_cut_and_says_so() -> None:
    """By whole lines; a long text in it is cut by itself."""
    text = yaml_of(_object("Pod", status={"list": ["a" * 100] * 1000, "one": "b" * 100_000}))
    assert len(text) < MOST_YAML + 100
    assert text.rstrip().splitlines()[-1].startswith("# cut: ")
    assert "(5000 characters)" in yaml_of(_object("Pod", spec={"a": "b" * 5000}))


def test_an_object_without_end_is_no_fault() -> None:
    """What is nested deeper than any object is hidden."""
    deep: Any = "end"
    for _ in range(200):
        deep = {"a": deep}
    assert HIDDEN in yaml_of(_object("Thing", spec=deep))


def test_which_objects_are_read() -> None:
    """Those of open risks first, each once, and not more than a page may have."""
    many = tuple(
        ReportedResource(group="", kind="Node", namespace="", name=f"n{number}") for number in range(MOST_OBJECTS)
    )
    risks = (
        samples.risk("A", "m", accepted=True, resources=many),
        samples.risk(
            "B", "m", resources=(NODE, NODE, ReportedResource(group="", kind="", namespace="", name="nameless kind"))
        ),
    )
    wanted = objects_to_show(Findings(source="1", target="2", risks=risks))
    assert wanted[0] == NODE
    assert len(wanted) == len(set(wanted)) == MOST_OBJECTS
