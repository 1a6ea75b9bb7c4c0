"""Determines what of the Pod Security Standards a pod violates: of `baseline`, or of `restricted`, which is stricter.

Pods are checked against the part of the standards that they violate in practice (kubernetes.io/docs/concepts/security/
pod-security-standards; k8s.io/pod-security-admission, `policy`): AppArmor, SELinux options, sysctls and /proc masks are
not looked at, so that a pod without a violation here may violate a level all the same."""

from __future__ import annotations

from collections.abc import Iterator

from kubekit.api.pod_parts import RequestingContainer, SecurityContext, Violation

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


def violations(
    containers: tuple[RequestingContainer, ...], of_pod: SecurityContext | None, on_node: str, *, windows: bool
) -> tuple[Violation, ...]:
    """Returns what a pod of these containers violates: a rule of `baseline`, or else the rules of `restricted`.

    `of_pod` is the pod's own security context, `on_node` what it shares of its node. What violates `baseline` violates
    `restricted`, too. Fewer rules are for a pod whose `spec.os` is Windows.
    """
    if on_node:
        return (Violation(level=BASELINE, why=on_node),)
    for container in containers:
        context = container.security_context or _NONE
        if context.privileged:
            return (Violation(level=BASELINE, why="privileged"),)
        if not _MAY_ADD.issuperset(context.capabilities.add):
            return (Violation(level=BASELINE, why="added capabilities"),)
        if any(port.host_port for port in container.ports):
            return (Violation(level=BASELINE, why="host ports"),)
    found = [
        violation
        for container in containers
        for violation in _restricted_violations(container.security_context or _NONE, of_pod or _NONE, windows=windows)
    ]
    contexts = [of_pod, *(container.security_context for container in containers)]
    if any(each and each.seccomp_profile and each.seccomp_profile.type == "Unconfined" for each in contexts):
        found.insert(0, Violation(level=BASELINE, why="seccompProfile is Unconfined", since_minor=19))
    return tuple(dict.fromkeys(found))


def _restricted_violations(context: SecurityContext, of_pod: SecurityContext, *, windows: bool) -> Iterator[Violation]:
    """Yields what a container violates of `restricted`.

    Fields that the container's security context leaves out are taken from its pod's.
    """
    if not windows and context.allow_privilege_escalation:
        yield Violation(level=RESTRICTED, why="allowPrivilegeEscalation is not false", since_minor=8)
    capabilities = context.capabilities
    if not windows and ("ALL" not in capabilities.drop or set(capabilities.add) - {"NET_BIND_SERVICE"}):
        yield Violation(level=RESTRICTED, why="unrestricted capabilities", since_minor=22)
    if not (of_pod.run_as_non_root if context.run_as_non_root is None else context.run_as_non_root):
        yield Violation(level=RESTRICTED, why="runAsNonRoot is not true")
    if 0 in (context.run_as_user, of_pod.run_as_user):
        yield Violation(level=RESTRICTED, why="runAsUser is 0", since_minor=23)
    seccomp = context.seccomp_profile or of_pod.seccomp_profile
    if not windows and (seccomp is None or seccomp.type not in ("RuntimeDefault", "Localhost")):
        yield Violation(level=RESTRICTED, why="seccompProfile is not set", since_minor=19)
