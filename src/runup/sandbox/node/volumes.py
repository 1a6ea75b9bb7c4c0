"""A pod's volumes on this node: what is to be mounted where, with the files written that the cluster supplies."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from runup.sandbox.node.podspec import SERVICE_ACCOUNT_MOUNT, BadPod, ContainerSpec
from runup.sandbox.node.runner import Bind

JSON = dict[str, Any]


class Config(Protocol):
    """Looks up the data of a ConfigMap or Secret, values as text or base64 of bytes; None where there is none."""

    def __call__(self, kind: str, name: str) -> Mapping[str, bytes] | None:
        """The files that its keys make."""
        ...


def prepare(volume: JSON, folder: Path, *, host: Path, config: Config, account: Path) -> Path:
    """The folder (or file) on this host that the volume is; `host` stands for the node's root. Raises BadPod."""
    name = str(volume["name"])
    target = folder / "volumes" / name
    if "hostPath" in volume:
        return _host_path(volume["hostPath"], host)
    if "emptyDir" in volume:
        target.mkdir(parents=True, exist_ok=True)
        return target
    if "configMap" in volume or "secret" in volume:
        kind = "ConfigMap" if "configMap" in volume else "Secret"
        source = volume["configMap" if kind == "ConfigMap" else "secret"]
        _write_files(target, _files(kind, source, config))
        return target
    if "projected" in volume:
        for source in volume["projected"].get("sources") or ():
            _write_files(target, _projected(source, config, account))
        return target
    raise BadPod(f"volume {name}: this node agent knows hostPath, emptyDir, configMap, secret and projected")


def binds(container: ContainerSpec, volumes: Mapping[str, Path], account: Path | None) -> tuple[Bind, ...]:
    """What one container sees; `account` is the folder of its ServiceAccount's token."""
    found = []
    for mount in container.mounts:
        if mount.volume not in volumes:
            raise BadPod(f'volumeMount "{mount.path}" names volume "{mount.volume}", which the pod does not have')
        source = volumes[mount.volume]
        found.append(Bind(source / mount.sub_path if mount.sub_path else source, mount.path, read_only=mount.read_only))
    if account is not None and all(mount.path != SERVICE_ACCOUNT_MOUNT for mount in container.mounts):
        found.append(Bind(account, SERVICE_ACCOUNT_MOUNT, read_only=True))
    return tuple(found)


def write(path: Path, data: bytes, mode: int = 0o644) -> None:
    """Write a file in one step, so that a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
        file.write(data)
    partial.rename(path)


def _host_path(source: JSON, host: Path) -> Path:
    path = host / str(source["path"]).lstrip("/")
    kind = source.get("type") or ""
    if kind in {"DirectoryOrCreate", ""}:
        path.mkdir(parents=True, exist_ok=True)
    elif kind == "FileOrCreate":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    elif not path.exists():
        raise BadPod(f"hostPath type check failed: {source['path']} is not a {kind}", reason="ContainerCreating")
    return path


def _files(kind: str, source: JSON, config: Config) -> dict[str, bytes]:
    name = source.get("secretName") or source.get("name") or ""
    data = config(kind, name)
    if data is None:
        if source.get("optional"):
            return {}
        raise BadPod(f'{kind.lower()} "{name}" not found', reason="ContainerCreating")
    items = source.get("items")
    if not items:
        return dict(data)
    missing = [item["key"] for item in items if item["key"] not in data]
    if missing and not source.get("optional"):
        raise BadPod(f"references non-existent config key: {missing[0]}", reason="ContainerCreating")
    return {item["path"]: data[item["key"]] for item in items if item["key"] in data}


def _projected(source: JSON, config: Config, account: Path) -> dict[str, bytes]:
    if "serviceAccountToken" in source:
        return {source["serviceAccountToken"]["path"]: (account / "token").read_bytes()}
    if "configMap" in source or "secret" in source:
        kind = "ConfigMap" if "configMap" in source else "Secret"
        return _files(kind, source["configMap" if kind == "ConfigMap" else "secret"], config)
    return {}


def _write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        target = (folder / name).resolve()
        if not target.is_relative_to(folder.resolve()):
            raise BadPod(f"volume file {name} would leave the volume")
        write(target, data)


def data_of(obj: JSON) -> dict[str, bytes]:
    """The files that a ConfigMap's or Secret's keys make."""
    if obj.get("kind") == "Secret":
        return {key: base64.b64decode(value) for key, value in (obj.get("data") or {}).items()}
    text = {key: value.encode() for key, value in (obj.get("data") or {}).items()}
    return text | {key: base64.b64decode(value) for key, value in (obj.get("binaryData") or {}).items()}
