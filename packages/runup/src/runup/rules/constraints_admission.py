"""Decides which SecurityContextConstraints admit a pod, and which of them admission prefers. Pure.

Source: openshift/apiserver-library-go, `pkg/securitycontextconstraints`: `sccadmission` (of the constraints that the
pod's account may use, the first one that admits the pod), `util/sort` (their order), `sccmatching` and the strategies
of users, groups, SELinux, capabilities, seccomp and sysctls. What a pod leaves open is set by the constraints, and so
never refuses it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from runup.api.clusterversion_json import mapping, mappings
from runup.api.platform_v1 import GroupStrategy, IDRange, SecurityContextConstraints, SELinuxOptions, UserStrategy

JSON = Mapping[str, Any]
UID_RANGE = "openshift.io/sa.scc.uid-range"
GROUPS = "openshift.io/sa.scc.supplemental-groups"
MCS = "openshift.io/sa.scc.mcs"
_POD_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
_CONTAINER_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
_RUNTIME_DEFAULT = frozenset({"runtime/default", "docker/default"})
_TRIVIAL_VOLUMES = frozenset({"secret", "configMap", "emptyDir", "downwardAPI", "projected", "none"})
# Fields of a volume whose type has another name in constraints.
_VOLUME_TYPES = {"cephfs": "cephFS", "vsphereVolume": "vsphere"}
_STRATEGY_POINTS = {"RunAsAny": 40_000, "MustRunAsNonRoot": 30_000, "MustRunAsRange": 20_000, "MustRunAs": 10_000}
_SAFE_SYSCTLS = frozenset(
    {
        *("kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports"),
        *("net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout"),
        *("net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time"),
        *("net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem"),
    }
)


def admission_order(scc: SecurityContextConstraints) -> tuple[int, int, str]:
    """Returns the sort key of admission: highest priority first, then the most restrictive, then by name."""
    return -(scc.priority or 0), restriction_points(scc), scc.metadata.name


def restriction_points(scc: SecurityContextConstraints) -> int:
    """Returns how much the constraints permit; the most restrictive have the fewest points."""
    volumes = {*(scc.volumes or ())}
    of_volumes = 200_000 if volumes & {"hostPath", "*"} else 100_000 if volumes - _TRIVIAL_VOLUMES else 0
    allowed = [name.upper() for name in scc.allowed_capabilities or ()]
    dropped = [name.upper() for name in scc.required_drop_capabilities or ()]
    of_capabilities = 5000 + 300 * len(scc.default_add_capabilities or ())
    of_capabilities += 4000 if {"*", "ALL"} & {*allowed} else 10 * len(allowed)
    of_capabilities -= 3000 if "ALL" in dropped else 50 * len(dropped)
    return (
        1_600_000 * scc.allow_privileged_container
        + 800_000 * scc.allow_host_ports
        + 400_000 * scc.allow_host_network
        + of_volumes
        + min(max(of_capabilities, 0), 9999)
        + _STRATEGY_POINTS.get(scc.se_linux_context.type, 0)
        + _STRATEGY_POINTS.get(scc.run_as_user.type, 0)
    )


def admits(scc: SecurityContextConstraints, pod: JSON, namespace: Mapping[str, str]) -> bool:
    """Returns whether the constraints admit a pod (`metadata` and `spec`); `namespace` are its annotations."""
    spec, annotations = mapping(pod, "spec"), mapping(mapping(pod, "metadata"), "annotations")
    if mapping(spec, "os").get("name") == "windows":
        return False  # admission ignores the pod
    context = mapping(spec, "securityContext")
    containers = [*mappings(spec, "initContainers"), *mappings(spec, "containers")]
    return (
        not (spec.get("hostPID") and not scc.allow_host_pid)
        and not (spec.get("hostIPC") and not scc.allow_host_ipc)
        and not (spec.get("hostNetwork") and not scc.allow_host_network)
        and not (scc.user_namespace_level == "RequirePodLevel" and spec.get("hostUsers") is not False)
        and _admits_groups(scc, context, namespace)
        and _admits_label(scc, context, namespace)
        and _admits_profile(scc, _profile(context) or str(annotations.get(_POD_SECCOMP) or ""))
        and all(_admits_sysctl(scc, str(each.get("name"))) for each in mappings(context, "sysctls"))
        and _admits_volumes(scc, spec)
        and all(_admits_container(scc, pod, container, namespace) for container in containers)
    )


def _admits_container(
    scc: SecurityContextConstraints, pod: JSON, container: JSON, namespace: Mapping[str, str]
) -> bool:
    spec, annotations = mapping(pod, "spec"), mapping(mapping(pod, "metadata"), "annotations")
    context, of_pod = mapping(container, "securityContext"), mapping(spec, "securityContext")
    fields = ("runAsUser", "runAsNonRoot", "seLinuxOptions", "seccompProfile")
    effective = {**{key: of_pod[key] for key in fields if key in of_pod}, **context}
    profile = _profile(effective) or str(annotations.get(f"{_CONTAINER_SECCOMP}{container.get('name')}") or "")
    ports = mappings(container, "ports")
    # With the node's network, the port of a container is a port of the node.
    has_host_port = any(
        port.get("hostPort") or (spec.get("hostNetwork") and port.get("containerPort")) for port in ports
    )
    return (
        not (context.get("privileged") and not scc.allow_privileged_container)
        and not (scc.read_only_root_filesystem and context.get("readOnlyRootFilesystem") is False)
        and not (scc.allow_privilege_escalation is False and context.get("allowPrivilegeEscalation"))
        and not (has_host_port and not scc.allow_host_ports)
        and _admits_user(scc.run_as_user, effective, namespace)
        and _admits_label(scc, effective, namespace)
        and _admits_capabilities(scc, mapping(context, "capabilities").get("add") or ())
        and _admits_profile(scc, profile)
    )


def _admits_user(strategy: UserStrategy, context: JSON, namespace: Mapping[str, str]) -> bool:
    user = context.get("runAsUser")
    if strategy.type == "MustRunAsNonRoot":
        return context.get("runAsNonRoot") is not False and user != 0
    if not isinstance(user, int):
        return True
    if strategy.type == "MustRunAs":
        return strategy.uid is None or user == strategy.uid
    if strategy.type == "MustRunAsRange":
        if strategy.uid_range_min is not None and strategy.uid_range_max is not None:
            return strategy.uid_range_min <= user <= strategy.uid_range_max
        ranges = parse_blocks(namespace.get(UID_RANGE, ""))
        return not ranges or ranges[0].min <= user <= ranges[0].max
    return True


def _admits_groups(scc: SecurityContextConstraints, context: JSON, namespace: Mapping[str, str]) -> bool:
    blocks = parse_blocks(namespace.get(GROUPS) or namespace.get(UID_RANGE, ""))
    own = context.get("fsGroup")
    of_files = [own] if isinstance(own, int) else []
    others = [group for group in context.get("supplementalGroups") or () if isinstance(group, int)]
    # Of the namespace's groups, files may have the first alone.
    first = [IDRange(min=blocks[0].min, max=blocks[0].min)] if blocks else []
    return _in_ranges(scc.fs_group, of_files, first) and _in_ranges(scc.supplemental_groups, others, blocks)


def _in_ranges(strategy: GroupStrategy, groups: Iterable[int], of_namespace: Collection[IDRange]) -> bool:
    ranges = strategy.ranges or of_namespace
    if strategy.type != "MustRunAs" or not ranges:
        return True
    return all(any(each.min <= group <= each.max for each in ranges) for group in groups)


def parse_blocks(text: str) -> list[IDRange]:
    """Returns the ranges of an annotation, such as `1000/10,2000-2009`; those that cannot be read are left out."""
    found = []
    for block in text.split(","):
        for separator, as_size in (("/", True), ("-", False)):
            start, _, end = block.strip().partition(separator)
            if start.isdigit() and end.isdigit():
                found.append(IDRange(min=int(start), max=int(start) + int(end) - 1 if as_size else int(end)))
    return found


def _admits_label(scc: SecurityContextConstraints, context: JSON, namespace: Mapping[str, str]) -> bool:
    label = context.get("seLinuxOptions")
    if scc.se_linux_context.type != "MustRunAs" or not isinstance(label, dict):
        return True
    wanted: SELinuxOptions = scc.se_linux_context.options
    level = wanted.level or namespace.get(MCS, "")
    fields = ((wanted.user, "user"), (wanted.role, "role"), (wanted.type, "type"))
    if any(value != str(label.get(key) or "") for value, key in fields):
        return False
    return not level or _level(level) == _level(str(label.get("level") or ""))


def _level(text: str) -> tuple[str, list[str]]:
    """Returns the sensitivity and the categories of a level such as `s0:c1,c0`, whose order does not matter."""
    sensitivity, _, categories = text.partition(":")
    return sensitivity, sorted(categories.split(","))


def _admits_capabilities(scc: SecurityContextConstraints, added: Iterable[str]) -> bool:
    allowed = {*(scc.allowed_capabilities or ()), *(scc.default_add_capabilities or ())}
    return "*" in (scc.allowed_capabilities or ()) or allowed.issuperset(added)


def _profile(context: JSON) -> str:
    """Returns the seccomp profile of a security context, in the form of constraints."""
    profile = mapping(context, "seccompProfile")
    names = {"Unconfined": "unconfined", "RuntimeDefault": "runtime/default"}
    kind = str(profile.get("type") or "")
    return f"localhost/{profile.get('localhostProfile')}" if kind == "Localhost" else names.get(kind, "")


def _admits_profile(scc: SecurityContextConstraints, profile: str) -> bool:
    allowed = scc.seccomp_profiles or ()
    if not profile or "*" in allowed or profile in allowed:
        return True
    return profile in _RUNTIME_DEFAULT and bool(_RUNTIME_DEFAULT & {*allowed})


def _admits_sysctl(scc: SecurityContextConstraints, name: str) -> bool:
    def matches(patterns: Iterable[str]) -> bool:
        return any(name == each or (each.endswith("*") and name.startswith(each[:-1])) for each in patterns)

    is_known = name in _SAFE_SYSCTLS or matches(scc.allowed_unsafe_sysctls or ())
    return is_known and not matches(scc.forbidden_sysctls or ())


def _admits_volumes(scc: SecurityContextConstraints, spec: JSON) -> bool:
    allowed, drivers = scc.volumes, {each.driver for each in scc.allowed_flex_volumes or ()}
    # Without a list, all drivers may be used.
    flex_volumes = [mapping(volume, "flexVolume").get("driver") for volume in mappings(spec, "volumes")]
    if drivers and any(driver and driver not in drivers for driver in flex_volumes):
        return False
    if allowed is None or "*" in allowed:
        return True
    types = {_VOLUME_TYPES.get(key, key) for volume in mappings(spec, "volumes") for key in volume if key != "name"}
    # The API server adds the token of the ServiceAccount; where Secrets are allowed, it is.
    if spec.get("automountServiceAccountToken") is not False and not {"projected", "secret"} & {*allowed}:
        return False
    return types <= {*allowed}
