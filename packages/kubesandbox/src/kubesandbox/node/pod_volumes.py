"""A pod's configuration on this node: its volumes, and the environment of its containers.

Volumes are folders to mount, with the files that the cluster supplies. The environment comes from literal values,
ConfigMaps, Secrets and the downward API. The rules and messages are the kubelet's: `$(NAME)` references, field paths,
and missing sources that prevent a container's start.
"""

from __future__ import annotations

import base64
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kubekit.api.whole_v1 import WholePod
from kubesandbox.node import podspec
from kubesandbox.node.podspec import JSON, SERVICE_ACCOUNT_MOUNT, BadPod, ContainerSpec
from kubesandbox.node.runner_interface import Bind

DEFAULT_MODE = 0o644
# The check of a hostPath by its type (pkg/volume/hostpath), and the words of the kubelet's message.
_HOST_TYPES: dict[str, tuple[Callable[[int], bool], str]] = {
    "Directory": (stat.S_ISDIR, "a directory"),
    "DirectoryOrCreate": (stat.S_ISDIR, "a directory"),
    "File": (stat.S_ISREG, "a file"),
    "FileOrCreate": (stat.S_ISREG, "a file"),
    "Socket": (stat.S_ISSOCK, "a socket file"),
    "CharDevice": (stat.S_ISCHR, "a character device"),
    "BlockDevice": (stat.S_ISBLK, "a block device"),
}
_KINDS = ("hostPath", "emptyDir", "configMap", "secret", "downwardAPI", "projected")
Lookup = Callable[[str, str], Mapping[str, bytes] | None]
"""Gives the data of a `("ConfigMap"|"Secret", name)`, or None."""
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
_SUBSCRIPT = re.compile(r"(metadata\.labels|metadata\.annotations)\['(.*)'\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The inputs of volumes: the pod, its folder, its node's root, its credentials and the cluster's data."""

    pod: WholePod
    folder: Path
    host: Path
    account: Path
    host_ip: str
    lookup: Lookup


@dataclass(frozen=True, slots=True)
class File:
    """A file of a volume; `mode` None means the volume's default."""

    data: bytes
    mode: int | None = None


def prepare_volume(volume: JSON, sources: Sources) -> Path:
    """Prepares a volume and returns its folder (or file) on this host. Raises BadPod, naming the volume."""
    try:
        if "hostPath" in volume:
            return _prepare_host_path(volume["hostPath"], sources)
        kind = next((kind for kind in _KINDS if kind in volume), "")
        if not kind:
            raise BadPod(f"this node agent knows {', '.join(_KINDS)}")
        folder = sources.folder / "volumes" / str(volume["name"])
        folder.mkdir(parents=True, exist_ok=True)
        # A projected volume has several sources, each in the form of the other kinds.
        parts = (volume["projected"].get("sources") or ()) if kind == "projected" else (volume,)
        files = {path: file for part in parts for path, file in _files_of(part, sources).items()}
        for path, file in files.items():
            target = folder / path
            if not target.resolve().is_relative_to(folder.resolve()):
                raise BadPod(f"volume file {path} would leave the volume")
            default = (volume[kind] or {}).get("defaultMode")
            mode = file.mode if file.mode is not None else default if default is not None else DEFAULT_MODE
            write_atomically(target, file.data, mode)
        return folder
    except BadPod as problem:
        text = f'MountVolume.SetUp failed for volume "{volume["name"]}" : {problem.message}'
        raise BadPod(text, reason="ContainerCreating") from problem


def volume_references(volume: JSON) -> set[tuple[str, str]]:
    """Returns every (kind, name) of ConfigMap and Secret that the volume needs."""
    needed = named_references(volume, {"configMap": "ConfigMap"}, "name")
    needed |= named_references(volume, {"secret": "Secret"}, "secretName")
    for source in (volume.get("projected") or {}).get("sources") or ():
        needed |= named_references(source, {"configMap": "ConfigMap", "secret": "Secret"}, "name")
    return needed


def container_binds(
    container: ContainerSpec, volumes: Mapping[str, Path], account: Path | None, env: Mapping[str, str]
) -> tuple[Bind, ...]:
    """Returns the binds of one container; `account` is the folder of its ServiceAccount's token. Raises BadPod."""
    result = []
    for mount in container.mounts:
        if mount.volume not in volumes:
            raise BadPod(f'volumeMount "{mount.path}" names volume "{mount.volume}", which the pod does not have')
        part = expand_variables(mount.sub_path, env) if mount.expands else mount.sub_path
        volume = volumes[mount.volume]
        source = volume / part
        if not source.resolve().is_relative_to(volume.resolve()):
            raise BadPod(f'failed to prepare subPath "{part}": it leads out of its volume')
        if not source.exists():
            source.mkdir(parents=True)
        result.append(Bind(source, mount.path, read_only=mount.read_only))
    if account is not None and all(mount.path != SERVICE_ACCOUNT_MOUNT for mount in container.mounts):
        result.append(Bind(account, SERVICE_ACCOUNT_MOUNT, read_only=True))
    return tuple(result)


def write_atomically(path: Path, data: bytes, mode: int = DEFAULT_MODE) -> None:
    """Writes a file atomically, so that a reader never sees a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        os.fchmod(file.fileno(), mode)  # whatever the process's umask says
        file.write(data)
    partial.rename(path)


def data_of(obj: JSON) -> dict[str, bytes]:
    """Returns the files for a ConfigMap's or Secret's keys."""
    if obj.get("kind") == "Secret":
        return {key: base64.b64decode(value) for key, value in (obj.get("data") or {}).items()}
    text = {key: value.encode() for key, value in (obj.get("data") or {}).items()}
    return text | {key: base64.b64decode(value) for key, value in (obj.get("binaryData") or {}).items()}


def _prepare_host_path(source: JSON, sources: Sources) -> Path:
    """Returns the path of a hostPath volume, created if its type allows it. Raises BadPod."""
    path = sources.host / str(source["path"]).lstrip("/")
    kind = source.get("type") or ""
    if kind in {"DirectoryOrCreate", ""} and not path.exists():
        path.mkdir(parents=True)
    elif kind == "FileOrCreate" and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    if kind:
        is_kind, described = _HOST_TYPES[kind]
        if not path.exists() or not is_kind(path.stat().st_mode):
            raise BadPod(f"hostPath type check failed: {source['path']} is not {described}")
    return path


def _files_of(source: JSON, sources: Sources) -> dict[str, File]:
    """Returns the files of a volume, or of one source of a projected volume, by path. Raises BadPod."""
    if "emptyDir" in source:
        return {}
    if "serviceAccountToken" in source:
        token = (sources.account / "token").read_bytes()
        return {source["serviceAccountToken"]["path"]: File(token, 0o600)}
    if "configMap" in source:
        return _files_of_keys("ConfigMap", source["configMap"], sources)
    if "secret" in source:
        return _files_of_keys("Secret", source["secret"], sources)
    if "downwardAPI" in source:
        items = source["downwardAPI"].get("items") or ()
        return {item["path"]: File(_field_text(item, sources).encode(), item.get("mode")) for item in items}
    raise BadPod(f"projected volume: no source that this node agent knows: {', '.join(source)}")


def _files_of_keys(kind: str, source: JSON, sources: Sources) -> dict[str, File]:
    """Returns the files of a ConfigMap or Secret: every key, or the selected ones by their paths. Raises BadPod."""
    name = source.get("secretName") or source.get("name") or ""
    data = sources.lookup(kind, name)
    if data is None and not source.get("optional"):
        raise BadPod(f'{kind.lower()} "{name}" not found')
    entries = data or {}
    items: Iterable[JSON] = source.get("items") or [{"key": key, "path": key} for key in entries]
    missing = [item["key"] for item in items if item["key"] not in entries]
    if missing and not source.get("optional"):
        raise BadPod(f"references non-existent {'config' if kind == 'ConfigMap' else 'secret'} key: {missing[0]}")
    return {item["path"]: File(entries[item["key"]], item.get("mode")) for item in items if item["key"] in entries}


def _field_text(item: JSON, sources: Sources) -> str:
    """Returns the value of a downward API item: a field of the pod, or a container's resource. Raises BadPod."""
    if "fieldRef" in item:
        return field_value(sources.pod, item["fieldRef"]["fieldPath"], host_ip=sources.host_ip)
    reference = item["resourceFieldRef"]
    name = reference.get("containerName")
    candidates = (*podspec.containers(sources.pod), *podspec.init_containers(sources.pod))
    container = next((candidate for candidate in candidates if candidate.name == name), None)
    if container is None:
        raise BadPod(f"container {name} not found")
    return resource_value(container, reference)


def container_environment(pod: WholePod, container: ContainerSpec, *, host_ip: str, lookup: Lookup) -> dict[str, str]:
    """Returns the container's environment. Raises BadPod if a source that is not optional is missing."""
    result: dict[str, str] = {}
    # envFrom comes first, so that the entries of env win.
    for source in container.env_from:
        for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if reference := source.get(field):
                data, prefix = _required_data(kind, reference, lookup), source.get("prefix") or ""
                result |= {f"{prefix}{key}": _decode_value(value) for key, value in data.items()}
                break
    for entry in container.env:
        value = _variable_value(pod, container, entry, host_ip=host_ip, lookup=lookup)
        if value is not None:
            # References are expanded only in literal values; values from other sources are used as they are.
            result[entry["name"]] = value if entry.get("valueFrom") else expand_variables(value, result)
    return result


def expand_variables(text: str, values: Mapping[str, str]) -> str:
    """Replaces `$(NAME)` by its value and `$$` by a dollar sign; an unknown name stays as it is written."""

    def replacement(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else values.get(match[1], match[0])

    return _REFERENCE.sub(replacement, text)


def field_value(pod: WholePod, path: str, *, host_ip: str) -> str:
    """Returns the value of a downward API `fieldRef`. Raises BadPod for a path unknown to the kubelet."""
    metadata = pod.metadata
    values_by_path = {
        "metadata.name": metadata.name,
        "metadata.namespace": metadata.namespace,
        "metadata.uid": metadata.uid,
        "spec.nodeName": pod.spec.get("nodeName") or "",
        "spec.serviceAccountName": podspec.service_account(pod),
        "status.hostIP": host_ip,
        "status.hostIPs": host_ip,
        "status.podIP": host_ip,
        "status.podIPs": host_ip,
    }
    if path in values_by_path:
        return values_by_path[path]
    maps = {"metadata.labels": metadata.labels, "metadata.annotations": metadata.annotations}
    if path in maps:
        # JSON quotes the values as Go's `%q` does.
        return "\n".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in sorted(maps[path].items()))
    if match := _SUBSCRIPT.fullmatch(path):
        return maps[match[1]].get(match[2], "")
    raise BadPod(f"unsupported fieldPath: {path}")


def resource_value(container: ContainerSpec, reference: JSON) -> str:
    """Returns the value of a downward API `resourceFieldRef`: the memory limit by its divisor, 0 for others."""
    if reference.get("resource") != "limits.memory":
        return "0"
    divisor = podspec.bytes_of(str(reference.get("divisor") or 1)) or 1
    return str(-(-container.memory_bytes // divisor))


def environment_references(container: ContainerSpec) -> set[tuple[str, str]]:
    """Returns every (kind, name) of ConfigMap and Secret that the container's environment needs."""
    needed: set[tuple[str, str]] = set()
    for entry in container.env:
        needed |= named_references(
            entry.get("valueFrom") or {}, {"configMapKeyRef": "ConfigMap", "secretKeyRef": "Secret"}, "name"
        )
    for source in container.env_from:
        needed |= named_references(source, {"configMapRef": "ConfigMap", "secretRef": "Secret"}, "name")
    return needed


def named_references(source: JSON, kinds: Mapping[str, str], key: str) -> set[tuple[str, str]]:
    """Returns the (kind, name) pairs that `source` names in its fields `kinds`, each by its own field `key`."""
    return {(kind, source[field][key]) for field, kind in kinds.items() if (source.get(field) or {}).get(key)}


def _variable_value(
    pod: WholePod, container: ContainerSpec, entry: JSON, *, host_ip: str, lookup: Lookup
) -> str | None:
    """Returns the value of a variable; None if its source is optional and missing. Raises BadPod."""
    source = entry.get("valueFrom")
    if not source:
        return str(entry.get("value") or "")
    if "fieldRef" in source:
        return field_value(pod, source["fieldRef"]["fieldPath"], host_ip=host_ip)
    if "resourceFieldRef" in source:
        return resource_value(container, source["resourceFieldRef"])
    for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        reference = source.get(field)
        if reference:
            value = _required_data(kind, reference, lookup).get(reference["key"])
            if value is None and not reference.get("optional"):
                place = f"{pod.metadata.namespace}/{reference['name']}"
                raise BadPod(f"couldn't find key {reference['key']} in {kind} {place}")
            return _decode_value(value) if value is not None else None
    raise BadPod(f"environment variable {entry['name']}: no source that this node agent knows")


def _required_data(kind: str, reference: JSON, lookup: Lookup) -> Mapping[str, bytes]:
    data = lookup(kind, reference["name"])
    if data is None and not reference.get("optional"):
        raise BadPod(f'{kind.lower()} "{reference["name"]}" not found')
    return data or {}


def _decode_value(value: bytes) -> str:
    return value.decode(errors="replace")
