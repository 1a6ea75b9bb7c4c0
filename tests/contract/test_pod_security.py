"""The levels of the Pod Security Standards on each server."""

from __future__ import annotations

import time

import pytest
from tests.contract.api import JSON, Api

PREFIX = "pod-security.kubernetes.io/"
# Level, the pod's spec, and what it violates.
SPECS: tuple[tuple[str, str, JSON, str], ...] = (
    (
        "nothing is set", "restricted",
        {},
        'allowPrivilegeEscalation != false (container "c0" must set '
        'securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "c0" '
        'must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container '
        '"c0" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "c0" must '
        'set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
    ),
    (
        "all is set", "restricted",
        {"containers": [{"securityContext": {"allowPrivilegeEscalation": False,
                                             "capabilities": {"drop": ["ALL"]},
                                             "runAsNonRoot": True,
                                             "seccompProfile": {"type": "RuntimeDefault"}}}]},
        '',
    ),
    (
        "by the pod", "restricted",
        {"securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
         "containers": [{"securityContext": {"allowPrivilegeEscalation": False,
                                             "capabilities": {"drop": ["ALL"]}}}]},
        '',
    ),
    (
        "nothing is set, baseline", "baseline",
        {},
        '',
    ),
    (
        "the host's namespaces", "baseline",
        {"hostNetwork": True, "hostPID": True, "hostIPC": True},
        'host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)',
    ),
    (
        "privileged", "baseline",
        {"containers": [{"securityContext": {"privileged": True}},
                        {"securityContext": {"allowPrivilegeEscalation": False,
                                             "capabilities": {"drop": ["ALL"]},
                                             "runAsNonRoot": True,
                                             "seccompProfile": {"type": "RuntimeDefault"}}}]},
        'privileged (container "c0" must not set securityContext.privileged=true)',
    ),
    (
        "capabilities", "baseline",
        {"containers": [{"securityContext": {"capabilities": {"add": ["SYS_ADMIN", "CHOWN", "BPF"]}}}]},
        'non-default capabilities (container "c0" must not include "BPF", "SYS_ADMIN" in '
        'securityContext.capabilities.add)',
    ),
    (
        "capabilities, restricted", "restricted",
        {"containers": [{"securityContext": {"allowPrivilegeEscalation": False,
                                             "capabilities": {"drop": ["ALL"],
                                                              "add": ["CHOWN", "NET_BIND_SERVICE"]},
                                             "runAsNonRoot": True,
                                             "seccompProfile": {"type": "RuntimeDefault"}}}]},
        'unrestricted capabilities (container "c0" must not include "CHOWN" in '
        'securityContext.capabilities.add)',
    ),
    (
        "ports of the host", "baseline",
        {"containers": [{"ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 81}]}]},
        'hostPort (container "c0" uses hostPorts 80, 81)',
    ),
    (
        "volumes of the host", "baseline",
        {"volumes": [{"name": "h", "hostPath": {"path": "/"}}]},
        'hostPath volumes (volume "h")',
    ),
    (
        "types of volumes", "restricted",
        {"containers": [{"securityContext": {"allowPrivilegeEscalation": False,
                                             "capabilities": {"drop": ["ALL"]},
                                             "runAsNonRoot": True,
                                             "seccompProfile": {"type": "RuntimeDefault"}}}],
         "volumes": [{"name": "h", "hostPath": {"path": "/"}},
                     {"name": "n", "nfs": {"server": "s", "path": "/"}},
                     {"name": "e", "emptyDir": {}}]},
        'restricted volume types (volumes "h", "n" use restricted volume types "hostPath", "nfs")',
    ),
    (
        "root", "restricted",
        {"securityContext": {"runAsUser": 0, "runAsNonRoot": False},
         "containers": [{"securityContext": {"allowPrivilegeEscalation": False,
                                             "capabilities": {"drop": ["ALL"]},
                                             "runAsNonRoot": True,
                                             "seccompProfile": {"type": "RuntimeDefault"},
                                             "runAsUser": 0}}]},
        'runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false), runAsUser=0 (pod '
        'and container "c0" must not set runAsUser=0)',
    ),
    (
        "seccomp", "baseline",
        {"securityContext": {"seccompProfile": {"type": "Unconfined"}},
         "containers": [{"securityContext": {"seccompProfile": {"type": "Unconfined"}}}]},
        'seccompProfile (pod and container "c0" must not set securityContext.seccompProfile.type to '
        '"Unconfined")',
    ),
    (
        "seccomp, restricted", "restricted",
        {"containers": [{"securityContext": {"allowPrivilegeEscalation": False,
                                             "capabilities": {"drop": ["ALL"]},
                                             "runAsNonRoot": True,
                                             "seccompProfile": {"type": "Unconfined"}}}]},
        'seccompProfile (container "c0" must not set securityContext.seccompProfile.type to '
        '"Unconfined")',
    ),
    (
        "SELinux", "baseline",
        {"securityContext": {"seLinuxOptions": {"type": "spc_t", "user": "u"}},
         "containers": [{"securityContext": {"seLinuxOptions": {"role": "r", "type": "container_t"}}}]},
        'seLinuxOptions (pod and container "c0" set forbidden securityContext.seLinuxOptions: type '
        '"spc_t"; user may not be set; role may not be set)',
    ),
    (
        "AppArmor", "baseline",
        {"containers": [{"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}]},
        'forbidden AppArmor profile (container "c0" must not set AppArmor profile type to "Unconfined")',
    ),
    (
        "sysctls", "baseline",
        {"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"},
                                         {"name": "net.ipv4.tcp_rmem", "value": "1"}]}},
        'forbidden sysctls (kernel.msgmax)',
    ),
    (
        "mounts of /proc", "baseline",
        {"hostUsers": False, "containers": [{"securityContext": {"procMount": "Unmasked"}}]},
        'procMount (container "c0" must not set securityContext.procMount to "Unmasked")',
    ),
    (
        "probes of other hosts", "baseline",
        {"containers": [{"livenessProbe": {"httpGet": {"host": "example.com", "port": 80}},
                         "lifecycle": {"preStop": {"tcpSocket": {"host": "b", "port": 1}}}}]},
        'probe or lifecycle host (container "c0" uses probe or lifecycle hosts "b", "example.com")',
    ),
    (
        "an init container", "restricted",
        {"initContainers": [{}],
         "containers": [{"securityContext": {"allowPrivilegeEscalation": False,
                                             "capabilities": {"drop": ["ALL"]},
                                             "runAsNonRoot": True,
                                             "seccompProfile": {"type": "RuntimeDefault"}}}]},
        'allowPrivilegeEscalation != false (container "i0" must set '
        'securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "i0" '
        'must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container '
        '"i0" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "i0" must '
        'set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
    ),
    (
        "an older version", "restricted:v1.20",
        {},
        'allowPrivilegeEscalation != false (container "c0" must set '
        'securityContext.allowPrivilegeEscalation=false), runAsNonRoot != true (pod or container "c0" '
        'must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "c0" must set '
        'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")',
    ),
)  # fmt: skip


def pod(spec: JSON) -> JSON:
    """A pod; containers that have no name and image get them."""
    spec = {"containers": [{}], **spec}
    for part, letter in (("containers", "c"), ("initContainers", "i")):
        if part in spec:
            spec[part] = [{"name": f"{letter}{n}", "image": "i", **each} for n, each in enumerate(spec[part])]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def labelled(api: Api, namespace: str, mode: str, level: str) -> None:
    """Gives the namespace a level."""
    name, _, version = level.partition(":")
    labels = {PREFIX + mode: name} | ({f"{PREFIX}{mode}-version": version} if version else {})
    api.merge(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": labels}}).ok()


def until_refused(api: Api, namespace: str) -> None:
    """Waits until the label of a namespace is in force: a real server reads namespaces by an informer."""
    bad = pod({"hostPID": True})
    deadline = time.monotonic() + 30
    while api.post(f"/api/v1/namespaces/{namespace}/pods", bad, dryRun="All").code != 403:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize(("level", "spec", "expected"), [row[1:] for row in SPECS], ids=[row[0] for row in SPECS])
def test_a_level(api: Api, namespace: str, level: str, spec: JSON, expected: str) -> None:
    """A pod that violates the level is refused, with all reasons."""
    labelled(api, namespace, "enforce", level)
    until_refused(api, namespace)
    answer = api.post(f"/api/v1/namespaces/{namespace}/pods", pod(spec), dryRun="All")
    if not expected:
        assert answer.code == 201
        return
    shown = level if ":" in level else f"{level}:latest"
    assert answer.code == 403
    assert answer.message == f'pods "p" is forbidden: violates PodSecurity "{shown}": {expected}'


def test_warnings(api: Api, namespace: str) -> None:
    """Pods and templates of pods warn; a template is never refused."""
    labelled(api, namespace, "enforce", "baseline")
    labelled(api, namespace, "warn", "baseline")
    until_refused(api, namespace)
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod({"hostPID": True})["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    answer = api.post(path, {"metadata": {"name": "d"}, "spec": spec})
    assert answer.code == 201
    text = 'would violate PodSecurity \\"baseline:latest\\": host namespaces (hostPID=true)'
    assert answer.warnings == (f'299 - "{text}"',)
