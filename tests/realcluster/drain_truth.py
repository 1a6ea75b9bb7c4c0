"""A rehearsed drain of both nodes next to the real one: `runup rehearse drain` first, then every eviction for real.

Compared are, node by node, which pods could not be evicted at once and by which budgets, which had to be deleted by
hand, which had no place while the node was away and in which words of the scheduler's; in the end, which have none. The
nodes are drained in the rehearsal's order. What never goes is deleted by hand, as the rehearsal takes it to be.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.realcluster import drain_record
from tests.realcluster.cluster import RealCluster
from tests.realcluster.kube import PODS, Kube, metadata, pod_ready
from tests.realcluster.seeded_drain import DISK, DISKS, HIGH, SeededDrain

from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, NotFound

JSON = dict[str, Any]
SEVERAL = "more than one budget"
"""What represents the budgets of a pod that has several."""
ANSWERS = (
    "could not be evicted at once, and by which budget",
    "had to be deleted by hand",
    "had no place while the node was away",
    "why they had none, in the scheduler's words",
    "had no place in the end",
)
# kube-scheduler tries a pod again that found no place at the latest after this, podMaxBackoffSeconds, when something
# has changed for it.
_BACKOFF_S = 10.0
_QUIET_S = _BACKOFF_S + 3.0
_NEEDS = re.compile(r"disruption budget (\S+) needs")
_DRAIN_MINUTES = 1


@dataclass
class Agreement:
    """How often both said the same, by what was compared; `seconds` are pairs of rehearsed and real drains.

    `happened` counts the answers that were about something: pods that were refused, or had no place; `races` those that
    differ and are about a workload that competes for room, as the rehearsal said. `as_it_was` has of each seed with a
    difference what the API server did, line by line.
    """

    asked: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)
    same: Counter[str] = field(default_factory=Counter)
    races: Counter[str] = field(default_factory=Counter)
    different: list[str] = field(default_factory=list)
    seconds: list[tuple[float, float]] = field(default_factory=list)
    pods: int = 0
    as_it_was: dict[str, list[str]] = field(default_factory=dict)

    def compare(self, what: str, where: str, rehearsed: object, real: object, *, competes: bool) -> None:
        """Counts one answer."""
        self.asked[what] += 1
        self.happened[what] += bool(rehearsed or real)
        if rehearsed == real:
            self.same[what] += 1
        else:
            self.races[what] += competes
            said = ", and named as a race" if competes else ""
            self.different.append(f"{where}: {what}: rehearsed {rehearsed}, real {real}{said}")


@dataclass
class Drained:
    """What became of a node: by workload, the pods that were refused at first, with their budgets; those deleted."""

    refused: dict[str, Counter[str]] = field(default_factory=dict)
    by_hand: Counter[str] = field(default_factory=Counter)
    lacking: Counter[str] = field(default_factory=Counter)
    why: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


class DrainTruth:
    """The workloads of one seed on the cluster."""

    def __init__(self, cluster: RealCluster, kube: Kube, drain: SeededDrain) -> None:
        self._cluster, self._kube, self._drain = cluster, kube, drain

    def compare(self, agreement: Agreement) -> None:
        """Rehearses, drains, and compares; nothing of the seed is left."""
        log, different = self._cluster.plane.audit_log, len(agreement.different)
        with self._installed():
            self._settled()
            agreement.pods += len(self._pods())
            why_before = self._reasons()
            rehearsed, drained_from = self.rehearsed(), log.stat().st_size
            self._compare_words(agreement, rehearsed, when="before", why=why_before, waits=_waits_from_before)
            (pool,) = (pool for pool in rehearsed["pools"] if pool["nodes"])
            for node in pool["nodes"]:
                real = self._drain_node(node["node"])
                self._compare_node(agreement, rehearsed, node, real)
            self._settled()
            where = f"{self._drain.namespace}, in the end"
            homeless = _counted(each for each in rehearsed["unplaced"] if each["toSeconds"] is None)
            competing = bool(self._competing(rehearsed))
            agreement.compare(ANSWERS[4], where, self._ours(homeless), self._lacking(), competes=competing)
            self._compare_words(agreement, rehearsed, when="in the end", why=self._reasons(), waits=_waits_for_ever)
            if len(agreement.different) > different:
                agreement.as_it_was[self._drain.namespace] = _recorded(log, drained_from, self._drain.namespace)

    def rehearsed(self) -> JSON:
        """What `runup rehearse drain` says about the cluster as it is, as data."""
        environ = {**os.environ, "KUBECONFIG": str(self._cluster.kubeconfig), "NO_COLOR": "1"}
        words = ("rehearse", "drain", "--force", f"--drain-minutes={_DRAIN_MINUTES}", "--node-minutes=1", "-o", "json")
        done = subprocess.run(
            [sys.executable, "-m", "runup", *words], env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, 2), f"{done.returncode}: {done.stdout[-2000:]}{done.stderr}"
        said: JSON = json.loads(done.stdout)
        assert said["unknown"] == [], said["unknown"]
        return said

    @contextmanager
    def _installed(self) -> Iterator[None]:
        for name, disk in zip(self._cluster.names, DISKS, strict=False):
            self._kube.patch("v1", "Node", name, {"metadata": {"labels": {DISK: disk}}})
        high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata(HIGH), "value": 10}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata("default", self._drain.namespace)}
        namespace, *others = self._drain.objects
        self._kube.apply(high, namespace, account, *others)
        try:
            yield
        finally:
            for name in self._cluster.names:
                self._cordon(name, cordoned=False)
                self._kube.patch("v1", "Node", name, {"metadata": {"labels": {DISK: None}}})
            self._kube.delete("v1", "Namespace", self._drain.namespace)
            gone = f"namespace {self._drain.namespace} is gone"
            self._kube.until(lambda: not self._kube.get("v1", "Namespace", self._drain.namespace), gone)
            self._kube.delete("scheduling.k8s.io/v1", "PriorityClass", HIGH)

    def _drain_node(self, node: str) -> Drained:
        """Drains a node, waits until nothing moves any more, and lets pods in again."""
        found = Drained()
        self._cordon(node, cordoned=True)
        began = time.monotonic()
        for pod in sorted(self._on(node), key=lambda each: str(each["metadata"]["name"])):
            if by := self._evict(pod):
                found.refused.setdefault(_app(pod), Counter())[by] += 1
        quiet = _Quiet()

        def emptied() -> bool:
            remaining = self._on(node, ending=True)
            waiting = [pod for pod in remaining if "deletionTimestamp" not in pod["metadata"]]
            refused = [bool(self._evict(pod)) for pod in waiting]
            if waiting and all(refused) and self._nothing_moves(quiet):
                for pod in waiting:
                    found.by_hand[_app(pod)] += 1
                    self._kube.delete("v1", "Pod", pod["metadata"]["name"], self._drain.namespace)
            return not remaining

        self._kube.until(emptied, f"{node} is empty")
        found.seconds = time.monotonic() - began
        self._settled()
        found.lacking = self._lacking()
        found.why = self._reasons()
        self._cordon(node, cordoned=False)
        self._settled()
        return found

    def _compare_node(self, agreement: Agreement, rehearsed: JSON, node: JSON, real: Drained) -> None:
        where = f"{self._drain.namespace}, {node['node']}"
        refused: dict[str, Counter[str]] = {}
        by_hand: Counter[str] = Counter()
        for each in node["blocked"]:
            app = self._app_of(each["pod"])
            if app:
                by = SEVERAL if len(each["by"]) > 1 else each["by"][0].rpartition("/")[2]
                refused.setdefault(app, Counter())[by] += 1
                by_hand[app] += each["toSeconds"] is None
        away = [
            each
            for each in rehearsed["unplaced"]
            if each["fromSeconds"] < node["backSeconds"]
            and (each["toSeconds"] is None or each["toSeconds"] >= node["backSeconds"])
        ]
        lacking = self._ours(_counted(away))
        competing = self._competing(rehearsed)
        for app in self._drain.apps:
            at, competes = f"{where}, {app}", app in competing
            refusals = refused.get(app, Counter()), real.refused.get(app, Counter())
            agreement.compare(ANSWERS[0], at, *refusals, competes=competes)
            agreement.compare(ANSWERS[1], at, by_hand[app], real.by_hand[app], competes=competes)
            agreement.compare(ANSWERS[2], at, lacking[app], real.lacking[app], competes=competes)
        self._compare_words(
            agreement, rehearsed, when=node["node"], why=real.why, waits=lambda each: _begins_to_wait(each, node)
        )
        if not by_hand and not real.by_hand:
            agreement.seconds.append((node["drainedSeconds"] - node["fromSeconds"], round(real.seconds, 1)))

    def _compare_words(
        self, agreement: Agreement, rehearsed: JSON, when: str, why: dict[str, str], waits: Callable[[JSON], bool]
    ) -> None:
        """Compares the scheduler's words at a moment with those of the rehearsal's entries that are of that moment."""
        competing = self._competing(rehearsed)
        said = {
            _app_in(each["workload"]): _first_sentence(each["why"]) for each in rehearsed["unplaced"] if waits(each)
        }
        for app in sorted(said.keys() & why.keys() & self._drain.apps.keys()):
            where = f"{self._drain.namespace}, {when}, {app}"
            agreement.compare(ANSWERS[3], where, said[app], why[app], competes=app in competing)

    def _reasons(self) -> dict[str, str]:
        """By workload, why the scheduler has no node for its pods now."""
        return {_app(pod): _reason(pod) for pod in self._pods() if "nodeName" not in pod["spec"]}

    def _competing(self, rehearsed: JSON) -> set[str]:
        """The seed's workloads of which the rehearsal says that it is a race which of them gets the room."""
        racing = [each for each in rehearsed["unplaced"] if each["rivals"]]
        named = {name for each in racing for name in (each["workload"], *each["rivals"])}
        return {_app_in(name) for name in named} & self._drain.apps.keys()

    def _evict(self, pod: JSON) -> str:
        """Asks for a pod's eviction; returns the budget that refuses it, or ""."""
        about = metadata(pod["metadata"]["name"], pod["metadata"]["namespace"])
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": about}
        try:
            self._kube.client.send(calls.create(PODS, eviction, subresource="eviction", name=about["name"]))
        except NotFound:
            return ""
        except ApiError as error:
            if error.code == 500 and "more than one PodDisruptionBudget" in error.message:
                return SEVERAL
            details = error.status.details
            needs = [_NEEDS.search(cause.message) for cause in (details.causes if details is not None else ())]
            if error.code != 429 or not any(needs):
                raise
            return next(match[1] for match in needs if match)
        return ""

    def _cordon(self, node: str, *, cordoned: bool) -> None:
        self._kube.patch("v1", "Node", node, {"spec": {"unschedulable": cordoned or None}})

    def _pods(self) -> list[JSON]:
        return self._kube.listed("v1", "Pod", self._drain.namespace)

    def _on(self, node: str, *, ending: bool = False) -> list[JSON]:
        return [
            pod
            for pod in self._pods()
            if pod["spec"].get("nodeName") == node and (ending or "deletionTimestamp" not in pod["metadata"])
        ]

    def _lacking(self) -> Counter[str]:
        """By workload, the pods that there should be and that have no node. A bare pod that was drained is lost."""
        placed = Counter(_app(pod) for pod in self._pods() if "nodeName" in pod["spec"])
        made = {_app(pod) for pod in self._pods()}
        apps = (app for app in self._drain.apps.values() if app.kind != "Pod" or app.name in made)
        return Counter({app.name: app.replicas - placed[app.name] for app in apps if app.replicas > placed[app.name]})

    def _settled(self) -> None:
        """Returns once every pod has its node and is as ready as it becomes; or those without one were tried again."""
        quiet = _Quiet()
        self._kube.until(lambda: self._nothing_moves(quiet), f"the pods of {self._drain.namespace} are where they stay")

    def _nothing_moves(self, quiet: _Quiet) -> bool:
        """Whether no pod ends or starts, every budget has counted its pods, and places were looked for in vain."""
        pods = self._pods()
        if any("deletionTimestamp" in pod["metadata"] or not self._has_started(pod) for pod in pods):
            return False
        budgets = self._kube.listed("policy/v1", "PodDisruptionBudget", self._drain.namespace)
        over = Counter(map(_app_under, budgets))
        # Of several budgets over a pod the disruption controller counts one again when the pod changes (getPdbForPod),
        # and the others' numbers decide nothing: the eviction API refuses whatever they are.
        if not all(_has_counted(budget, pods) for budget in budgets if over[_app_under(budget)] == 1):
            return False
        return quiet.holds(self._state(), _QUIET_S if self._lacking() else 0)

    def _has_started(self, pod: JSON) -> bool:
        """Whether a pod is as ready as it becomes; of one without a node, whether the scheduler has said why."""
        if "nodeName" not in pod["spec"]:
            return bool(_reason(pod))
        if self._drain.apps[_app(pod)].becomes_ready:
            return pod_ready(pod)
        return any("running" in each["state"] for each in pod["status"].get("containerStatuses", ()))

    def _state(self) -> object:
        return sorted(
            (pod["metadata"]["name"], pod["spec"].get("nodeName", ""), pod_ready(pod)) for pod in self._pods()
        )

    def _app_of(self, pod: str) -> str:
        """The workload of a pod that the rehearsal names NAMESPACE/NAME; "" if it is none of ours."""
        namespace, _, name = pod.partition("/")
        return name.partition("-")[0] if namespace == self._drain.namespace else ""

    def _ours(self, counted: Counter[str]) -> Counter[str]:
        """Of counted workloads (KIND NAMESPACE/NAME) those of the seed, by name."""
        mine = f" {self._drain.namespace}/"
        return Counter({_app_in(named): pods for named, pods in counted.items() if mine in named})


def _recorded(log: Path, since: int, namespace: str) -> list[str]:
    """What an audit log has of a namespace's pods from there on, line by line."""
    with log.open("rb") as file:
        file.seek(since)
        # The last line may be half written.
        whole = file.read().decode().rpartition("\n")[0]
    found = list(drain_record.steps(whole.splitlines(), namespace))
    return [step.after(found[0].at) for step in found]


class _Quiet:
    """Since when a state is the same."""

    def __init__(self) -> None:
        self._state: object = None
        self._since = time.monotonic()

    def holds(self, state: object, seconds: float) -> bool:
        """Whether the state has been the same for so long."""
        if state != self._state:
            self._state, self._since = state, time.monotonic()
        return time.monotonic() - self._since >= seconds


# The words of an entry are of the moment when it began to wait, and of one that waits for ever those of the end.
def _waits_for_ever(entry: JSON) -> bool:
    return entry["toSeconds"] is None


def _waits_from_before(entry: JSON) -> bool:
    return bool(entry["before"]) and not _waits_for_ever(entry)


def _begins_to_wait(entry: JSON, node: JSON) -> bool:
    """Whether pods begin to wait while the node is drained, and wait until it is back."""
    if entry["before"] or _waits_for_ever(entry):
        return False
    return bool(node["fromSeconds"] <= entry["fromSeconds"] < node["backSeconds"] <= entry["toSeconds"])


def _counted(unplaced: Any) -> Counter[str]:
    counted: Counter[str] = Counter()
    for each in unplaced:
        counted[each["workload"]] += each["pods"]
    return counted


def _app(pod: JSON) -> str:
    return str(pod["metadata"]["labels"]["app"])


def _app_in(workload: str) -> str:
    return workload.rpartition("/")[2]


def _reason(pod: JSON) -> str:
    """Why the scheduler has no node for a pod; "" until it has said so."""
    conditions = {each["type"]: each for each in pod["status"].get("conditions", ())}
    scheduled = conditions.get("PodScheduled", {})
    return _first_sentence(scheduled.get("message", "")) if scheduled.get("status") == "False" else ""


def _first_sentence(text: str) -> str:
    """Without what the scheduler says about preemption after it."""
    return text.partition(". ")[0].rstrip(".")


def _app_under(budget: JSON) -> str:
    return str(budget["spec"]["selector"]["matchLabels"]["app"])


def _has_counted(budget: JSON, pods: list[JSON]) -> bool:
    status = budget.get("status", {})
    healthy = sum(pod_ready(pod) for pod in pods if _app(pod) == _app_under(budget))
    current = status.get("observedGeneration") == budget["metadata"]["generation"]
    return current and status.get("currentHealthy") == healthy and not status.get("disruptedPods")
