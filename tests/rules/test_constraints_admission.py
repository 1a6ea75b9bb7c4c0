"""The situations of openshift/apiserver-library-go: `sccadmission/admission_test.go`, `sccmatching/provider_test.go`
and `util/sort`."""

from __future__ import annotations

from typing import Any

import pytest

from kubekit.api import codec
from runup.api.platform_v1 import SecurityContextConstraints
from runup.rules.constraints_admission import admission_order, admits, parse_blocks, restriction_points

JSON = dict[str, Any]
NAMESPACE = {
    "openshift.io/sa.scc.uid-range": "1/3",
    "openshift.io/sa.scc.mcs": "s0:c1,c0",
    "openshift.io/sa.scc.supplemental-groups": "2/3",
}
EXACT: JSON = {
    "runAsUser": {"type": "MustRunAs", "uid": 999},
    "seLinuxContext": {"type": "MustRunAs", "seLinuxOptions": {"level": "s9:z0,z1"}},
    "fsGroup": {"type": "MustRunAs", "ranges": [{"min": 999, "max": 999}]},
    "supplementalGroups": {"type": "MustRunAs", "ranges": [{"min": 999, "max": 999}]},
}
OF_ACCOUNT: JSON = {
    "runAsUser": {"type": "MustRunAsRange"},
    **{key: {"type": "MustRunAs"} for key in ("seLinuxContext", "fsGroup", "supplementalGroups")},
}
ANY = {key: {"type": "RunAsAny"} for key in ("runAsUser", "seLinuxContext", "fsGroup", "supplementalGroups")}
LAX: JSON = {
    **{f"allow{what}": True for what in ("PrivilegedContainer", "HostNetwork", "HostPorts", "HostPID", "HostIPC")},
    **ANY,
}
FOO: JSON = {"capabilities": {"add": ["foo"]}}


def constraints(fields: JSON, name: str = "c", **others: Any) -> SecurityContextConstraints:
    """Constraints with these fields."""
    return codec.convert(SecurityContextConstraints, {"metadata": {"name": name}, **fields, **others})


def pod(container: JSON | None = None, *, annotations: JSON | None = None, ports: Any = (), **spec: Any) -> JSON:
    """A pod with one container that has a security context."""
    only = {"name": "container", "securityContext": container or {}, "ports": list(ports)}
    return {"metadata": {"annotations": annotations or {}}, "spec": {"containers": [only], **spec}}


def flex_volume(driver: str) -> JSON:
    """A pod with a volume of that FlexVolume driver."""
    return pod(volumes=[{"name": "v", "flexVolume": {"driver": driver}}])


def sysctl(name: str) -> JSON:
    """A pod that sets a kernel parameter."""
    return pod(securityContext={"sysctls": [{"name": name, "value": "1"}]})


BAR: JSON = {"allowedFlexVolumes": [{"driver": "example/foo"}, {"driver": "example/bar"}]}
LABEL = {"user": "user", "role": "role", "type": "type", "level": "level"}


@pytest.mark.parametrize("of_init", [False, True])
@pytest.mark.parametrize(
    ("asked", "fields", "expected"),
    [
        pytest.param(pod(FOO), {}, False, id="a capability that is not allowed"),
        pytest.param(pod(FOO), {"allowedCapabilities": ["foo"]}, True, id="an allowed capability"),
        pytest.param(pod(FOO), {"defaultAddCapabilities": ["foo"]}, True, id="a default capability"),
        pytest.param(pod(FOO), {"requiredDropCapabilities": ["foo"]}, False, id="a capability that must be dropped"),
        pytest.param(
            pod({"capabilities": {"drop": ["foo"]}}), {"requiredDropCapabilities": ["foo"]}, True, id="it is dropped"
        ),
        pytest.param(pod(), {"requiredDropCapabilities": ["foo"]}, True, id="the drop is set"),
        pytest.param(pod(FOO), {"allowedCapabilities": ["*"]}, True, id="all capabilities"),
    ],
)
def test_capabilities(asked: JSON, fields: JSON, expected: bool, of_init: bool) -> None:
    spec = asked["spec"]
    moved = {"initContainers": spec["containers"], "containers": []} if of_init else spec
    assert admits(constraints(EXACT, **fields), {**asked, "spec": moved}, NAMESPACE) is expected


REFUSED = [
    pytest.param(pod({"runAsUser": 1001}), id="a user out of range"),
    pytest.param(pod({"seLinuxOptions": {"level": "s1:q0,q1"}}), id="a label of others"),
    pytest.param(pod({"privileged": True}), id="privileged"),
    pytest.param(pod(hostNetwork=True), id="the node's network"),
    pytest.param(pod(ports=[{"hostPort": 1}]), id="a port of the node"),
    pytest.param(pod(hostPID=True), id="the node's processes"),
    pytest.param(pod(hostIPC=True), id="the node's IPC"),
    pytest.param(pod(securityContext={"supplementalGroups": [1]}), id="a group out of range"),
    pytest.param(pod(securityContext={"fsGroup": 1}), id="a group of files"),
    pytest.param(
        pod(securityContext={"seLinuxOptions": {"user": "u", "type": "t", "role": "r", "level": "l"}}),
        id="a label of the pod",
    ),
]


@pytest.mark.parametrize("asked", REFUSED)
def test_pods_that_only_lax_constraints_admit(asked: JSON) -> None:
    found = [admits(constraints(fields), asked, NAMESPACE) for fields in (EXACT, OF_ACCOUNT, LAX)]
    assert found == [False, False, True]


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(pod({"runAsUser": 3}), id="a user in range"),
        pytest.param(pod({"seLinuxOptions": {"level": "s0:c1,c0"}}), id="the namespace's label"),
        pytest.param(pod(securityContext={"fsGroup": 2}), id="the first group"),
        pytest.param(pod(securityContext={"supplementalGroups": [3]}), id="a group in range"),
        pytest.param(pod(securityContext={"seLinuxOptions": {"level": "s0:c0,c1"}}), id="the label of the pod"),
    ],
)
def test_pods_of_the_namespace_s_own_ranges(asked: JSON) -> None:
    assert [admits(constraints(fields), asked, NAMESPACE) for fields in (EXACT, OF_ACCOUNT)] == [False, True]


POD, CONTAINER = "seccomp.security.alpha.kubernetes.io/pod", "container.seccomp.security.alpha.kubernetes.io/container"


@pytest.mark.parametrize(
    ("asked", "profiles", "expected"),
    [
        pytest.param(pod(), [], True, id="nothing asked"),
        pytest.param(pod(annotations={POD: "foo", CONTAINER: "bar"}), [], False, id="asked, none allowed"),
        pytest.param(pod(), ["foo"], True, id="set"),
        pytest.param(pod(annotations={POD: "foo"}), ["foo"], True, id="of the pod"),
        pytest.param(pod(annotations={CONTAINER: "foo"}), ["foo"], True, id="of the container"),
        pytest.param(pod(annotations={POD: "foo", CONTAINER: "bar"}), ["foo"], False, id="another of the container"),
        pytest.param(pod(annotations={POD: "foo", CONTAINER: "bar"}), ["*"], True, id="any"),
        pytest.param(pod({"seccompProfile": {"type": "RuntimeDefault"}}), ["docker/default"], True, id="other name"),
        pytest.param(pod({"seccompProfile": {"type": "Unconfined"}}), ["runtime/default"], False, id="unconfined"),
    ],
)
def test_seccomp_profiles(asked: JSON, profiles: list[str], expected: bool) -> None:
    assert admits(constraints(EXACT, seccompProfiles=profiles), asked, NAMESPACE) is expected


@pytest.mark.parametrize(
    ("asked", "fields", "expected"),
    [
        pytest.param(pod({"readOnlyRootFilesystem": False}), {"readOnlyRootFilesystem": True}, False, id="it writes"),
        pytest.param(pod(), {"readOnlyRootFilesystem": True}, True, id="the root becomes read-only"),
        pytest.param(pod({"runAsUser": 0}), {"runAsUser": {"type": "MustRunAsNonRoot"}}, False, id="root"),
        pytest.param(pod({"runAsNonRoot": False}), {"runAsUser": {"type": "MustRunAsNonRoot"}}, False, id="maybe root"),
        pytest.param(pod(), {"runAsUser": {"type": "MustRunAsNonRoot"}}, True, id="root is not asked for"),
        pytest.param(
            pod({"allowPrivilegeEscalation": True}), {"allowPrivilegeEscalation": False}, False, id="escalation"
        ),
        pytest.param(pod(volumes=[{"name": "v", "hostPath": {}}]), {"volumes": ["secret"]}, False, id="volumes"),
        pytest.param(pod(volumes=[{"name": "v", "hostPath": {}}]), {"volumes": ["*"]}, True, id="all volumes"),
        pytest.param(pod(), {"volumes": ["emptyDir"]}, False, id="the account's token"),
        pytest.param(pod(automountServiceAccountToken=False), {"volumes": ["emptyDir"]}, True, id="without a token"),
        pytest.param(pod(hostUsers=True), {"userNamespaceLevel": "RequirePodLevel"}, False, id="the node's users"),
        pytest.param(
            pod(securityContext={"sysctls": [{"name": "kernel.msgmax"}]}), {}, False, id="a sysctl that is not safe"
        ),
        pytest.param(
            pod(securityContext={"sysctls": [{"name": "kernel.msgmax"}]}),
            {"allowedUnsafeSysctls": ["kernel.msg*"]},
            True,
            id="an allowed sysctl",
        ),
        pytest.param(pod(os={"name": "windows"}), {}, False, id="Windows"),
        pytest.param(pod(os={"name": "linux"}), {}, True, id="Linux"),
        pytest.param(flex_volume("example/bar"), {"volumes": ["*"], **BAR}, True, id="a driver of the list"),
        pytest.param(flex_volume("example/bar"), {"volumes": ["*"]}, True, id="a driver, without a list"),
        pytest.param(flex_volume("example/new"), {"volumes": ["*"], **BAR}, False, id="a driver that is not listed"),
        pytest.param(
            flex_volume("example/new"),
            {"volumes": ["flexVolume", "secret"], **BAR},
            False,
            id="it, among these volumes",
        ),
        pytest.param(sysctl("kernel.shm_rmid_forced"), {"forbiddenSysctls": ["*"]}, False, id="every sysctl forbidden"),
        pytest.param(
            sysctl("kernel.shm_rmid_forced"),
            {"forbiddenSysctls": ["kernel.shm_rmid_forced"]},
            False,
            id="a safe sysctl that is forbidden",
        ),
        pytest.param(sysctl("kernel.shm_rmid_forced"), {}, True, id="a safe sysctl"),
        pytest.param(sysctl("kernel.sem"), {"allowedUnsafeSysctls": []}, False, id="an unsafe sysctl, none allowed"),
        pytest.param(sysctl("kernel.sem"), {"allowedUnsafeSysctls": ["*"]}, True, id="an unsafe sysctl, all allowed"),
        pytest.param(
            pod(securityContext={"supplementalGroups": [3]}),
            {"supplementalGroups": {"type": "MustRunAs", "ranges": [{"min": 1, "max": 5}]}},
            True,
            id="a group in the range of the constraints",
        ),
        pytest.param(
            pod(securityContext={"fsGroup": 999}),
            {"fsGroup": {"type": "MustRunAs", "ranges": [{"min": 1, "max": 1}]}},
            False,
            id="a group of files out of their range",
        ),
        pytest.param(
            pod(securityContext={"seLinuxOptions": LABEL}),
            {"seLinuxContext": {"type": "MustRunAs", "seLinuxOptions": LABEL}},
            True,
            id="the whole label",
        ),
        pytest.param(
            pod({"seLinuxOptions": {**LABEL, "role": "other"}}),
            {"seLinuxContext": {"type": "MustRunAs", "seLinuxOptions": LABEL}},
            False,
            id="the label with another role",
        ),
        pytest.param(pod(annotations={POD: ""}), {"seccompProfiles": None}, True, id="an empty profile, none allowed"),
        pytest.param(pod({"readOnlyRootFilesystem": False}), {}, True, id="it writes, and may"),
        pytest.param(
            pod(securityContext={"runAsUser": 0}),
            {"runAsUser": {"type": "MustRunAsNonRoot"}},
            False,
            id="root, by the pod",
        ),
        pytest.param(
            pod(securityContext={"runAsUser": 0}),
            {"runAsUser": {"type": "MustRunAsRange", "uidRangeMin": 0, "uidRangeMax": 900}},
            True,
            id="root, in the range",
        ),
    ],
)
def test_other_requirements(asked: JSON, fields: JSON, expected: bool) -> None:
    assert admits(constraints({**ANY, **fields}), asked, NAMESPACE) is expected


def test_the_order_of_admission() -> None:
    """As TestAdmitWithPrioritizedSCC has it: priority, restrictions, name."""
    at_five = {"type": "MustRunAsRange", "uidRangeMin": 5, "uidRangeMax": 5}
    exact = {"type": "MustRunAs", "uid": 6}
    expected = [
        constraints(EXACT, "restrictive", priority=100),
        constraints({**LAX, "runAsUser": {"type": "MustRunAs", "uid": 5}}, "two", priority=5),
        constraints({**LAX, "runAsUser": at_five}, "one", priority=5),
        constraints({**LAX, "runAsUser": exact}, "a", priority=1),
        constraints({**LAX, "runAsUser": exact}, "b", priority=1),
    ]
    assert sorted([*expected[2:], *expected[:2]], key=admission_order) == expected


def admitting(asked: JSON, *found: SecurityContextConstraints) -> str:
    """The constraints that admission takes for a new pod, "" if it refuses the pod."""
    ordered = sorted(found, key=admission_order)
    return next((each.metadata.name for each in ordered if admits(each, asked, NAMESPACE)), "")


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        pytest.param(pod(), "restrictive", id="nothing: those with the highest priority"),
        pytest.param(pod({"runAsUser": 5}), "matchingPrioritySCCOne", id="user 5: the more restrictive ones"),
        pytest.param(pod({"runAsUser": 6}), "matchingPriorityAndScoreSCCOne", id="user 6: the first by name"),
        pytest.param(pod({"runAsUser": 7}), "", id="user 7: none"),
    ],
)
def test_the_constraints_that_admit_a_new_pod(asked: JSON, name: str) -> None:
    """The requests of TestAdmitWithPrioritizedSCC."""
    at_five = {"type": "MustRunAsRange", "uidRangeMin": 5, "uidRangeMax": 5}
    exact = {**LAX, "runAsUser": {"type": "MustRunAs", "uid": 6}}
    found = admitting(
        asked,
        constraints(exact, "matchingPriorityAndScoreSCCTwo", priority=1),
        constraints(exact, "matchingPriorityAndScoreSCCOne", priority=1),
        constraints({**LAX, "runAsUser": at_five}, "matchingPrioritySCCTwo", priority=5),
        constraints({**LAX, "runAsUser": {"type": "MustRunAs", "uid": 5}}, "matchingPrioritySCCOne", priority=5),
        constraints(EXACT, "restrictive", priority=100),
    )
    assert found == name


def test_the_most_restrictive_ones_are_taken_even_if_they_change_the_pod() -> None:
    """As TestAdmitPreferNonmutatingWhenPossible has it for a pod that is created."""
    without_ports = constraints(LAX, "restrictive-non-mutating-scc", allowHostPorts=False)
    found = admitting(pod(), without_ports, constraints(EXACT, "mutating-scc"), constraints(LAX, "non-mutating-scc"))
    assert found == "mutating-scc"


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(pod({"allowPrivilegeEscalation": True}), [True, False], id="escalation"),
        pytest.param(pod({"privileged": True}), [False, False], id="privileged"),
        pytest.param(pod(), [True, True], id="nothing"),
    ],
)
def test_restricted_and_its_second_version(asked: JSON, expected: list[bool]) -> None:
    """The rows are the pods of TestRestrictedMessage."""
    second = constraints(EXACT, "restricted-v2", allowPrivilegeEscalation=False)
    assert [admits(each, asked, NAMESPACE) for each in (constraints(EXACT, "restricted"), second)] == expected


@pytest.mark.parametrize(
    ("fields", "points"),
    [
        pytest.param({"volumes": ["*"]}, 200_000, id="all volumes"),
        pytest.param({"volumes": ["hostPath", "secret"]}, 200_000, id="a folder of the node"),
        pytest.param({"volumes": ["awsElasticBlockStore", "secret"]}, 100_000, id="a disk"),
        pytest.param({"volumes": ["secret", "projected", "none"]}, 0, id="trivial ones"),
        pytest.param({"requiredDropCapabilities": ["ALL"]}, -3000, id="all capabilities are dropped"),
        pytest.param({"allowedCapabilities": ["ALL"]}, 4000, id="all capabilities are allowed"),
        pytest.param({"allowHostPorts": True}, 800_000, id="ports of the node"),
        pytest.param({"volumes": []}, 0, id="no volumes"),
        pytest.param({"volumes": ["hostPath", "awsElasticBlockStore", "secret"]}, 200_000, id="volumes of each sort"),
        pytest.param({"defaultAddCapabilities": ["KILL", "MKNOD"]}, 600, id="capabilities are added"),
        pytest.param({"allowedCapabilities": ["KILL", "MKNOD"]}, 20, id="capabilities are allowed"),
        pytest.param({"allowedCapabilities": ["*"]}, 4000, id="all are allowed, by a star"),
        pytest.param({"allowedCapabilities": ["All"]}, 4000, id="all are allowed, in another case"),
        pytest.param({"requiredDropCapabilities": ["KILL", "MKNOD"]}, -100, id="capabilities are dropped"),
        pytest.param({"requiredDropCapabilities": ["all"]}, -3000, id="all are dropped, in another case"),
        pytest.param({"requiredDropCapabilities": ["*"]}, -50, id="a star is dropped"),
        pytest.param(
            {
                "defaultAddCapabilities": ["SETUID", "SETGID"],
                "allowedCapabilities": ["*"],
                "requiredDropCapabilities": ["SYS_CHROOT"],
            },
            4550,
            id="a mixture",
        ),
    ],
)
def test_points(fields: JSON, points: int) -> None:
    assert restriction_points(constraints(fields)) == 85_000 + points


def test_blocks_of_annotations() -> None:
    found = [(each.min, each.max) for each in parse_blocks("1000/10,2000-2009, x")]
    assert found == [(1000, 1009), (2000, 2009)]
