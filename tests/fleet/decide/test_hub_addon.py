"""The add-on for a hub: what each cluster gets, what of it travels, and what stays when it goes."""

from __future__ import annotations

from typing import Any

import pytest

from runup.checks.catalogue.own_rights import own_rights
from runup.fleet.decide.hub_addon import AddOn, Platform, objects
from runup.preflight.decide import newest_report
from runup.preflight.decide.cluster_run import NAMESPACE, Checking

JSON = dict[str, Any]


def addon(platform: Platform = "openshift") -> AddOn:
    """An add-on of two placements."""
    checking = Checking("quay.io/example/runup@sha256:0", target_channel="latest")
    return AddOn(platform, "24h", "2 10 * * *", checking, own_rights(), (("fleet", "canary"), ("fleet", "main")))


def manifests(platform: Platform = "openshift") -> list[JSON]:
    """What a cluster gets."""
    found: list[JSON] = objects(addon(platform))[0]["spec"]["agentSpec"]["workload"]["manifests"]
    return found


def of_kind(kind: str, platform: Platform = "openshift") -> list[JSON]:
    """The objects of a kind that a cluster gets."""
    return [each for each in manifests(platform) if each["kind"] == kind]


def test_nothing_but_reports_travels() -> None:
    """Two values of one ConfigMap, and the agent overwrites none of those that Jobs write."""
    configs = objects(addon())[0]["spec"]["agentSpec"]["manifestConfigs"]
    paths = [path for each in configs for rule in each.get("feedbackRules", ()) for path in rule["jsonPaths"]]
    assert paths == [
        {"name": "summary", "path": ".data.summary"},
        {"name": "report", "path": ".binaryData.report"},
    ]
    written = {each["resourceIdentifier"]["name"] for each in configs}
    assert written == {each["metadata"]["name"] for each in of_kind("ConfigMap")}
    assert {each["updateStrategy"]["type"] for each in configs} == {"CreateOnly"}


def test_the_account_writes_its_reports_and_nothing_else() -> None:
    """What is more than reading is for ConfigMaps by name, in its own namespace; it makes none."""
    writing = [
        (each["metadata"].get("namespace", ""), rule)
        for each in (*of_kind("Role"), *of_kind("ClusterRole"))
        for rule in each["rules"]
        if not set(rule["verbs"]) <= {"get", "list", "watch"}
    ]
    assert writing == [
        (
            NAMESPACE,
            {
                "apiGroups": [""],
                "resources": ["configmaps"],
                "resourceNames": ["preflight-history", "preflight-reports", newest_report.NAME],
                "verbs": ["get", "patch"],
            },
        )
    ]


def test_what_stays_in_a_cluster() -> None:
    """The reports, and the namespace that they are in."""
    orphaned = "addon.open-cluster-management.io/deletion-orphan"
    stays = {each["metadata"]["name"] for each in manifests() if orphaned in each["metadata"].get("annotations", {})}
    assert stays == {"runup-preflight", "preflight-history", "preflight-reports"}


def test_the_cron_job_knows_its_cluster_and_that_its_report_travels() -> None:
    """The hub puts in the name; every other text with braces would be replaced, too."""
    (cron,) = of_kind("CronJob")
    (container,) = cron["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    env = {each["name"]: each.get("value") for each in container["env"]}
    assert (env["PREFLIGHT_CLUSTER"], env["PREFLIGHT_NEWEST"]) == ("{{CLUSTER_NAME}}", "true")
    assert str(manifests()).count("{{") == 1
    assert cron["metadata"]["annotations"]["preflight.runup.dev/every"] == "24h"


@pytest.mark.parametrize(
    ("platform", "name", "namespaces", "user"),
    [
        pytest.param(
            "openshift",
            "runup-preflight",
            {NAMESPACE, "openshift-config", "openshift-config-managed"},
            None,
            id="OpenShift assigns the user",
        ),
        pytest.param(
            "kubernetes",
            "runup-preflight-kubernetes",
            {NAMESPACE},
            65534,
            id="other clusters lack OpenShift's namespaces",
        ),
    ],
)
def test_each_kind_of_cluster(platform: Platform, name: str, namespaces: set[str], user: int | None) -> None:
    """A Role where there is no namespace would never be applied."""
    template, managed = objects(addon(platform))
    assert {each["metadata"]["namespace"] for each in of_kind("Role", platform)} == namespaces
    (cron,) = of_kind("CronJob", platform)
    security = cron["spec"]["jobTemplate"]["spec"]["template"]["spec"]["securityContext"]
    assert security.get("runAsUser") == user
    assert template["metadata"]["name"] == template["spec"]["addonName"] == managed["metadata"]["name"] == name
    assert managed["spec"]["supportedConfigs"][0]["defaultConfig"] == {"name": name}


def test_the_placements() -> None:
    """All that were named."""
    strategy = objects(addon())[1]["spec"]["installStrategy"]
    assert strategy["type"] == "Placements"
    assert [(each["namespace"], each["name"]) for each in strategy["placements"]] == [
        ("fleet", "canary"),
        ("fleet", "main"),
    ]
