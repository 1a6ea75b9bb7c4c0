"""Determines which level of the Pod Security Standards a pod violates: `baseline`, and `restricted` which is stricter.

What is asked of a pod is the part of the standards that pods violate in practice (kubernetes.io/docs/concepts/security/
pod-security-standards; k8s.io/pod-security-admission, `policy`): AppArmor, SELinux options, sysctls and /proc masks are
not looked at, so that a pod without a level here may violate one all the same.
"""

from __future__ import annotations

from kubekit.api.pod_parts import RequestingContainer, SecurityContext

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


def violated_level(
    containers: tuple[RequestingContainer, ...], of_pod: SecurityContext | None, on_node: str, *, windows: bool
) -> tuple[str, str] | None:
    """Returns the mildest level that a pod of these containers violates, with the reason, or None.

    `of_pod` is the pod's own security context, `on_node` what it shares of its node. What violates `baseline` violates
    `restricted`, too. Of a pod whose `spec.os` is Windows less is asked.
    """
    if on_node:
        return BASELINE, on_node
    for container in containers:
        context = container.security_context or _NONE
        if context.privileged:
            return BASELINE, "privileged"
        if not _MAY_ADD.issuperset(context.capabilities.add):
            return BASELINE, "added capabilities"
        if any(port.host_port for port in container.ports):
            return BASELINE, "host ports"
    for container in containers:
        if why := _restricted_violation(container.security_context or _NONE, of_pod or _NONE, windows=windows):
            return RESTRICTED, why
    return None


def _restricted_violation(context: SecurityContext, of_pod: SecurityContext, *, windows: bool) -> str:
    """Returns why a container violates `restricted`, or an empty string.

    Fields that the container's security context leaves out are taken from its pod's.
    """
    if not windows and context.allow_privilege_escalation:
        return "allowPrivilegeEscalation is not false"
    capabilities = context.capabilities
    if not windows and ("ALL" not in capabilities.drop or set(capabilities.add) - {"NET_BIND_SERVICE"}):
        return "unrestricted capabilities"
    if not (of_pod.run_as_non_root if context.run_as_non_root is None else context.run_as_non_root):
        return "runAsNonRoot is not true"
    if 0 in (context.run_as_user, of_pod.run_as_user):
        return "runAsUser is 0"
    seccomp = context.seccomp_profile or of_pod.seccomp_profile
    if not windows and (seccomp is None or seccomp.type not in ("RuntimeDefault", "Localhost")):
        return "seccompProfile is not set"
    return ""
