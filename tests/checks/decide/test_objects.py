"""Objects as JSON become what checks look at: the right ones, bad ones named, what is not there not called absent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.factories import config_map_json

from kubekit.api.extension_v1 import CustomResourceDefinition
from kubekit.api.scheme import resource_of
from runup.api.olm_v1alpha1 import Subscription
from runup.api.platform_v1 import VolumeAttachment
from runup.checks.catalogue.nodes.kernel_module_validations import OCP_RESOURCES
from runup.checks.catalogue.olm.shared.installed_operators import CSVS
from runup.checks.catalogue.shared.certificate_bundles import CONFIG, MANAGED
from runup.checks.decide import target_manifests
from runup.checks.decide.model import Snapshot, Unreadable
from runup.checks.decide.snapshots import snapshot_of
from runup.facts.target_release import load_release
from runup.release.decide.inclusion import Filters

JSON = dict[str, Any]
DEFINITIONS, SUBSCRIPTIONS = resource_of(CustomResourceDefinition), resource_of(Subscription)
ATTACHMENTS = resource_of(VolumeAttachment)
FILTERS = Filters(profile="self-managed-high-availability", feature_set="", gates=frozenset(), major=5)
INCLUDED = {"include.release.openshift.io/self-managed-high-availability": "true"}


def definition(plural: str, group: str) -> JSON:
    """A definition of a kind."""
    spec = {"group": group, "names": {"plural": plural, "kind": "X"}, "versions": [{"name": "v1", "schema": {"a": 1}}]}
    metadata = {"name": f"{plural}.{group}", "annotations": INCLUDED}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }


def test_a_namespace_is_a_list_of_its_own_and_only_what_is_asked_about_is_kept() -> None:
    """ConfigMaps with megabytes of dashboards are next to the gates."""
    objects = [
        config_map_json("admin-gates", "openshift-config-managed", gate="x"),
        config_map_json("grafana-dashboard", "openshift-config-managed", json="x" * 1000),
        config_map_json("admin-acks", "openshift-config", gate="true"),
        config_map_json("mine", "shop", a="b"),
    ]
    found = snapshot_of((CONFIG, MANAGED), objects)
    assert [(each.metadata.name, each.data) for each in found.listed(MANAGED)] == [
        ("admin-gates", {"gate": "x"}),
        ("grafana-dashboard", {}),
    ]
    assert [each.metadata.name for each in found.listed(CONFIG)] == ["admin-acks"]


def test_copies_of_operators_are_left_out() -> None:
    """By the label that the server is asked by."""
    csv: JSON = {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {"name": "a"},
    }
    copy = {**csv, "metadata": {"name": "b", "labels": {"olm.copiedFrom": "x"}}}
    assert [each.metadata.name for each in snapshot_of((CSVS,), [csv, copy]).listed(CSVS)] == ["a"]


def test_one_object_that_is_not_as_its_kind_should_be() -> None:
    """It is named, and the others are there."""
    good: JSON = {"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment", "metadata": {"name": "a"}}
    bad = {**good, "metadata": {"name": "b"}, "status": {"attached": "yes"}}
    found = snapshot_of((ATTACHMENTS,), [good, bad])
    assert [each.metadata.name for each in found.listed(ATTACHMENTS)] == ["a"]
    assert [each.name for each in found.undecoded[ATTACHMENTS]] == ["b"]


def test_an_older_version_counts_where_the_newer_has_none() -> None:
    """As a server has it that knows only the older one."""
    old: JSON = {"apiVersion": "kmm.sigs.x-k8s.io/v1beta1", "kind": "PreflightValidationOCP", "metadata": {"name": "p"}}
    assert [each.metadata.name for each in snapshot_of(OCP_RESOURCES, [old]).list_first_served(OCP_RESOURCES)] == ["p"]


def test_a_kind_that_is_read_in_one_version_is_read_in_any() -> None:
    """A dump has objects as somebody stored them."""
    kind = {"apiVersion": "storage.k8s.io/v1beta1", "kind": "VolumeAttachment", "metadata": {"name": "a"}}
    assert [each.metadata.name for each in snapshot_of((ATTACHMENTS,), [kind]).all(VolumeAttachment)] == ["a"]


LACKING = {"lacking": lambda resource: "" if resource == DEFINITIONS else f"no {resource.plural} here"}
PRESENCE = [
    pytest.param((), {}, (), id="a live cluster without objects"),
    pytest.param((), LACKING, (), id="no definition makes the kind"),
    pytest.param((definition("routes", "route.openshift.io"),), LACKING, (), id="others do"),
    pytest.param((definition("subscriptions", "operators.coreos.com"),), LACKING, None, id="one makes it"),
    pytest.param((), {"lacking": lambda resource: "nothing is known"}, None, id="the definitions are not known"),
    pytest.param((), {**LACKING, "partly": lambda _: "a part"}, None, id="not all definitions are known"),
]


@pytest.mark.parametrize(("objects", "known", "expected"), PRESENCE)
def test_what_a_missing_kind_means(
    objects: tuple[JSON, ...], known: dict[str, Any], expected: tuple[()] | None
) -> None:
    """None of it, or nothing is known: never the one for the other."""
    found = snapshot_of((SUBSCRIPTIONS, DEFINITIONS), objects, **known)
    if expected is None:
        with pytest.raises(Unreadable, match=r"subscriptions\.operators\.coreos\.com"):
            found.all_or_none(Subscription)
    else:
        assert found.all_or_none(Subscription) == expected


def test_a_built_in_kind_is_never_called_absent() -> None:
    """No definition could show whether a dump left it out."""
    found = snapshot_of((ATTACHMENTS, DEFINITIONS), (), **LACKING)
    assert found.absent == frozenset()
    with pytest.raises(Unreadable):
        found.all_or_none(VolumeAttachment)


def test_a_definition_that_could_not_be_read_may_be_the_one() -> None:
    """Its name is all that is known about it."""
    broken = {**definition("x", "y"), "spec": {"names": "none"}}
    with pytest.raises(Unreadable):
        snapshot_of((SUBSCRIPTIONS, DEFINITIONS), (broken,), **LACKING).all_or_none(Subscription)


def test_a_snapshot_that_nobody_made_absent_is_as_before() -> None:
    """Nothing was asked about definitions."""
    assert Snapshot(objects={SUBSCRIPTIONS: ()}).all_or_none(Subscription) == ()


def test_of_a_release_only_what_is_judged_by_is_kept(tmp_path: Path) -> None:
    """Definitions without their schemas, for the clusters that get them; what cannot be parsed is not nothing."""
    folder = tmp_path / "release-manifests"
    folder.mkdir()
    assert load_release(tmp_path).manifests is None

    (folder / "a.json").write_text(json.dumps(definition("routes", "route.openshift.io")))
    (folder / "b.json").write_text(json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}))
    found = load_release(tmp_path).manifests
    assert found is not None
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t", "annotations": {"a": "b"}}}
    (folder / "b.json").write_text(json.dumps(secret))
    objects = load_release(tmp_path).objects
    assert objects is not None
    assert [each["metadata"]["name"] for each in objects.for_cluster(Filters()).objects()] == ["t"]
    (route,) = target_manifests.objects_for_cluster(found, FILTERS)
    assert route["spec"]["versions"] == [{"name": "v1"}]
    gates = [config_map_json(name, "openshift-config-managed") for name in ("admin-gates", "a-map", "z-map")]
    (folder / "d.json").write_text("\n---\n".join(map(json.dumps, gates)))
    bare = definition("bare", "route.openshift.io")
    (folder / "e.json").write_text(json.dumps({**bare, "spec": {"group": "route.openshift.io"}}))
    kept = {each.identity.name: each.object for each in load_release(tmp_path).manifests or ()}
    assert list(kept) == ["routes.route.openshift.io", "admin-gates", "bare.route.openshift.io"]
    assert kept["bare.route.openshift.io"]["spec"] == {"group": "route.openshift.io"}
    (folder / "c.yaml").write_text("kind: CustomResourceDefinition\nmetadata: [")
    assert load_release(tmp_path).manifests is None
