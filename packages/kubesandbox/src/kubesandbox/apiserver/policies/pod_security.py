"""PodSecurity: what a pod violates of the levels of the Pod Security Standards that its namespace's labels name.

In: a pod's spec, a level and a version. Out: reasons with details, as k8s.io/pod-security-admission/policy has them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

JSON = dict[str, Any]
LATEST = 34
PREFIX = "pod-security.kubernetes.io/"
_CAPABILITIES = frozenset(
    {"AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"}
) | frozenset({"SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"})
_VOLUMES = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
# The sysctls that are safe, by the minor version since which they are.
_SYSCTLS = {
    "kernel.shm_rmid_forced": 0, "net.ipv4.ip_local_port_range": 0, "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.ping_group_range": 0, "net.ipv4.ip_unprivileged_port_start": 0, "net.ipv4.ip_local_reserved_ports": 27,
    "net.ipv4.tcp_keepalive_time": 29, "net.ipv4.tcp_fin_timeout": 29, "net.ipv4.tcp_keepalive_intvl": 29,
    "net.ipv4.tcp_keepalive_probes": 29, "net.ipv4.tcp_rmem": 32, "net.ipv4.tcp_wmem": 32,
}  # fmt: skip
_SELINUX_TYPES = {"": 0, "container_t": 0, "container_init_t": 0, "container_kvm_t": 0, "container_engine_t": 31}
_CONFINED = ("RuntimeDefault", "Localhost")


class Pod:
    """A pod's spec with the security contexts of its containers; `minor` is the version of the standards."""

    def __init__(self, spec: JSON, annotations: JSON, minor: int) -> None:
        self.spec, self.annotations, self.minor = spec, annotations, minor
        self.context: JSON = spec.get("securityContext") or {}
        self.containers = [
            each for part in ("initContainers", "containers", "ephemeralContainers") for each in spec.get(part) or ()
        ]
        self.is_windows = (spec.get("os") or {}).get("name") == "windows" and minor >= 25

    def contexts(self) -> Iterator[tuple[str, JSON]]:
        """Yields each container's name and security context."""
        for container in self.containers:
            yield container["name"], container.get("securityContext") or {}

    def setters(self, is_bad: Callable[[JSON], object]) -> str:
        """Returns who has a bad security context: `pod and container "a"`; "" if none has."""
        names = [name for name, context in self.contexts() if is_bad(context)]
        return " and ".join((["pod"] if is_bad(self.context) else []) + ([_containers(names)] if names else []))


def violations(level: str, pod: Pod) -> str:
    """Returns the violations of a level as one text, "" for none."""
    found = []
    for check, (name, since) in sorted(_CHECKS.items(), key=lambda item: item[1][0]):
        of_level = name in _RESTRICTED_ONLY
        if level == "privileged" or pod.minor < since or (of_level and level != "restricted"):
            continue
        if level == "restricted" and name in _OVERRIDDEN and pod.minor >= _OVERRIDDEN[name]:
            continue
        found += [f"{reason} ({detail})" for reason, detail in check(pod)]
    return ", ".join(found)


def level_of(labels: JSON, mode: str) -> tuple[str, int, str]:
    """Returns the level that labels name for a mode (enforce, warn, audit), its minor version, and both as one text."""
    level, version = labels.get(PREFIX + mode, "privileged"), labels.get(f"{PREFIX}{mode}-version", "latest")
    if level not in ("privileged", "baseline", "restricted"):
        level = "restricted" if mode == "enforce" else "privileged"
    found = re.fullmatch(r"v1\.(\d+)", version)
    return level, min(int(found[1]), LATEST) if found else LATEST, f"{level}:{version if found else 'latest'}"


Found = Iterator[tuple[str, str]]


def _some(count: int, one: str, many: str = "") -> str:
    return one if count == 1 else many or f"{one}s"


def _quoted(texts: Iterable[str]) -> str:
    return ", ".join(f'"{text}"' for text in texts)


def _containers(names: list[str]) -> str:
    return f"{_some(len(names), 'container')} {_quoted(names)}"


def _privilege_escalation(pod: Pod) -> Found:
    names = [name for name, context in pod.contexts() if context.get("allowPrivilegeEscalation") is not False]
    if names and not pod.is_windows:
        yield (
            "allowPrivilegeEscalation != false",
            f"{_containers(names)} must set securityContext.allowPrivilegeEscalation=false",
        )


def _app_armor(pod: Pod) -> Found:
    def bad(context: JSON) -> str:
        type_ = (context.get("appArmorProfile") or {}).get("type")
        return type_ if type_ and type_ not in _CONFINED else ""

    prefix, allowed = "container.apparmor.security.beta.kubernetes.io/", ("localhost/", "runtime/default")
    notes = sorted(
        f"{key}={json.dumps(value)}"
        for key, value in pod.annotations.items()
        if key.startswith(prefix) and value and not value.startswith(allowed)
    )
    values = [*sorted({bad(context) for _, context in [("", pod.context), *pod.contexts()]} - {""}), *notes]
    setters = [pod.setters(bad), _some(len(notes), "annotation") if notes else ""]
    who = " and ".join(filter(None, setters))
    if values:
        reason = _some(len(values), "forbidden AppArmor profile")
        yield reason, f"{who} must not set AppArmor profile type to {_quoted(values)}"


def _added(pod: Pod, allowed: frozenset[str]) -> str:
    """Returns a text about the containers that add forbidden capabilities, or ""."""
    added = {
        name: {*((context.get("capabilities") or {}).get("add") or ())} - allowed for name, context in pod.contexts()
    }
    names, bad = [name for name, each in added.items() if each], sorted(set().union(*added.values()))
    return f"{_containers(names)} must not include {_quoted(bad)} in securityContext.capabilities.add" if names else ""


def _capabilities_baseline(pod: Pod) -> Found:
    if text := _added(pod, _CAPABILITIES):
        yield "non-default capabilities", text


def _capabilities_restricted(pod: Pod) -> Found:
    if pod.is_windows:
        return
    names = [
        name for name, context in pod.contexts() if "ALL" not in ((context.get("capabilities") or {}).get("drop") or ())
    ]
    texts = [f'{_containers(names)} must set securityContext.capabilities.drop=["ALL"]'] if names else []
    if texts := [*texts, *filter(None, [_added(pod, frozenset({"NET_BIND_SERVICE"}))])]:
        yield "unrestricted capabilities", "; ".join(texts)


def _host_namespaces(pod: Pod) -> Found:
    if shared := [f"{key}=true" for key in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(key)]:
        yield "host namespaces", ", ".join(shared)


def _host_paths(pod: Pod) -> Found:
    names = [volume["name"] for volume in pod.spec.get("volumes") or () if volume.get("hostPath") is not None]
    if names:
        yield "hostPath volumes", f"{_some(len(names), 'volume')} {_quoted(names)}"


def _host_ports(pod: Pod) -> Found:
    by_name = {
        each["name"]: {str(port["hostPort"]) for port in each.get("ports") or () if port.get("hostPort")}
        for each in pod.containers
    }
    names, ports = [name for name, each in by_name.items() if each], sorted(set().union(*by_name.values()))
    if names:
        uses = f"{_some(len(names), 'uses', 'use')} {_some(len(ports), 'hostPort')}"
        yield "hostPort", f"{_containers(names)} {uses} {', '.join(ports)}"


def _probe_hosts(pod: Pod) -> Found:
    by_name: dict[str, set[str]] = {}
    for each in pod.containers:
        handlers = [each.get(key) for key in ("livenessProbe", "readinessProbe", "startupProbe")]
        handlers += [(each.get("lifecycle") or {}).get(key) for key in ("postStart", "preStop")]
        actions = [(handler or {}).get(key) or {} for handler in handlers for key in ("httpGet", "tcpSocket")]
        by_name[each["name"]] = {action["host"] for action in actions if action.get("host")}
    names, hosts = sorted(name for name, each in by_name.items() if each), sorted(set().union(*by_name.values()))
    if names:
        uses = f"{_some(len(names), 'uses', 'use')} {_some(len(hosts), 'probe or lifecycle host')}"
        yield "probe or lifecycle host", f"{_containers(names)} {uses} {_quoted(hosts)}"


def _privileged(pod: Pod) -> Found:
    if names := [name for name, context in pod.contexts() if context.get("privileged")]:
        yield "privileged", f"{_containers(names)} must not set securityContext.privileged=true"


def _proc_mount(pod: Pod) -> Found:
    mounts = {name: context.get("procMount") or "Default" for name, context in pod.contexts()}
    if names := [name for name, mount in mounts.items() if mount != "Default"]:
        types = sorted({mount for mount in mounts.values() if mount != "Default"})
        yield "procMount", f"{_containers(names)} must not set securityContext.procMount to {_quoted(types)}"


def _volume_types(pod: Pod) -> Found:
    types = {each["name"]: {*each} - {"name"} for each in pod.spec.get("volumes") or ()}
    bad = {name: next(iter(type_), "unknown") for name, type_ in types.items() if not type_ & _VOLUMES}
    if bad:
        kinds = sorted(set(bad.values()))
        uses = f"{_some(len(bad), 'uses', 'use')} {_some(len(kinds), 'restricted volume type')} {_quoted(kinds)}"
        yield "restricted volume types", f"{_some(len(bad), 'volume')} {_quoted(bad)} {uses}"


def _non_root(pod: Pod) -> Found:
    reason, of_pod = "runAsNonRoot != true", pod.context.get("runAsNonRoot")
    if who := pod.setters(lambda context: context.get("runAsNonRoot") is False):
        yield reason, f"{who} must not set securityContext.runAsNonRoot=false"
    elif names := [name for name, context in pod.contexts() if not of_pod and context.get("runAsNonRoot") is None]:
        yield reason, f"pod or {_containers(names)} must set securityContext.runAsNonRoot=true"


def _root_user(pod: Pod) -> Found:
    if who := pod.setters(lambda context: context.get("runAsUser") == 0):
        yield "runAsUser=0", f"{who} must not set runAsUser=0"


def _se_linux(pod: Pod) -> Found:
    def options(context: JSON) -> JSON:
        return context.get("seLinuxOptions") or {}

    def bad_type(context: JSON) -> bool:
        return _SELINUX_TYPES.get(options(context).get("type") or "", 99) > pod.minor

    who = pod.setters(lambda c: bad_type(c) or options(c).get("user") or options(c).get("role"))
    all_contexts = [pod.context, *(context for _, context in pod.contexts())]
    types = sorted({options(context).get("type") or "" for context in all_contexts if bad_type(context)})
    texts = [f"{_some(len(types), 'type')} {_quoted(types)}"] if types else []
    texts += [f"{key} may not be set" for key in ("user", "role") if any(options(c).get(key) for c in all_contexts)]
    if who:
        yield "seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(texts)}"


def _seccomp_type(context: JSON) -> str:
    return (context.get("seccompProfile") or {}).get("type") or ""


def _seccomp_baseline(pod: Pod) -> Found:
    def bad(context: JSON) -> bool:
        return _seccomp_type(context) not in ("", *_CONFINED)

    if who := pod.setters(bad):
        contexts = [pod.context, *(context for _, context in pod.contexts())]
        values = sorted({_seccomp_type(context) for context in contexts if bad(context)})
        yield "seccompProfile", f"{who} must not set securityContext.seccompProfile.type to {_quoted(values)}"


def _seccomp_restricted(pod: Pod) -> Found:
    if pod.is_windows:
        return
    found = list(_seccomp_baseline(pod))
    names = [name for name, context in pod.contexts() if not _seccomp_type(context)]
    if not found and not _seccomp_type(pod.context) and names:
        wanted = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
        found = [("seccompProfile", f"pod or {_containers(names)} {wanted}")]
    yield from found


def _sysctls(pod: Pod) -> Found:
    names = [each["name"] for each in pod.context.get("sysctls") or ()]
    if bad := [name for name in names if _SYSCTLS.get(name, 99) > pod.minor]:
        yield "forbidden sysctls", ", ".join(bad)


def _host_process(pod: Pod) -> Found:
    if who := pod.setters(lambda context: (context.get("windowsOptions") or {}).get("hostProcess")):
        yield "hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true"


# The checks by name, in the order of which they run, and the first minor version with each.
_CHECKS: dict[Callable[[Pod], Found], tuple[str, int]] = {
    _privilege_escalation: ("allowPrivilegeEscalation", 8),
    _app_armor: ("appArmorProfile", 0),
    _capabilities_baseline: ("capabilities_baseline", 0),
    _capabilities_restricted: ("capabilities_restricted", 22),
    _host_namespaces: ("hostNamespaces", 0),
    _host_paths: ("hostPathVolumes", 0),
    _host_ports: ("hostPorts", 0),
    _probe_hosts: ("hostProbesAndHostLifecycle", 34),
    _privileged: ("privileged", 0),
    _proc_mount: ("procMount", 0),
    _volume_types: ("restrictedVolumes", 0),
    _non_root: ("runAsNonRoot", 0),
    _root_user: ("runAsUser", 23),
    _se_linux: ("seLinuxOptions", 0),
    _seccomp_baseline: ("seccompProfile_baseline", 19),
    _seccomp_restricted: ("seccompProfile_restricted", 19),
    _sysctls: ("sysctls", 0),
    _host_process: ("windowsHostProcess", 0),
}
_RESTRICTED_ONLY = frozenset(
    {"allowPrivilegeEscalation", "capabilities_restricted", "restrictedVolumes", "runAsNonRoot", "runAsUser"}
) | {"seccompProfile_restricted"}
# Checks that a stricter one replaces, and since which version.
_OVERRIDDEN = {"capabilities_baseline": 22, "hostPathVolumes": 0, "seccompProfile_baseline": 19}
