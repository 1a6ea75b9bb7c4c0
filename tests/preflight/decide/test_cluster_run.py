"""A run's objects: what its account may, what its pod may not, what is deleted, and that two runs share nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.factories import NOW

from runup.api.preflight_reads_v1 import Right
from runup.checks.catalogue.own_rights import own_rights
from runup.checks.decide.rights import FORBIDDEN
from runup.preflight.decide import cluster_run
from runup.preflight.decide.cluster_run import Checking, Run
from runup.preflight.decide.preflight_deployment import report_map
from runup.process.plan import Apply

JSON = dict[str, Any]
ID = "preflight-1768384800-0123456789"
IMAGE = "registry.example/runup@sha256:" + "1" * 64
NODES, HOSTS = Right("", "nodes"), Right("apps", "deployments", "shop")


def run(**changes: Any) -> Run:
    """A run of 5.2.0 that reads nodes, and Deployments of one namespace."""
    return replace(
        Run(id=ID, checking=Checking(image=IMAGE, target_version="5.2.0"), rights=(NODES, HOSTS), started=NOW),
        **changes,
    )


def of_kind(applies: tuple[Apply, ...], kind: str) -> list[JSON]:
    """The objects of a kind."""
    return [apply.object for apply in applies if apply.resource.kind == kind]


def pod_spec(of: Run) -> JSON:
    """The pod's spec."""
    (job,) = of_kind(cluster_run.objects(of), "Job")
    spec: JSON = job["spec"]["template"]["spec"]
    return spec


def test_the_account_reads_what_is_declared_and_writes_one_config_map() -> None:
    """Cluster-wide in a ClusterRole, of one namespace in a Role there, and no verb but these."""
    applies = cluster_run.objects(run())
    (role,) = of_kind(applies, "ClusterRole")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
    rules = {each["metadata"]["namespace"]: each["rules"] for each in of_kind(applies, "Role")}
    assert rules == {
        "runup-preflight": [
            {
                "apiGroups": [""],
                "resources": ["configmaps"],
                "resourceNames": [report_map(ID)],
                "verbs": ["get", "create", "patch"],
            }
        ],
        "shop": [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch"]}],
    }


def test_bindings_are_for_the_runs_own_account() -> None:
    """Each binds the role of its own kind and name."""
    applies = cluster_run.objects(run())
    bindings = of_kind(applies, "ClusterRoleBinding") + of_kind(applies, "RoleBinding")
    assert {binding["roleRef"]["name"] for binding in bindings} == {f"runup-{ID}"}
    account = {"kind": "ServiceAccount", "name": f"runup-{ID}", "namespace": "runup-preflight"}
    assert [binding["subjects"] for binding in bindings] == [[account]] * 3


def test_no_check_of_ours_reads_what_nobody_may() -> None:
    """Nor is there a wildcard in what the Job's account is given."""
    (role,) = of_kind(cluster_run.objects(run(rights=own_rights())), "ClusterRole")
    given = {(group, plural) for rule in role["rules"] for group in rule["apiGroups"] for plural in rule["resources"]}
    assert not given & FORBIDDEN
    assert not any("*" in (group, plural) or "/" in plural for group, plural in given)


def test_a_namespace_that_does_not_exist_is_no_error() -> None:
    """There is nothing to read in it; the run's own namespace has to be there."""
    lenient = {
        apply.object["metadata"].get("namespace") for apply in cluster_run.objects(run()) if apply.where_namespace
    }
    assert lenient == {"shop"}


def test_the_job_comes_last_and_goes_first() -> None:
    """It finds its rights, and loses them after its process; the account goes when nothing gives it rights."""
    applied = [apply.resource.kind for apply in cluster_run.objects(run())]
    deleted = [delete.resource.kind for delete in cluster_run.deletions(run())]
    assert applied[-1] == deleted[0] == "Job"
    assert deleted.index("ServiceAccount") > max(
        index for index, kind in enumerate(deleted) if kind in ("ClusterRoleBinding", "RoleBinding")
    )


def test_all_that_is_applied_is_deleted_and_the_jobs_report() -> None:
    """By name and namespace; the namespace itself stays, with the kept reports."""
    applied = {
        (apply.resource.kind, apply.object["metadata"].get("namespace", ""), apply.object["metadata"]["name"])
        for apply in cluster_run.objects(run())
    }
    deleted = {(each.resource.kind, each.key.namespace, each.key.name) for each in cluster_run.deletions(run())}
    assert deleted == applied | {("ConfigMap", "runup-preflight", report_map(ID))}


def test_two_runs_share_no_object() -> None:
    """So that the end of one takes nothing from the other."""
    other = run(id=cluster_run.run_id(NOW, "9876543210"))
    names = [{(each.resource.kind, each.key) for each in cluster_run.deletions(one)} for one in (run(), other)]
    assert not names[0] & names[1]


def test_the_pod_meets_the_restricted_standard() -> None:
    """As https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted has it."""
    spec = pod_spec(run())
    (container,) = spec["containers"]
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "runAsUser": 65534,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert [next(iter(volume.keys() - {"name"})) for volume in spec["volumes"]] == ["emptyDir"]


def test_the_pod_has_the_token_of_its_account() -> None:
    """Also where the ServiceAccount turns it off: the pod's field wins (core/v1, PodSpec)."""
    spec = pod_spec(run())
    assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == (f"runup-{ID}", True)


def test_where_the_cluster_assigns_users_none_is_named() -> None:
    """OpenShift's restricted-v2 refuses one outside of the namespace's range."""
    spec = pod_spec(run(checking=Checking(image=IMAGE, user=None)))
    assert "runAsUser" not in spec["securityContext"]
    assert spec["securityContext"]["runAsNonRoot"] is True


def test_the_job_is_tried_once_and_ends() -> None:
    """Only a pod that a drain ended is replaced. Its time is limited, and it uses itself if nobody removes it."""
    (job,) = of_kind(cluster_run.objects(run(timeout_s=90)), "Job")
    assert (job["spec"]["backoffLimit"], job["spec"]["activeDeadlineSeconds"]) == (0, 90)
    assert job["spec"]["ttlSecondsAfterFinished"] > 0
    evicted = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    assert job["spec"]["podFailurePolicy"] == {"rules": [evicted]}
    assert pod_spec(run())["restartPolicy"] == "Never"


def test_the_process_is_told_what_to_check() -> None:
    """What is empty is not told."""
    checking = Checking(
        image=IMAGE, target_version="5.2.0", source_version="5.0.0", inner_registries=("a:1", "b"), reads_catalogs=True
    )
    (container,) = pod_spec(run(checking=checking))["containers"]
    assert {each["name"]: each["value"] for each in container["env"]} == {
        "PREFLIGHT_ID": ID,
        "PREFLIGHT_REPORT_SINK": "configmap",
        "CVO_NAMESPACE": "runup-preflight",
        "PREFLIGHT_TARGET_VERSION": "5.2.0",
        "PREFLIGHT_SOURCE_VERSION": "5.0.0",
        "PAYLOAD_OVERRIDE": "/no-release",
        "PREFLIGHT_CATALOGS": "read",
        "PREFLIGHT_INNER_REGISTRIES": "a:1 b",
    }


def test_the_targets_own_image_has_its_release() -> None:
    """Its definitions are those that the update brings; those in our image are not."""
    (container,) = pod_spec(run(checking=Checking(image=IMAGE, target_version="5.2.0", target_image=IMAGE)))[
        "containers"
    ]
    assert "PAYLOAD_OVERRIDE" not in {each["name"] for each in container["env"]}


@pytest.mark.parametrize(
    ("annotations", "left_over"),
    [
        pytest.param(None, False, id="an object without annotations may be somebody's own"),
        pytest.param({"preflight.runup.dev/expires": "soon"}, False, id="what is no time proves nothing"),
        pytest.param({"preflight.runup.dev/expires": "2020-01-01T00:00:00"}, False, id="nor a time without a zone"),
        pytest.param({"preflight.runup.dev/expires": f"{NOW:%Y-%m-%dT%H:%M:%SZ}"}, False, id="not yet"),
        pytest.param({"preflight.runup.dev/expires": "2026-01-14T09:59:59Z"}, True, id="a second ago"),
    ],
)
def test_what_a_killed_command_left(annotations: JSON | None, *, left_over: bool) -> None:
    """Only what says so itself."""
    assert cluster_run.is_left_over({"annotations": annotations}, NOW) is left_over


def test_a_run_is_left_over_some_time_after_its_limit() -> None:
    """Not while its command may still read the report."""
    (job,) = of_kind(cluster_run.objects(run(timeout_s=600)), "Job")
    assert not cluster_run.is_left_over(job["metadata"], NOW + timedelta(seconds=600))
    assert cluster_run.is_left_over(job["metadata"], NOW + timedelta(hours=1))
