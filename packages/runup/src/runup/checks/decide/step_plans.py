"""Plans how each step of an update of Kubernetes is done: its commands, what is paused meanwhile, how it is reverted.

The commands are those of the cluster's distribution (`data/distributions.yaml`). Add-ons that work against an update
are recognised by the images of pods (`pauses` of `data/addons.yaml`). runup itself runs none of these commands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kubekit.api.core_v1 import Node
from kubekit.api.pod_parts import PlacedPod
from kubekit.lang.pattern import Pattern
from kubekit.lang.version import Version
from runup.checks.decide.addon_images import running_addons
from runup.checks.decide.distributions import distribution_of, service_group
from runup.checks.decide.model import Snapshot, Unreadable
from runup.checks.decide.removal_tables import document
from runup.report.report import MAX_LINES, NODES, Part, ReportedStep

Planned = Sequence[tuple[Part, Version]]
BACK_NODES = "replace the nodes with such of {minor}, before the control plane: a kubelet is never taken back in place"
_OWNERS = ("ReplicaSet", "DaemonSet", "StatefulSet")
# Names that the API server accepts. A dump may contain any text, and users type these names into a shell.
_GROUP = Pattern(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_NAME = Pattern(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


def step_plans(snapshot: Snapshot, planned: Planned, *, is_back: bool = False) -> tuple[ReportedStep, ...]:
    """Returns the steps without their risks. With `is_back` they lead back to the minor version before."""
    nodes = _known_nodes(snapshot)
    distribution = distribution_of(nodes)
    groups = sorted({group for node in nodes if _GROUP.fullmatch(group := service_group(node))}) or ["GROUP"]
    pauses = tuple(_addons_to_pause(snapshot))
    steps = []
    for number, (part, version) in enumerate(planned):
        of_nodes = part == NODES
        first, last = number == 0, number == len(planned) - 1
        # Distributions say how a control plane is taken back, but a kubelet never is: its node is replaced.
        text = BACK_NODES if of_nodes else distribution.back
        if not is_back:
            text = distribution.nodes if of_nodes else distribution.control_plane
        words = {"minor": f"{version.major}.{version.minor}", "patch": str(version)}
        # An add-on is paused during the whole update, or during each step of nodes.
        during_all_steps = [row["during"] == "all" for row in pauses]
        steps.append(
            ReportedStep(
                part=part,
                version=words["minor"],
                how=tuple(dict.fromkeys(text.format(group=group, **words) for group in groups))[:MAX_LINES],
                before=tuple(
                    f"Pause {row['name']}: {row['why']}. {row['before']} ({row['source']})"
                    for row, whole in zip(pauses, during_all_steps, strict=True)
                    if (first if whole else of_nodes)
                )[:MAX_LINES],
                after=tuple(
                    f"Let {row['name']} go on: {row['after']}"
                    for row, whole in zip(pauses, during_all_steps, strict=True)
                    if (last if whole else of_nodes)
                )[:MAX_LINES],
                back="" if of_nodes or is_back else distribution.back,
            )
        )
    return tuple(steps)


def with_risks(step: ReportedStep, names: Sequence[str]) -> ReportedStep:
    """Returns the step with the names of the risks that it is the first to meet."""
    return replace(step, risks=tuple(names))


def _known_nodes(snapshot: Snapshot) -> tuple[Node, ...]:
    try:
        return snapshot.all(Node)
    except Unreadable:
        return ()


def _addons_to_pause(snapshot: Snapshot) -> Iterator[Mapping[str, Any]]:
    """Yields the table's rows of the add-ons that run and work against an update, with their names in this cluster."""
    pods = [
        pod for objects in snapshot.objects.values() if objects and isinstance(objects[0], PlacedPod) for pod in objects
    ]
    seen_names: set[str] = set()
    for addon in running_addons(pods, document("addons")["pauses"]):
        if addon.row["name"] not in seen_names:
            seen_names.add(addon.row["name"])
            pod: PlacedPod = addon.pods[0]
            owner = next((owner for owner in pod.metadata.owner_references if owner.kind in _OWNERS), None)
            name = owner.name if owner else ""
            if owner and owner.kind == "ReplicaSet":
                # A Deployment names its ReplicaSets after itself (kubernetes, pkg/controller/deployment/sync.go).
                name = name.rpartition("-")[0]
            namespace = pod.metadata.namespace
            words = {
                "{namespace}": namespace if _NAME.fullmatch(namespace) else "NAMESPACE",
                "{workload}": name if _NAME.fullmatch(name) else "NAME",
                "{replicas}": str(len(addon.pods)),
            }
            yield {**addon.row, **{key: _fill_placeholders(addon.row[key], words) for key in ("before", "after")}}


def _fill_placeholders(text: str, words: Mapping[str, str]) -> str:
    # Not str.format: a patch in JSON has braces of its own.
    for placeholder, word in words.items():
        text = text.replace(placeholder, word)
    return text
