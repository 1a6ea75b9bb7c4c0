"""Determines which level of the Pod Security Standards a pod violates: `baseline`, and `restricted` which is stricter.

What is asked of a pod is the part of the standards that pods violate in practice (kubernetes.io/docs/concepts/security/
pod-security-standards; k8s.io/pod-security-admission, `policy`): AppArmor, SELinux options, sysctls and /proc masks are
not looked at, so that a pod without a level here may violate one all the same.
"""

from __future__ import annotations

from functools import lru_cache

from kubekit.api.core_v1 import PodPlace, RequestingContainer, SecurityContext

BASELINE, RESTRICTED = "baseline", "restricted"
# Capabilities that `baseline` lets a container add; `restricted` only the last.
_MAY_ADD = frozenset(
    {
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    }
)
_NONE = SecurityContext()


def exceeded(spec: PodPlace) -> tuple[str, str] | None:
    """Returns the mildest level that the pod violates, with the reason, or None.

    What violates `baseline` violates `restricted`, too.
    """
    containers = (*spec.init_containers, *spec.containers)
    if why := _above_baseline(spec, containers):
        return _pair(BASELINE, why)
    context = spec.security_context or _NONE
    for container in containers:
        if why := _above_restricted(container.security_context or _NONE, context):
            return _pair(RESTRICTED, why)
    return None


@lru_cache(64)
def _pair(level: str, why: str) -> tuple[str, str]:
    # One object for all the pods of which the same is said.
    return level, why


def _above_baseline(spec: PodPlace, containers: tuple[RequestingContainer, ...]) -> str:
    if spec.host_network or spec.host_pid or spec.host_ipc:
        return "host namespaces"
    if any(volume.host_path is not None for volume in spec.volumes):
        return "hostPath volumes"
    for container in containers:
        context = container.security_context or _NONE
        if context.privileged:
            return "privileged"
        if not _MAY_ADD.issuperset(context.capabilities.add):
            return "added capabilities"
        if any(port.host_port for port in container.ports):
            return "host ports"
    return ""


def _above_restricted(context: SecurityContext, of_pod: SecurityContext) -> str:
    """Returns why a container violates `restricted`, or an empty string; what it does not say its pod says for it."""
    if context.allow_privilege_escalation:
        return "allowPrivilegeEscalation is not false"
    if "ALL" not in context.capabilities.drop or set(context.capabilities.add) - {"NET_BIND_SERVICE"}:
        return "unrestricted capabilities"
    non_root = of_pod.run_as_non_root if context.run_as_non_root is None else context.run_as_non_root
    if not non_root:
        return "runAsNonRoot is not true"
    if 0 in (context.run_as_user, of_pod.run_as_user):
        return "runAsUser is 0"
    seccomp = context.seccomp_profile or of_pod.seccomp_profile
    return (
        "" if seccomp is not None and seccomp.type in ("RuntimeDefault", "Localhost") else "seccompProfile is not set"
    )
