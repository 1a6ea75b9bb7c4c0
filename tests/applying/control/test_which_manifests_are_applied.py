"""docs/reference/upstream.md 2 at work: what the cluster says about feature set, gates, capabilities and overrides
decides, at any time.

No change costs a restart: the next decision is made with what is known now (docs/decisions/0046).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.applying.control.applied_world import CONFIG_MAPS, completed, eventually, exists, message, there
from tests.applying.control.release_folders import (
    NAMESPACE,
    PROFILE,
    Folders,
    config_map,
    definition,
    namespace,
    write_release,
)
from tests.operator.operator_world import CRDS, NAMESPACES, Cluster, cluster, running

from kubekit.api.scheme import Resource
from kubekit.kube import calls

GATES = Resource(group="config.openshift.io", version="v1", kind="FeatureGate", plural="featuregates", namespaced=False)
SET, GATE, CAPABILITY = (
    "release.openshift.io/feature-set",
    "release.openshift.io/feature-gate",
    "capability.openshift.io/name",
)
# Nobody offers it, and nobody has signed it: it is asked for by its image, and forced.
NEXT = "registry.example/release@sha256:" + "66" * 32
MAJOR = "release.openshift.io/major-version"


def release(tmp_path: Path, **annotations: dict[str, str]) -> Path:
    """A release with a ConfigMap for each keyword, annotated so, and one that everybody gets."""
    maps = [config_map(name.replace("_", "-"), {"a": "b"}, annotations=value) for name, value in annotations.items()]
    files = {
        "manifests/0000_00_cvo_00_namespace.yaml": [namespace()],
        "release-manifests/0000_20_a_01_maps.yaml": [*maps, config_map("everybody", {"a": "b"})],
    }
    return write_release(tmp_path / "release", "5.0.0", files)


async def gates(world: Cluster, *enabled: str, feature_set: str = "") -> None:
    """What the cluster's FeatureGate says from now on."""
    entry = {"version": "5.0.0", "enabled": [{"name": name} for name in enabled], "disabled": []}
    await world.client.send(calls.merge_patch(GATES, "cluster", {"spec": {"featureSet": feature_set}}))
    status = {"status": {"featureGates": [entry]}}
    await world.client.send(calls.merge_patch(GATES, "cluster", status, subresource="status"))


async def names(world: Cluster) -> set[str]:
    """The release's ConfigMaps that are there."""
    page = await world.client.send(
        calls.list_raw(CONFIG_MAPS, NAMESPACE, label_selector="release.openshift.io/manifest")
    )
    return {item["metadata"]["name"] for item in page.items}


@pytest.mark.parametrize(
    ("feature_set", "enabled", "manifests", "applied"),
    [
        pytest.param(
            "",
            (),
            {
                "tech-preview": {SET: "TechPreviewNoUpgrade"},
                "default-which-the-api-writes-as-nothing": {SET: "Default"},
                "a-set-of-the-list-was-given-up": {SET: "Default,LatencySensitive"},
                "one-of-two-sets": {SET: "Default,OKD"},
                "a-gate-that-is-closed": {GATE: "New"},
                "while-a-gate-is-closed": {GATE: "-New"},
            },
            {"default-which-the-api-writes-as-nothing", "one-of-two-sets", "while-a-gate-is-closed"},
            id="a default cluster",
        ),
        pytest.param(
            "TechPreviewNoUpgrade",
            (),
            {"tech-preview": {SET: "TechPreviewNoUpgrade"}, "default": {SET: "Default"}},
            {"tech-preview"},
            id="tech preview",
        ),
        pytest.param(
            "",
            ("New",),
            {"a-gate-that-is-open": {GATE: "New"}, "not-while-a-gate-is-open": {GATE: "-New"}},
            {"a-gate-that-is-open"},
            id="an open gate",
        ),
    ],
)
async def test_a_manifest_is_applied_where_it_belongs(
    tmp_path: Path,
    feature_set: str,
    enabled: tuple[str, ...],
    manifests: dict[str, dict[str, str]],
    applied: set[str],
) -> None:
    """On a cluster that says so from the start."""
    folder = release(tmp_path, **manifests)
    async with cluster(tmp_path / "world", times=5) as (world, make):
        await gates(world, *enabled, feature_set=feature_set)
        async with running(make(applies=True, payload=folder)):
            await world.until(completed("5.0.0"))
            assert await names(world) == {"everybody", *applied}


async def test_a_release_may_hold_nothing_for_this_cluster(tmp_path: Path) -> None:
    """Then there is nothing to keep in place, and the operator continues listening: a gate opens."""
    folder = write_release(
        tmp_path / "release",
        "5.0.0",
        {"release-manifests/0000_20_a.yaml": [config_map("special", {"a": "b"}, annotations={GATE: "New"})]},
    )
    async with cluster(tmp_path / "world", times=5) as (world, make):
        await gates(world)
        async with running(make(applies=True, payload=folder)):
            await world.until(completed("5.0.0"))
            await world.client.send(calls.apply(NAMESPACES, {"metadata": {"name": NAMESPACE}}, field_manager="test"))
            await gates(world, "New")
            await eventually(lambda: _has(world, "special"), "the ConfigMap of the gate that opened")


async def test_none_is_assumed_while_the_feature_gate_cannot_be_read(tmp_path: Path) -> None:
    """Neither set nor gate; what is for the default set is for everybody who has said nothing."""
    wanted: dict[str, Any] = {"preview": {SET: "TechPreviewNoUpgrade"}, "gated": {GATE: "New"}}
    folder = release(tmp_path, **wanted)
    async with cluster(tmp_path / "world", times=5) as (world, make):
        await world.client.send(calls.delete(GATES, "cluster"))
        async with running(make(applies=True, payload=folder)):
            await world.until(completed("5.0.0"))
            assert await names(world) == {"everybody"}


async def test_a_change_of_the_feature_gate_counts_at_once(tmp_path: Path) -> None:
    """In mid-run and without a restart; what stops matching is left alone and no longer kept."""
    wanted: dict[str, Any] = {
        "preview": {SET: "TechPreviewNoUpgrade"},
        "gated": {GATE: "New"},
        "before": {GATE: "-New"},
    }
    folder = release(tmp_path, **wanted)
    async with cluster(tmp_path / "world", times=5) as (world, make):
        await gates(world)
        async with running(make(applies=True, payload=folder)):
            before = await world.until(completed("5.0.0"))
            assert await names(world) == {"everybody", "before"}
            await gates(world, "New", feature_set="TechPreviewNoUpgrade")
            await eventually(lambda: _has(world, "gated", "preview"), "what is admitted now is there")
            assert "before" in await names(world)
            changed = {"data": {"a": "mine"}}
            await world.client.send(calls.merge_patch(CONFIG_MAPS, "before", changed, NAMESPACE))
            await world.client.send(calls.merge_patch(CONFIG_MAPS, "everybody", changed, NAMESPACE))
            await eventually(lambda: _holds(world, "everybody", "b"), "what is kept is put back")
            assert (await exists(world, CONFIG_MAPS, "before", NAMESPACE))["data"] == {"a": "mine"}
            after = await world.until(lambda found: found.status.version_hash != before.status.version_hash)
            assert [entry.state for entry in after.status.history] == ["Completed"]


async def test_a_capability_that_was_on_stays_on(tmp_path: Path) -> None:
    """Turned on it is applied; turned off again it is kept, and the status says whose wish that is not."""
    folder = release(tmp_path, console={CAPABILITY: "Console"})
    async with cluster(tmp_path / "world", times=5) as (world, make):
        await world.patch_spec({"capabilities": {"baselineCapabilitySet": "None"}})
        async with running(make(applies=True, payload=folder)):
            found = await world.until(completed("5.0.0"))
            assert await names(world) == {"everybody"}
            assert found.status.capabilities.enabled_capabilities == ()
            await world.patch_spec({"capabilities": {"additionalEnabledCapabilities": ["Console"]}})
            await eventually(lambda: _has(world, "console"), "what belongs to the capability is there")
            await world.patch_spec({"capabilities": {"additionalEnabledCapabilities": []}})
            kept = await world.condition("ImplicitlyEnabledCapabilities", "True")
    assert kept.status.capabilities.enabled_capabilities == ("Console",)
    assert message(kept, "ImplicitlyEnabledCapabilities") == "The following capabilities could not be disabled: Console"


async def test_what_is_overridden_is_left_alone(tmp_path: Path) -> None:
    """From when the override is there until it goes; then it is as the release has it again."""
    folder = release(tmp_path, other={})
    override = {"kind": "ConfigMap", "group": "", "namespace": NAMESPACE, "name": "everybody", "unmanaged": True}
    async with (
        cluster(tmp_path / "world", times=5) as (world, make),
        running(make(applies=True, payload=folder)),
    ):
        await world.until(completed("5.0.0"))
        await world.patch_spec({"overrides": [override]})
        await world.condition("Upgradeable", "False", "ClusterVersionOverrides")

        async def stays() -> bool:
            """Changed, and still so after another object was put back, which comes later."""
            await world.client.send(calls.merge_patch(CONFIG_MAPS, "everybody", {"data": {"a": "mine"}}, NAMESPACE))
            await world.client.send(calls.merge_patch(CONFIG_MAPS, "other", {"data": {"a": "mine"}}, NAMESPACE))
            await eventually(lambda: _holds(world, "other", "b"), "the other one is put back")
            return await _holds(world, "everybody", "mine")

        await eventually(stays, "it stays as somebody has it")
        await world.patch_spec({"overrides": []})
        await eventually(lambda: _holds(world, "everybody", "b"), "it is the release's again")


# Of a release's own version 5.0.0: whether a definition with this annotation is applied.
MAJORS = {
    "5": True,
    "4,5": True,
    "4": False,
    "-5": False,
    "-4": True,
    "5,-5": False,
    "five": False,  # nobody can show which
}


async def test_a_definition_is_applied_for_its_major_versions(tmp_path: Path) -> None:
    """By the release's own version; a ConfigMap that names one is never applied."""
    plurals = {major: f"widget{number}s" for number, major in enumerate(MAJORS)}
    files = {
        "manifests/0000_00_cvo_00_namespace.yaml": [namespace()],
        "release-manifests/0000_20_a_01_maps.yaml": [
            *(config_map(plural, {}, annotations={MAJOR: major}) for major, plural in plurals.items()),
            config_map("everybody", {}),
            *(
                definition(plural[:-1].title(), plural) | {"metadata": _named(f"{plural}.example.org", major)}
                for major, plural in plurals.items()
            ),
        ],
    }
    folder = write_release(tmp_path / "release", "5.0.0", files)
    async with (
        cluster(tmp_path / "world", times=5) as (world, make),
        running(make(applies=True, payload=folder)),
    ):
        await world.until(completed("5.0.0"))
        assert await names(world) == {"everybody"}
        found = {
            major: await there(world, CRDS, f"{plural}.example.org") is not None for major, plural in plurals.items()
        }
        assert found == MAJORS


@pytest.mark.slow
async def test_an_update_to_another_major_version(tmp_path: Path) -> None:
    """Manifests for the new feature set are applied; those for the old one stay in the cluster, unmanaged."""

    def files(version: str) -> dict[str, list[dict[str, Any]]]:
        kinds = (("Old", "5"), ("New", "6"), ("Both", "5,6"))
        made = [
            definition(kind, f"{kind.lower()}s") | {"metadata": _named(f"{kind.lower()}s.example.org", major)}
            for kind, major in kinds
        ]
        return {"release-manifests/0000_20_a_01_x.yaml": [namespace(), *made, config_map("everybody", {"a": version})]}

    async with cluster(tmp_path / "world", times=5) as (world, make):
        folder = write_release(tmp_path / "world" / "payload", "5.0.0", files("5.0.0"))
        sources = Folders({NEXT: write_release(tmp_path / "target", "6.0.0", files("6.0.0"))})
        async with running(make(applies=True, payload=folder, payloads=sources)):
            await world.until(completed("5.0.0"))
            assert await there(world, CRDS, "news.example.org") is None
            await world.ask({"image": NEXT, "version": "6.0.0", "force": True})
            await world.until(completed("6.0.0"))
            assert await there(world, CRDS, "news.example.org") is not None
            changed = {"metadata": {"labels": {"release.openshift.io/manifest": "mine"}}}
            for name in ("olds", "boths"):
                await world.client.send(calls.merge_patch(CRDS, f"{name}.example.org", changed))
            await eventually(lambda: _is_kept(world, "boths.example.org"), "what is for both is put back")
            assert not await _is_kept(world, "olds.example.org")


def _named(name: str, major: str) -> dict[str, Any]:
    return {"name": name, "annotations": {PROFILE: "true", MAJOR: major}}


async def _is_kept(world: Cluster, name: str) -> bool:
    found = await exists(world, CRDS, name)
    return bool(found["metadata"]["labels"]["release.openshift.io/manifest"] != "mine")


async def _has(world: Cluster, *wanted: str) -> bool:
    return set(wanted) <= await names(world)


async def _holds(world: Cluster, name: str, value: str) -> bool:
    found = await there(world, CONFIG_MAPS, name, NAMESPACE)
    return found is not None and found["data"] == {"a": value}
