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
    if why := on_node or next(filter(None, map(_baseline_violation, containers)), ""):
        return BASELINE, why
    above = _restricted_violation_on_windows if windows else _restricted_violation
    of_each = (above(container.security_context or _NONE, of_pod or _NONE) for container in containers)
    why = next(filter(None, of_each), "")
    return (RESTRICTED, why) if why else None


def _baseline_violation(container: RequestingContainer) -> str:
    """Returns what of the container the level `baseline` forbids; empty if nothing."""
    context = container.security_context or _NONE
    if context.privileged:
        return "privileged"
    if not _MAY_ADD.issuperset(context.capabilities.add):
        return "added capabilities"
    return "host ports" if any(port.host_port for port in container.ports) else ""


def _restricted_violation(context: SecurityContext, of_pod: SecurityContext) -> str:
    """Returns why a container violates `restricted`, or an empty string.

    Fields that the container's security context leaves out are taken from its pod's.
    """
    if context.allow_privilege_escalation:
        return "allowPrivilegeEscalation is not false"
    if "ALL" not in context.capabilities.drop or set(context.capabilities.add) - {"NET_BIND_SERVICE"}:
        return "unrestricted capabilities"
    if why := _restricted_violation_on_windows(context, of_pod):
        return why
    seccomp = context.seccomp_profile or of_pod.seccomp_profile
    return (
        "" if seccomp is not None and seccomp.type in ("RuntimeDefault", "Localhost") else "seccompProfile is not set"
    )


def _restricted_violation_on_windows(context: SecurityContext, of_pod: SecurityContext) -> str:
    """Returns why a container violates what `restricted` asks on every operating system, or an empty string."""
    non_root = of_pod.run_as_non_root if context.run_as_non_root is None else context.run_as_non_root
    if not non_root:
        return "runAsNonRoot is not true"
    return "runAsUser is 0" if 0 in (context.run_as_user, of_pod.run_as_user) else ""
