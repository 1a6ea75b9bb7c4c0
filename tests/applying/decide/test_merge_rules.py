"""Tests how additions by others are merged, by kind and field, and which foreign writes are examined."""

from __future__ import annotations

from typing import Any

import pytest

from runup.api.owned_v1 import ManagedFields, OwnedMeta
from runup.applying.decide.merge_rules import MERGER, merge_objects, writes_of_others
from runup.applying.decide.merging import MANAGER

DEPLOYMENT = ("apps", "Deployment")
WEBHOOKS = ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration")
ROLE = ("rbac.authorization.k8s.io", "ClusterRole")
OURS = {
    "f:spec": {
        "f:replicas": {},
        "f:template": {"f:spec": {"f:containers": {'k:{"name":"a"}': {".": {}, "f:image": {}}}}},
    }
}


def deployment_with(**spec: Any) -> dict[str, Any]:
    """A Deployment whose pods are so."""
    return {"metadata": {"name": "d"}, "spec": {"template": {"spec": spec}}}


@pytest.mark.parametrize(
    ("kind", "manifest", "live", "expected"),
    [
        pytest.param(
            ("batch", "Job"),
            {"spec": {"template": {}}},
            {"spec": {"template": {}, "manualSelector": True, "backoffLimit": 9}},
            {"spec": {"template": {}}},
            id="a Job's selection by hand goes (ensureJobSpec)",
        ),
        pytest.param(
            DEPLOYMENT,
            deployment_with(containers=[{"name": "a", "image": "1"}]),
            deployment_with(
                containers=[{"name": "b"}, {"name": "a", "image": "1", "imagePullPolicy": "Always", "tty": True}]
            ),
            deployment_with(containers=[{"name": "a", "image": "1", "imagePullPolicy": "Always", "tty": True}]),
            id="a sidecar goes, what nobody reconciles stays",
        ),
        pytest.param(
            DEPLOYMENT,
            deployment_with(volumes=[{"name": "v"}]),
            deployment_with(volumes=[{"name": "w"}], hostNetwork=True, affinity={"a": {}}, tolerations=[{"key": "k"}]),
            deployment_with(volumes=[{"name": "v"}], affinity={"a": {}}, tolerations=[{"key": "k"}]),
            id="volumes and the host's network go, affinity and tolerations stay",
        ),
        pytest.param(
            DEPLOYMENT,
            deployment_with(affinity={"b": {}}),
            deployment_with(affinity={"a": {}}),
            deployment_with(affinity={"b": {}}),
            id="a manifest's affinity is the whole of it",
        ),
        pytest.param(
            DEPLOYMENT,
            deployment_with(securityContext={"runAsNonRoot": True}),
            deployment_with(securityContext={"runAsNonRoot": True, "runAsUser": 0, "fsGroupChangePolicy": "Always"}),
            deployment_with(securityContext={"runAsNonRoot": True, "fsGroupChangePolicy": "Always"}),
            id="of a security context, what the merge knows",
        ),
        pytest.param(
            DEPLOYMENT,
            deployment_with(),
            deployment_with(securityContext={"fsGroup": 1}),
            deployment_with(),
            id="a whole security context",
        ),
        pytest.param(
            ("", "ConfigMap"),
            {"metadata": {"labels": {"a": "1"}}, "data": {"k": "v"}},
            {"metadata": {"labels": {"b": "2"}}, "data": {"k": "w", "other": "x"}},
            {"metadata": {"labels": {"b": "2", "a": "1"}}, "data": {"k": "v", "other": "x"}},
            id="labels and keys of a ConfigMap stay beside the manifest's",
        ),
        pytest.param(
            ("", "Service"),
            {"metadata": {}, "spec": {"ports": [{"port": 1}]}},
            {
                "metadata": {},
                "spec": {"type": "NodePort", "clusterIP": "10.0.0.1", "ports": [{"port": 1, "nodePort": 30000}]},
            },
            {"metadata": {}, "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 1}]}},
            id="a Service needs no node port again, and keeps its address",
        ),
        pytest.param(
            ("", "Service"),
            {"metadata": {}, "spec": {"type": "NodePort", "ports": [{"port": 1}]}},
            {
                "metadata": {},
                "spec": {"type": "NodePort", "ports": [{"port": 1, "protocol": "TCP", "nodePort": 30000}]},
            },
            {"metadata": {}, "spec": {"type": "NodePort", "ports": [{"nodePort": 30000, "port": 1}]}},
            id="the node port that the server chose stays",
        ),
        pytest.param(
            ROLE,
            {"metadata": {}, "aggregationRule": {"x": 1}},
            {"metadata": {}, "aggregationRule": {"x": 1}, "rules": [{"verbs": ["get"]}]},
            {"metadata": {}, "aggregationRule": {"x": 1}, "rules": [{"verbs": ["get"]}]},
            id="aggregated rules are their controller's",
        ),
        pytest.param(
            ROLE,
            {"metadata": {}, "rules": []},
            {"metadata": {}, "aggregationRule": {"x": 1}, "rules": [{"verbs": ["get"]}]},
            {"metadata": {}, "rules": []},
            id="an aggregation goes, and what it brought",
        ),
        pytest.param(
            WEBHOOKS,
            {"metadata": {}, "webhooks": [{"name": "a", "clientConfig": {"service": "s"}}]},
            {
                "metadata": {"annotations": {"service.beta.openshift.io/inject-cabundle": "true"}},
                "webhooks": [{"name": "a", "clientConfig": {"service": "s", "caBundle": "x"}}, {"name": "b"}],
            },
            {
                "metadata": {"annotations": {"service.beta.openshift.io/inject-cabundle": "true"}},
                "webhooks": [{"name": "a", "clientConfig": {"service": "s", "caBundle": "x"}}],
            },
            id="a webhook goes, an injected bundle stays",
        ),
        pytest.param(
            ("example.org", "Widget"),
            {"metadata": {}, "spec": {"a": 1}},
            {"metadata": {}, "spec": {"a": 2, "b": 3}},
            {"metadata": {}, "spec": {"a": 1, "b": 3}},
            id="a kind without rules keeps what others added",
        ),
    ],
)
def test_what_stays_and_what_goes(kind: tuple[str, str], manifest: Any, live: Any, expected: Any) -> None:
    """The rules of docs/reference/upstream.md 5.2; what is merged once is merged."""
    assert merge_objects(kind, manifest, live) == expected
    assert merge_objects(kind, manifest, expected) == expected


def of(*entries: ManagedFields, version: str = "7") -> OwnedMeta:
    """Metadata that we applied, and others wrote to."""
    return OwnedMeta(
        name="d",
        resource_version=version,
        generation=2,
        managed_fields=(ManagedFields(manager=MANAGER, operation="Apply", subresource="", fields_v1=OURS), *entries),
    )


def by(fields: dict[str, Any], manager: str = "somebody", subresource: str = "", time: str = "1") -> ManagedFields:
    """An entry of another manager."""
    return ManagedFields(
        manager=manager, operation="Update", subresource=subresource, fields_v1={"f:spec": fields}, time=time
    )


@pytest.mark.parametrize(
    ("entry", "concerns"),
    [
        pytest.param(by({"f:paused": {}}), True, id="a field that goes"),
        pytest.param(by({"f:replicas": {}}), False, id="a field of ours, which then has our value"),
        pytest.param(by({"f:revisionHistoryLimit": {}}), False, id="a field that stays"),
        pytest.param(by({"f:paused": {}}, subresource="status"), False, id="a status"),
        pytest.param(by({"f:minReadySeconds": {}}, subresource="scale"), True, id="another subresource"),
        pytest.param(by({"f:paused": {}}, manager=MERGER), False, id="our own updates"),
        pytest.param(
            by({"f:template": {"f:spec": {"f:containers": {'k:{"name":"b"}': {".": {}}}}}}),
            True,
            id="an entry of a list",
        ),
        pytest.param(
            by({"f:template": {"f:spec": {"f:containers": {'k:{"name":"a"}': {"f:imagePullPolicy": {}}}}}}),
            False,
            id="what stays, within an entry of ours",
        ),
        pytest.param(
            by({"f:template": {"f:spec": {"f:containers": {'k:{"name":"a"}': {"f:args": {}}}}}}),
            True,
            id="what goes, within an entry of ours",
        ),
        pytest.param(
            by({"f:template": {"f:spec": {"f:securityContext": {"f:fsGroup": {}}}}}),
            True,
            id="a field of a struct that goes whole",
        ),
    ],
)
def test_which_writes_are_looked_at(entry: ManagedFields, concerns: bool) -> None:
    """Only those that own something that a rule of the kind takes away."""
    assert bool(writes_of_others(DEPLOYMENT, of(entry))) is concerns


def test_another_write_is_another_value() -> None:
    """By its time or by the generation, and by the version where a kind has no generation."""
    first, later = by({"f:paused": {}}), by({"f:paused": {}}, time="2")
    values = {
        writes_of_others(DEPLOYMENT, of(first)),
        writes_of_others(DEPLOYMENT, of(later)),
        writes_of_others(DEPLOYMENT, of(first, version="8")),
    }
    assert len(values) == 2
    assert writes_of_others(DEPLOYMENT, OwnedMeta(name="d", resource_version="8")), "nothing of it is applied"


def test_a_write_that_takes_nothing_is_none() -> None:
    """Beside one that might: a controller's own annotation after each change of the spec is no reason to look again."""
    pauses, stays = by({"f:paused": {}}), {"f:revisionHistoryLimit": {}}
    values = {
        writes_of_others(DEPLOYMENT, of(pauses)),
        writes_of_others(DEPLOYMENT, of(pauses, by(stays, "controller"))),
        writes_of_others(DEPLOYMENT, of(pauses, by(stays, "controller", time="2"))),
    }
    assert len(values) == 1
