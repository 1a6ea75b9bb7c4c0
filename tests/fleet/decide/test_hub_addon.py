"""The add-on for a hub: what each cluster gets, what of it travels, and what stays when it goes."""

from __future__ import annotations

from typing import Any

import pytest

from runup.checks.catalogue.own_rights import own_rights
from runup.fleet.decide import newest_status
from runup.fleet.decide.hub_addon import AddOn, Platform, objects
from runup.preflight.decide import newest_report
from runup.preflight.decide.cluster_run import NAMESPACE, Checking

JSON = dict[str, Any]


def addon(platform: Platform = "openshift") -> AddOn:
    """An add-on of two placements."""
    checking = Checking(image="quay.io/example/runup@sha256:0", target_channel="latest")
    status = ("5m", "2-59/5 * * * *") if platform == "openshift" else ("", "")
    placements = (("fleet", "canary"), ("fleet", "main"))
    return AddOn(
        platform=platform,
        every="24h",
        cron="2 10 * * *",
        checking=checking,
        rights=own_rights(),
        placements=placements,
        status_every=status[0],
        status_cron=status[1],
    )


def manifests(platform: Platform = "openshift") -> list[JSON]:
    """What a cluster gets."""
    found: list[JSON] = objects(addon(platform))[0]["spec"]["agentSpec"]["workload"]["manifests"]
    return found


def of_kind(kind: str, platform: Platform = "openshift") -> list[JSON]:
    """The objects of a kind that a cluster gets."""
    return [each for each in manifests(platform) if each["kind"] == kind]


def cron_job(name: str, platform: Platform = "openshift") -> JSON:
    """The CronJob of this name."""
    (found,) = (each for each in of_kind("CronJob", platform) if each["metadata"]["name"] == name)
    return found


def test_nothing_but_reports_and_statuses_travels() -> None:
    """Two values each of two ConfigMaps, and the agent overwrites none of those that Jobs write."""
    configs = objects(addon())[0]["spec"]["agentSpec"]["manifestConfigs"]
    paths = [path for each in configs for rule in each.get("feedbackRules", ()) for path in rule["jsonPaths"]]
    assert paths == [
        {"name": "summary", "path": ".data.summary"},
        {"name": "report", "path": ".binaryData.report"},
        {"name": "summary", "path": ".data.summary"},
        {"name": "status", "path": ".binaryData.status"},
    ]
    written = {each["resourceIdentifier"]["name"] for each in configs}
    assert written == {each["metadata"]["name"] for each in of_kind("ConfigMap")}
    assert {each["updateStrategy"]["type"] for each in configs} == {"CreateOnly"}


def test_the_accounts_write_what_travels_and_nothing_else() -> None:
    """Rights beyond reading are for named ConfigMaps in the agents' namespace; they may not create any."""
    writing = [
        (each["metadata"]["name"], each["metadata"].get("namespace", ""), rule)
        for each in (*of_kind("Role"), *of_kind("ClusterRole"))
        for rule in each["rules"]
        if not set(rule["verbs"]) <= {"get", "list", "watch"}
    ]
    of_reports = ["preflight-history", "preflight-reports", newest_report.NAME]
    written = {"runup-preflight-scheduled": of_reports, "runup-status": [newest_status.NAME]}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch"]}
    assert writing == [(name, NAMESPACE, rule | {"resourceNames": names}) for name, names in written.items()]


def test_the_account_of_the_status_reads_no_secret() -> None:
    """It reads what `upgrade status` and `recommend` do, and the alerts by the role that OpenShift has for it."""
    (role,) = (each for each in of_kind("ClusterRole") if each["metadata"]["name"] == "runup-status")
    assert {verb for rule in role["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert not {"secrets", "configmaps", "*"} & {name for rule in role["rules"] for name in rule["resources"]}
    bound = {
        each["roleRef"]["name"]
        for each in of_kind("ClusterRoleBinding")
        if each["subjects"] == [{"kind": "ServiceAccount", "name": "runup-status", "namespace": NAMESPACE}]
    }
    assert bound == {"runup-status", "cluster-monitoring-view"}


def test_the_job_of_the_status() -> None:
    """It runs the command of the same image, and is ended before the next one starts."""
    cron = cron_job("runup-status")
    (container,) = cron["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert (container["image"], container["args"]) == (addon().checking.image, ["report-status"])
    assert cron["metadata"]["annotations"] == {"preflight.runup.dev/every": "5m"}
    assert cron["spec"]["jobTemplate"]["spec"]["activeDeadlineSeconds"] < 5 * 60
    assert cron["spec"]["concurrencyPolicy"] == "Forbid"


def test_no_status_of_a_cluster_without_a_clusterversion() -> None:
    """Neither a CronJob nor an account, nor a value that travels."""
    assert "status-newest" not in str(objects(addon("kubernetes")))
    assert "runup-status" not in str(objects(addon("kubernetes")))


def test_what_stays_in_a_cluster() -> None:
    """The reports, and the namespace that they are in."""
    orphaned = "addon.open-cluster-management.io/deletion-orphan"
    stays = {each["metadata"]["name"] for each in manifests() if orphaned in each["metadata"].get("annotations", {})}
    assert stays == {"runup-preflight", "preflight-history", "preflight-reports"}


def test_the_cron_job_knows_its_cluster_and_that_its_report_travels() -> None:
    """The hub puts in the name; every other text with braces would be replaced, too."""
    cron = cron_job("runup-preflight-scheduled")
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
    cron = cron_job("runup-preflight-scheduled", platform)
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
