"""`--mock-clusterversion FILE` and `--dump DIR`: files in, the UpdateStatus that they come to out.

The first reads the families of files that `oc` has for its own tests (`NAME-cv.yaml`, `NAME-co.yaml`, ...), by oc's
rules alone and at oc's time: 368975 ns after the newest transition of ClusterVersion and operators. The second reads
those too, and must-gathers, trees of `oc adm inspect` and folders of YAML.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from runup.api import codec
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.api.core_v1 import Node, Pod
from runup.api.machineconfig_v1 import MachineConfig, MachineConfigPool
from runup.api.meta_v1 import Object
from runup.api.scheme import resource_of
from runup.api.update_v1alpha1 import UpdateStatus
from runup.api.workloads_v1 import Deployment, PodDisruptionBudget
from runup.cli.errors import CommandError
from runup.cli.status.source import EPOCH, Found, alerts_note, assessed
from runup.domain.updatestatus.alerts import read_alerts
from runup.domain.updatestatus.control_plane import MACHINE_CONFIG_OPERATOR
from runup.domain.updatestatus.snapshot import (
    CONTROL_PLANE_POOL,
    Alert,
    Snapshot,
    Unreadable,
    in_report_order,
    is_drain_wanted,
)
from runup.lang import yaml as kyaml
from runup.lang.gotext import nanoseconds

K = TypeVar("K", bound=Object)
JSON = dict[str, Any]

MARK = "-cv.yaml"
MOCK_FRACTION_NS = 368975
NO_FILE = "no such file or directory"

# What a report reads of a dump: the plural, which names files and folders of must-gather, and the type.
_KINDS: dict[str, type[Object]] = {
    "clusterversions": ClusterVersion,
    "clusteroperators": ClusterOperator,
    "machineconfigpools": MachineConfigPool,
    "machineconfigs": MachineConfig,
    "nodes": Node,
    "deployments": Deployment,
    "pods": Pod,
    "poddisruptionbudgets": PodDisruptionBudget,
    "updatestatuses": UpdateStatus,
}
_LARGE = 64 * 1024
_STATUSES = ("True", "False", "Unknown")


def mock(path: str, real_now: datetime) -> Found:
    """The case whose ClusterVersion is `path`; raises CommandError. `real_now` is for the ages of nodes, as in oc."""
    if MARK not in path:
        raise CommandError(f"--mock-clusterversion must name a file NAME{MARK}, not {path}: its siblings are read too")

    def part(suffix: str) -> str:
        return path.replace(MARK, suffix, 1)

    clusters = _listed(path, ClusterVersion)
    if not clusters:
        raise CommandError(f"{path} holds no ClusterVersion")
    operators = _listed(part("-co.yaml"), ClusterOperator)
    pools = _listed(part("-mcp.yaml"), MachineConfigPool)
    configs = _listed(part("-mc.yaml"), MachineConfig)
    nodes = _listed(part("-node.yaml"), Node)
    deployment = part("-mco-deployment.yaml")
    deployments = _listed(deployment, Deployment) if os.path.exists(deployment) else ()  # noqa: PTH110
    alerts, problem = _alerts(part("-alerts.json"))
    snapshot = Snapshot(
        cluster_version=clusters[0],
        cluster_operators=operators,
        machine_config_pools=pools,
        nodes=nodes,
        machine_configs=configs,
        machine_config_operator=deployments[0] if deployments else None,
        alerts=alerts,
    )
    now = newest_transition((clusters[0], *operators)) + MOCK_FRACTION_NS
    names = [pool.metadata.name for pool in pools]
    before = names.index(CONTROL_PLANE_POOL) if CONTROL_PLANE_POOL in names else 0
    return Found(assessed(snapshot, now, node_now=real_now), now, alerts_problem=problem, pools_before_master=before)


def newest_transition(objects: Iterable[ClusterVersion | ClusterOperator]) -> int:
    """The newest lastTransitionTime of any condition, in ns since the epoch; 0 without any."""
    times = (
        condition.last_transition_time
        for obj in objects
        for condition in obj.status.conditions
        if condition.last_transition_time
    )
    return nanoseconds(max(times, default=EPOCH) - EPOCH)


def _listed(path: str, kind: type[K]) -> tuple[K, ...]:
    """The objects of a List, or the one object, in `path`."""
    return tuple(_converted(item, kind, path) for item in _items(_document(path)))


def _document(path: str) -> Any:
    try:
        return kyaml.load(Path(path).read_bytes(), name=path)
    except FileNotFoundError as error:
        raise CommandError(f"open {path}: {NO_FILE}") from error
    except kyaml.YamlError as error:
        raise CommandError(str(error)) from error


def _items(document: Any) -> list[Any]:
    if isinstance(document, dict) and isinstance(document.get("items"), list):
        return list(document["items"])
    return [] if document is None else [document]


def _converted(item: Any, kind: type[K], path: str) -> K:
    try:
        try:
            return codec.convert(kind, item)
        except codec.DecodeError:
            return codec.convert(kind, _with_statuses(item))
    except codec.DecodeError as error:
        raise CommandError(f"{path}: not a {resource_of(kind).kind}: {error}") from error


def _with_statuses(item: Any) -> Any:
    """`item` with Unknown for each condition's status that is absent or no status: neither True nor False."""
    status = item.get("status") if isinstance(item, dict) else None
    rows = status.get("conditions") if isinstance(status, dict) else None
    if not isinstance(status, dict) or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return item
    told = [{**row, "status": row["status"] if row.get("status") in _STATUSES else "Unknown"} for row in rows]
    return {**item, "status": {**status, "conditions": told}}


def _alerts(path: str) -> tuple[tuple[Alert, ...] | Unreadable, str]:
    """The alerts, or why there are none and what oc prints for that."""
    try:
        body = Path(path).read_bytes()
    except FileNotFoundError:
        why = f"open {path}: {NO_FILE}"
        return Unreadable(why), alerts_note(why)
    try:
        return read_alerts(body), ""
    except codec.DecodeError as error:
        # The verb is oc's own slip, and scripts may look for the line.
        return Unreadable(str(error)), f"Ignoring alerts in 'Update Health'. Error unmarshaling alerts: %w {error}\n"


def dump(path: str, real_now: datetime, now_ns: int | None) -> Found:
    """The cluster of a dump: a folder, or a folder and the prefix of one case in it; raises CommandError.

    The report of its update status controller, if it has one, else what its objects come to. Its time is the end of the
    must-gather where that is recorded, else the newest transition.
    """
    from runup.sandbox.dump import layout

    try:
        found = layout.find(Path(path))
    except layout.BadDump as error:
        raise CommandError(error.message) from error
    if found.style == "case":
        return mock(str(next(file for file in found.files if file.name.endswith(MARK))), real_now)
    objects, notes = _read(found.files, found.style)
    versions = _of(objects, "clusterversions", ClusterVersion)
    cluster = next((each for each in versions if each.metadata.name == "version"), None)
    if cluster is None:
        raise CommandError(f"{path} holds no ClusterVersion, so it tells nothing of an update")
    operators = tuple(sorted(_of(objects, "clusteroperators", ClusterOperator), key=lambda each: each.metadata.name))
    now = now_ns or _gathered_at(Path(path)) or newest_transition((cluster, *operators))
    written = next((obj for obj in objects["updatestatuses"] if obj.get("status")), None)
    if written is not None:
        return Found(written, now, tuple(notes))
    snapshot = _snapshot(cluster, operators, objects)
    return Found(assessed(snapshot, now), now, tuple(notes))


def _snapshot(
    cluster: ClusterVersion, operators: tuple[ClusterOperator, ...], objects: dict[str, list[JSON]]
) -> Snapshot:
    nodes = tuple(sorted(_of(objects, "nodes", Node), key=lambda node: node.metadata.name))
    pools = _of(objects, "machineconfigpools", MachineConfigPool)
    configs = _of(objects, "machineconfigs", MachineConfig)
    deployments = _of(objects, "deployments", Deployment)
    pods = _of(objects, "pods", Pod)
    draining = {node.metadata.name for node in nodes if is_drain_wanted(node)}
    return Snapshot(
        cluster_version=cluster,
        # A dump without a kind does not mean that the cluster had none.
        cluster_operators=operators or Unreadable(_ABSENT),
        machine_config_pools=in_report_order(pools) or Unreadable(_ABSENT),
        nodes=nodes or Unreadable(_ABSENT),
        machine_configs=configs or Unreadable(_ABSENT),
        machine_config_operator=next(
            (each for each in deployments if each.metadata.name == MACHINE_CONFIG_OPERATOR), None
        ),
        pending_pods=tuple(pod for pod in pods if pod.status.phase == "Pending"),
        draining_pods=tuple(pod for pod in pods if pod.spec.node_name in draining),
        pod_disruption_budgets=_of(objects, "poddisruptionbudgets", PodDisruptionBudget),
    )


_ABSENT = "the dump holds none"


def _of(objects: dict[str, list[JSON]], plural: str, kind: type[K]) -> tuple[K, ...]:
    return tuple(_converted(obj, kind, plural) for obj in objects[plural])


def _read(files: Iterable[Path], style: str) -> tuple[dict[str, list[JSON]], list[str]]:
    """Plural -> objects, each once, and what could not be read. Of a must-gather only files of our kinds are opened."""
    from runup.sandbox.scenario import manifests

    kinds = {resource_of(kind).kind: plural for plural, kind in _KINDS.items()}
    found: dict[str, dict[tuple[str, str, str, str], JSON]] = {plural: {} for plural in _KINDS}
    notes = []
    for file in files:
        if style == "inspect" and not {file.stem, *(part for part in file.parts)} & _KINDS.keys():
            continue
        try:
            objects = _configuration(file) if "machineconfigs" in file.parts else manifests.objects_in(file)
        except manifests.BadManifest as error:
            notes.append(f"warning: not readable, left out: {error.message}\n")
            continue
        for obj in objects:
            plural = kinds.get(obj["kind"])
            if plural:
                found[plural][manifests.identity(obj)] = obj
    return {plural: list(each.values()) for plural, each in found.items()}, notes


def _configuration(file: Path) -> list[JSON]:
    """A rendered MachineConfig embeds whole files: only what stands before its spec is parsed."""
    from runup.sandbox.scenario import manifests

    text = file.read_text(encoding="utf-8", errors="replace") if file.stat().st_size > _LARGE else ""
    head, found, rest = text.partition("\nspec:\n")
    if found and "\nmetadata:" in f"\n{head}" and "\nmetadata:" not in rest and "\nkind:" in f"\n{head}":
        document = kyaml.load(head)
        if isinstance(document, dict) and document.get("kind") == "MachineConfig":
            return [document]
    return manifests.objects_in(file)


_TIMESTAMP = re.compile(r"(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2})(\.\d{1,9})? ([+-]\d{4})")


def _gathered_at(folder: Path) -> int | None:
    """When a must-gather ended: the last line of its file `timestamp`."""
    file = next(iter(sorted(folder.glob("timestamp")) or sorted(folder.glob("*/timestamp"))), None)
    matches = _TIMESTAMP.findall(file.read_text(errors="replace")) if file else []
    if not matches:
        return None
    day, time, _fraction, zone = matches[-1]
    ended = datetime.strptime(f"{day} {time} {zone}", "%Y-%m-%d %H:%M:%S %z")
    return nanoseconds(ended - EPOCH)


_RFC3339 = re.compile(r"(\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})")


def parse_moment(text: str) -> int:
    """Nanoseconds since the epoch of an RFC 3339 time; raises CommandError."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise CommandError(f'--mock-now must be a time such as 2026-01-02T03:04:05Z, not "{text}"')
    whole, fraction, zone = match.groups()
    try:
        seconds = datetime.fromisoformat(whole.upper() + ("+00:00" if zone in "Zz" else zone))
    except ValueError as error:
        raise CommandError(f"--mock-now {text}: {error}") from error
    return nanoseconds(seconds - EPOCH) + int((fraction or "").ljust(9, "0"))
