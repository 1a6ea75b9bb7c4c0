"""Where a preflight runs and with what rights, seen from ClusterVersion's reconcile.

Source: docs/decisions/0072 D8, D9, D25.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as with_fields
from tests.clusterversion.decide.test_preflight import started
from tests.clusterversion.decide.world import World, image, risk

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import ObjectMeta
from kubekit.api.whole_v1 import WholeNode, WholePod
from kubesandbox.controllers.scheduler import why_not
from runup.clusterversion.decide.work import ReadRights, VerifyRelease
from runup.preflight.decide import preflight_deployment, preflight_settings, service_account
from runup.preflight.decide.preflight_deployment import NAME, SETTINGS_MAP, Quantities
from runup.process.plan import Apply
from runup.report import documentation

NAMESPACE = "openshift-cluster-version-operator"
ACCOUNT = [
    "apply ServiceAccount",
    "apply ClusterRole",
    "apply ClusterRoleBinding",
    "apply Role",
    "apply RoleBinding",
    "apply Role",
    "apply RoleBinding",
]


def pod_spec(world: World) -> dict[str, Any]:
    """The pod that the Deployment makes."""
    found: dict[str, Any] = world.applied["spec"]["template"]["spec"]
    return found


def container(world: World) -> dict[str, Any]:
    """Its only container."""
    found: dict[str, Any] = pod_spec(world)["containers"][0]
    return found


def set_to(world: World, **data: str) -> World:
    """An administrator's ConfigMap, as the shell observes it."""
    defaults = World.new().observed.facts.place
    found = preflight_settings.read(ConfigMap(metadata=ObjectMeta(name=SETTINGS_MAP), data=data), defaults)
    facts = replace(world.observed.facts, place=found.pods)
    return world.change(facts=facts, unusable=found.unusable)


def here(node: str) -> list[dict[str, Any]]:
    """Node selector terms that one node alone fits."""
    return [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]


def terms(world: World) -> Any:
    """The node selector terms of the pod."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return pod_spec(world)["affinity"]["nodeAffinity"][required]["nodeSelectorTerms"]


def test_the_deployment_is_as_harmless_as_it_can_be() -> None:
    """Placed by the scheduler, read-only, unprivileged, small, its own folder of the node.

    Source: docs/decisions/0072 D8 and D9.
    """
    world = started()
    security = container(world)["securityContext"]
    folder = f"/etc/cvo/preflight/{world.attempt_id}"
    assert "nodeName" not in pod_spec(world)
    assert terms(world) == here("node-1")
    assert pod_spec(world)["priorityClassName"] == "system-cluster-critical"
    assert pod_spec(world)["tolerations"] == [{"operator": "Exists"}]
    assert pod_spec(world)["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
    annotations = world.applied["spec"]["template"]["metadata"]["annotations"]
    assert annotations["target.workload.openshift.io/management"] == '{"effect": "PreferredDuringScheduling"}'
    assert annotations["openshift.io/required-scc"] == "privileged"
    assert world.applied["spec"]["strategy"] == {"type": "Recreate"}
    assert container(world)["image"] == image("5.2.0")
    assert container(world)["args"] == ["preflight", "--format=preflight-v1-json"]
    assert set(container(world)["resources"]) == {"requests", "limits"}
    assert security["readOnlyRootFilesystem"] and not security["allowPrivilegeEscalation"]
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert [v.get("hostPath", {}).get("path") for v in pod_spec(world)["volumes"]] == [None, folder]
    assert [m["mountPath"] for m in container(world)["volumeMounts"]] == ["/tmp", folder]
    assert world.applied["metadata"]["labels"] == {"app": NAME, "preflight-target": "5.2.0"}


def test_where_no_folder_of_the_node_is_needed_nobody_is_root() -> None:
    """With the ConfigMap sink: no hostPath, no root, no SELinux type of its own, narrower constraints."""
    world = started(report_sink="configmap")
    assert [set(volume) - {"name"} for volume in pod_spec(world)["volumes"]] == [{"emptyDir"}]
    security = container(world)["securityContext"]
    assert security["runAsNonRoot"] is True and security["runAsUser"] > 0
    assert "seLinuxOptions" not in security
    annotations = world.applied["spec"]["template"]["metadata"]["annotations"]
    assert annotations["openshift.io/required-scc"] == "nonroot-v2"
    assert terms(world) == here("node-1")


def test_the_deployment_follows_the_operator_to_another_node() -> None:
    """The report's folder is on the operator's node."""
    world = started()
    facts = world.observed.facts
    world.change(facts=replace(facts, place=with_fields(facts.place, node_name="node-2"))).settle()
    assert terms(world) == here("node-2")


AFFINITY = """
nodeAffinity:
  requiredDuringSchedulingIgnoredDuringExecution:
    nodeSelectorTerms:
    - matchExpressions: [{key: disk, operator: In, values: [ssd]}]
    - matchExpressions: [{key: spare, operator: Exists}]
"""


def test_an_administrators_affinity_narrows_the_operators_node() -> None:
    """Each alternative names the node too; where the report is no file of it, the administrator alone decides."""
    world = set_to(started(), affinity=AFFINITY).settle()
    assert [set(term) for term in terms(world)] == [{"matchExpressions", "matchFields"}] * 2
    assert [term["matchFields"] for term in terms(world)] == [here("node-1")[0]["matchFields"]] * 2
    set_to(world, affinity=AFFINITY, reportSink="configmap").settle()
    assert [set(term) for term in terms(world)] == [{"matchExpressions"}] * 2


def test_a_setting_takes_effect_without_a_new_command() -> None:
    """The same attempt continues with another Deployment; the result that was found stays."""
    world = started().report(risk("Kept")).settle()
    before = world.attempt_id
    set_to(world, memoryLimit="1Gi", tolerations="[]", priorityClassName="").settle()
    assert world.attempt_id == before
    assert container(world)["resources"]["limits"] == {"cpu": "900m", "memory": "1Gi"}
    assert pod_spec(world)["tolerations"] == []
    assert "priorityClassName" not in pod_spec(world)
    assert "Kept" in world.risks("5.2.0")
    assert world.condition(preflight_settings.CONDITION) is None


def test_the_time_limit_is_the_one_that_is_set_now() -> None:
    """Lengthened while it waits, the preflight continues; shortened, it ends."""
    world = set_to(started(), timeout="1h").pass_time(3599).settle()
    assert world.observed.deployment is not None
    set_to(world, timeout="10m").settle()
    assert world.condition("PreflightFailed") == ("True", "DeadlineExceeded")


def test_a_bad_setting_is_named_and_its_default_used_until_it_is_mended() -> None:
    """The condition has the key, the value and why; it goes when the ConfigMap is fixed."""
    world = set_to(started(), memoryLimit="a lot", cpuLimit="1").settle()
    assert world.condition(preflight_settings.CONDITION) == ("True", preflight_settings.REASON)
    assert f"ConfigMap {NAMESPACE}/{SETTINGS_MAP}: memoryLimit 'a lot' is not a quantity" in world.message(
        preflight_settings.CONDITION
    )
    assert container(world)["resources"]["limits"] == {"cpu": "1", "memory": "512Mi"}
    set_to(world).settle()
    assert world.condition(preflight_settings.CONDITION) is None


def test_links_lead_to_an_administrators_copy_of_the_documentation() -> None:
    """Those to our own pages do; a component's own link stays."""
    world = set_to(started(), documentationBase="https://mirror.example/runup/").settle()
    world.report(risk("Ours-one", url=""), risk("Theirs", url="https://example.com/theirs")).settle()
    urls = {r.name: r.url for r in world.version.status.conditional_update_risks}
    assert urls["Ours-one"] == "https://mirror.example/runup/checks/Ours"
    assert urls["Theirs"] == "https://example.com/theirs"
    assert urls["UpdatePathNotOffered"] == "https://mirror.example/runup/checks/UpdatePathNotOffered"


LINKS = {
    "nobody says: the placeholder": ("", "", "", "https://docs.runup.example"),
    "the running release": ("https://own.example/docs", "", "", "https://own.example/docs"),
    "the target": ("https://own.example/docs", "https://target.example/docs", "", "https://target.example/docs"),
    "the administrator, over both": (
        "https://own.example/docs",
        "https://target.example/docs",
        "https://copy.example",
        "https://copy.example",
    ),
}


@pytest.mark.parametrize("name", LINKS)
def test_whose_documentation_a_link_leads_to(name: str) -> None:
    """A target's link, written out or left out, leads to its release's pages; a copy of an administrator's counts most.

    What represents the operator's own words leads to the running release's pages.
    """
    own, target, copy, expected = LINKS[name]
    world = World.new()
    world.observed = replace(world.observed, facts=replace(world.observed.facts, documentation_base=own))
    world.settle().ask_preflight().settle()
    if copy:
        set_to(world, documentationBase=copy).settle()
    written = f"{target or documentation.BUILT_IN}/checks/Written"
    world.report(
        risk("Written-one", url=written),
        risk("Left", url=""),
        risk("Theirs", url="https://example.com/checks/Theirs"),
        documentation_base=target,
    ).settle()
    urls = {r.name: r.url for r in world.version.status.conditional_update_risks}
    assert urls["Written-one"] == f"{expected}/checks/Written"
    assert urls["Left"] == f"{expected}/checks/Left"
    assert urls["Theirs"] == "https://example.com/checks/Theirs"
    assert urls["UpdatePathNotOffered"].startswith(f"{copy or own or documentation.BUILT_IN}/checks/")


def rules(world: World, kind: str, namespace: str = "") -> list[dict[str, Any]]:
    """The rules of the role of that kind and namespace that was applied last."""
    found = [
        action.object["rules"]
        for plan in world.plans
        for action in plan.actions
        if isinstance(action, Apply)
        and action.resource.kind == kind
        and action.object["metadata"].get("namespace", "") == namespace
    ]
    assert found, f"no {kind} in {namespace!r}"
    last: list[dict[str, Any]] = found[-1]
    return last


READ = ["get", "list", "watch"]


def test_a_dedicated_account_reads_what_the_targets_checks_declare() -> None:
    """Looked up in the image before anything is started; for a namespace where a check reads one alone."""
    world = started(service_account="dedicated")
    assert world.ran.index(VerifyRelease) < world.ran.index(ReadRights)
    assert [entry for entry in world.log if entry.startswith("apply")][-8:] == [*ACCOUNT, "apply Deployment"]
    assert rules(world, "ClusterRole") == [{"apiGroups": [""], "resources": ["nodes"], "verbs": READ}]
    elsewhere = [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": READ}]
    assert rules(world, "Role", "openshift-etcd") == elsewhere
    own, pods, logs = rules(world, "Role", NAMESPACE)
    assert pods == {"apiGroups": [""], "resources": ["pods"], "verbs": READ}
    assert (logs["resources"], logs["verbs"]) == (["pods/log"], ["get"])
    # Container checks' alone, not the operator's.
    assert all(name.startswith(f"{NAME}-check-") for name in logs["resourceNames"])
    assert (own["resources"], own["resourceNames"], own["verbs"]) == (
        ["securitycontextconstraints"],
        ["privileged"],
        ["use"],
    )


def test_rights_that_could_not_be_looked_up_are_looked_up_again_at_the_next_start() -> None:
    """A registry that was away for a moment does not leave a release without its rights for weeks."""
    world = started(service_account="dedicated")
    checks = world.observed.releases
    fallback = {image: replace(check, rights=(), rights_until=world.now) for image, check in checks.items()}
    world.change(releases=fallback).ask(None).settle()
    before = world.ran.count(ReadRights)
    world.rights = (service_account.Right("apps", "deployments"),)
    world.pass_time(60).ask_preflight().step()
    assert world.ran.count(ReadRights) == before + 1


def test_a_dedicated_account_writes_its_own_report_where_that_is_a_config_map() -> None:
    """And nothing else; the constraints that it may use are the narrower ones."""
    world = started(service_account="dedicated", report_sink="configmap")
    use, report, *_ = rules(world, "Role", NAMESPACE)
    assert use["resourceNames"] == ["nonroot-v2"]
    assert report["resourceNames"] == [preflight_deployment.report_map(world.attempt_id)]
    assert (report["resources"], report["verbs"]) == (["configmaps"], ["get", "create", "patch"])


def test_nothing_of_a_dedicated_account_is_left_behind() -> None:
    """Rights go before the account, those in other namespaces included, and the Deployment last."""
    world = started(service_account="dedicated")
    world.log.clear()
    world.ask(None).settle()
    gone = [entry for entry in world.log if entry.startswith("delete")]
    expected = [entry.replace("apply", "delete") for entry in reversed(ACCOUNT)]
    assert gone == [*expected, "delete Deployment"]


def test_an_account_that_is_no_longer_used_goes_while_the_preflight_runs() -> None:
    """Back to the operator's account: the Deployment first, then what the other one had."""
    world = started(service_account="dedicated")
    world.log.clear()
    set_to(world).settle()
    assert pod_spec(world)["serviceAccountName"] == "cluster-version-operator"
    assert world.log.index("apply Deployment") < world.log.index("delete ClusterRole") < len(world.log)


def test_a_running_preflight_gets_a_dedicated_account_when_one_is_set() -> None:
    """Its rights are looked up first."""
    world = set_to(started(), serviceAccount="dedicated").settle()
    assert ReadRights in world.ran
    assert pod_spec(world)["serviceAccountName"] == NAME


def forced() -> World:
    """A target that nobody signed, started by force."""
    world = World.new()
    world.trusted = False
    return world.settle().ask_preflight("5.0.3", force=True).settle()


def test_a_target_whose_signature_was_waived_never_gets_the_operators_account() -> None:
    """Whatever the settings say; also when `force` is taken away, a setting changes or the operator starts again."""
    world = forced()
    assert pod_spec(world)["serviceAccountName"] == NAME
    world.ask_preflight("5.0.3").settle()
    set_to(world, memoryLimit="1Gi").settle()
    assert container(world)["resources"]["limits"]["memory"] == "1Gi"
    assert pod_spec(world)["serviceAccountName"] == NAME
    world.change(releases={})
    set_to(world, memoryLimit="2Gi", serviceAccount="operator").settle()
    assert pod_spec(world)["serviceAccountName"] == NAME


@pytest.mark.parametrize("force", [True, False], ids=["with force beside it", "without force"])
def test_a_verified_target_gets_the_account_that_is_set(force: bool) -> None:
    """A release that was verified before the request was forced stays verified."""
    world = World.new().settle().ask_preflight("5.0.3").settle()
    world.ask(None).settle().ask_preflight("5.0.3", force=force).settle()
    assert pod_spec(world)["serviceAccountName"] == "cluster-version-operator"


def test_a_report_of_a_deployment_that_is_out_of_sight_is_not_removed() -> None:
    """A watch may bring the report before the Deployment that was made just now."""
    world = started(service_account="dedicated", report_sink="configmap")
    own = preflight_deployment.report_map(world.attempt_id)
    world.change(report_maps=(own, "preflight-report-preflight-1-0000000000"), deployment=None).step()
    assert world.observed.report_maps == (own,)


NODES: list[Any] = [
    pytest.param("node-1", {}, True, id="the operator's node"),
    pytest.param("node-1", {"unschedulable": True}, True, id="the operator's node, cordoned"),
    pytest.param(
        "node-1",
        {"taints": [{"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}]},
        True,
        id="a control plane node",
    ),
    pytest.param(
        "node-1",
        {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]},
        True,
        id="the only node of a cluster, while it is not ready",
    ),
    pytest.param("node-2", {}, False, id="another node"),
]


@pytest.mark.parametrize(("name", "spec", "fits"), NODES)
def test_the_scheduler_has_one_node_to_choose(name: str, spec: dict[str, Any], fits: bool) -> None:
    """The pod as it is made, by the scheduler's own rules."""
    node = WholeNode(metadata=ObjectMeta(name=name), spec=spec)
    assert (why_not(WholePod(spec=pod_spec(started())), node) == "") is fits


def test_the_target_is_told_whom_to_ask_for_metrics() -> None:
    """The operator's own Prometheus, and the authorities that it knows it by; nothing where it does not exist."""

    def env(world: World) -> dict[str, str]:
        found = {item["name"]: item["value"] for item in container(world)["env"]}
        return {name: value for name, value in found.items() if "PROMETHEUS" in name}

    assert env(started()) == {}
    shown = started(prometheus_url="https://thanos.example:9091", prometheus_ca="-----BEGIN")
    assert env(shown) == {
        "PREFLIGHT_PROMETHEUS_URL": "https://thanos.example:9091",
        "PREFLIGHT_PROMETHEUS_CA": "-----BEGIN",
    }
    assert env(started(prometheus_url="https://thanos.example", prometheus_hosted=True)) == {
        "PREFLIGHT_PROMETHEUS_URL": "https://thanos.example",
        "PREFLIGHT_PROMETHEUS_HOSTED": "true",
    }


def test_the_target_is_told_which_registries_speak_plain_http() -> None:
    """Those of the operator's own flag, as `preflight --plain-http` reads them; nothing where they do not exist."""

    def env(world: World) -> dict[str, str]:
        return {item["name"]: item["value"] for item in container(world)["env"] if "PLAIN" in item["name"]}

    assert env(started()) == {}
    assert env(started(plain_http_registries=("a:1", "b:2"))) == {"PREFLIGHT_PLAIN_HTTP": "a:1 b:2"}


REHEARSALS = {
    "half a gigabyte": ("512Mi", "352"),
    "a gigabyte": ("1Gi", "864"),
    "less than the checks take": ("100Mi", "64"),
    "no quantity": ("much", "64"),
}


@pytest.mark.parametrize(("memory", "expected"), REHEARSALS.values(), ids=REHEARSALS)
def test_the_target_is_told_what_a_rehearsal_may_take(memory: str, expected: str) -> None:
    """Half of the time, and the memory that the checks leave; nothing where none is asked for."""
    quantities = Quantities(memory_limit=memory)
    env = {item["name"]: item["value"] for item in container(started(rehearses=True, quantities=quantities))["env"]}
    assert {name: value for name, value in env.items() if "REHEARSE" in name} == {
        "PREFLIGHT_REHEARSE": "true",
        "PREFLIGHT_REHEARSE_SECONDS": "300",
        "PREFLIGHT_REHEARSE_MEMORY_MIB": expected,
    }
    assert not any("REHEARSE" in item["name"] for item in container(started())["env"])


def test_the_target_is_told_the_profile_of_its_operator() -> None:
    """It chooses among manifests and checks as its operator will; the default profile needs no setting."""
    env = {item["name"]: item["value"] for item in container(started(profile="kubernetes"))["env"]}
    assert env["CLUSTER_PROFILE"] == "kubernetes"
    assert "CLUSTER_PROFILE" not in {item["name"] for item in container(started())["env"]}


def test_one_pod_alone_writes_the_report() -> None:
    """Two would write to one file, and a new one waits until the old one has ended."""
    spec = started("5.2.0").applied["spec"]
    assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
