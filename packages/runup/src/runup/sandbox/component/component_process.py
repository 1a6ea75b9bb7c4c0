"""The process of a component's operator, which maintains the objects that its pod's arguments name.

    component-operator --name storage --namespace NS --release 5.1.0 --operator storage=slow:20 --operand NAME=VERSION
                       --feature-set TechPreviewNoUpgrade

One blocking client and one thread: a sandbox runs several of these next to everything else. Behaviours:

well         at the new version as soon as its operand is           stuck     progressing, for ever
slow:SECONDS the same, so many seconds later                        crash     its process ends with an error
degraded     at the new version, and Degraded
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import Conflict, KubeError, NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import Clock, SystemClock
from runup.api.config_v1 import ClusterOperator

JSON = dict[str, Any]

KINDS = ("well", "slow", "degraded", "stuck", "crash")
# Components of a real cluster take minutes, which is too long for a sandbox that somebody watches.
_AT_LEAST_S = 0.5


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A behaviour: one of KINDS; `seconds` is the minimum duration of an update."""

    kind: str = "well"
    seconds: float = _AT_LEAST_S


@dataclass(frozen=True, slots=True)
class Expected:
    """The desired state of an operator: its version, those of its operands by name, and its behaviour.

    `feature_set` is one that forbids minor updates; empty for any other.
    """

    version: str
    operands: tuple[tuple[str, str], ...] = ()
    behaviour: Behaviour = Behaviour()
    feature_set: str = ""

    @property
    def versions(self) -> list[JSON]:
        """The versions as ClusterOperator's status lists them."""
        return [{"name": name, "version": version} for name, version in (("operator", self.version), *self.operands)]


def parse(text: str) -> Behaviour:
    """Returns the behaviour that a manifest names; raises ValueError that lists the valid ones."""
    kind, _, seconds = text.partition(":")
    if kind not in KINDS or (seconds and kind != "slow"):
        raise ValueError(f"there is no behaviour {text!r}; choose one of {', '.join(KINDS)} (slow:SECONDS)")
    if kind != "slow":
        return Behaviour(kind)
    try:
        return Behaviour(kind, float(seconds))
    except ValueError as error:
        raise ValueError(f"behaviour {text!r} needs a number of seconds, such as slow:20") from error


def status(now: JSON, expected: Expected, *, running_s: float, operand_ready: bool, at: datetime) -> JSON | None:
    """Returns the new status of the ClusterOperator, or None if it needs no change.

    `now` is its status; `running_s` is how long (seconds) this version of the operator has run. The status of an
    operator that is at its version and well is not touched, so that what a scenario sets (Upgradeable, messages) stays.
    """
    behaviour = expected.behaviour
    before = list(now.get("conditions") or ())
    versions = now.get("versions") or []
    at_version = versions == expected.versions
    is_done = at_version or (running_s >= behaviour.seconds and operand_ready and behaviour.kind != "stuck")
    own_version = next((str(version["version"]) for version in versions if version["name"] == "operator"), "")
    version = expected.version if is_done else own_version
    available = _condition("Available", "True", "AsExpected", f"Available at {version}")
    if not version:
        # A new cluster's component is not available yet, and its release waits for it.
        available = _condition("Available", "False", "Installing", f"{expected.version} is being installed")
    progressing = _condition("Progressing", "True", "Updating", f"Working towards {expected.version}")
    if is_done:
        progressing = _condition("Progressing", "False", "AsExpected", "")
    degraded = _condition("Degraded", "False", "AsExpected", "")
    if is_done and behaviour.kind == "degraded":
        message = "The operand fails its health checks since the update."
        degraded = _condition("Degraded", "True", "OperandFailing", message)
    restricted = (restricted_upgradeable(expected.feature_set),) if expected.feature_set else ()
    conditions = {str(condition["type"]): condition for condition in before}
    stamp = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    for condition in (available, progressing, degraded, *restricted):
        current = conditions.get(condition["type"]) or {}
        if current.get("status") != condition["status"]:
            conditions[condition["type"]] = condition | {"lastTransitionTime": stamp}
        # An unchanged status with a reason other than AsExpected gets the new message.
        elif condition["reason"] != "AsExpected" and current.get("message") != condition.get("message"):
            conditions[condition["type"]] = condition | {"lastTransitionTime": current.get("lastTransitionTime", stamp)}
    new_status = {"versions": expected.versions if is_done else versions, "conditions": list(conditions.values())}
    return None if new_status == {"versions": versions, "conditions": before} else new_status


def restricted_upgradeable(feature_set: str) -> JSON:
    """Returns Upgradeable of an operator that forbids minor updates because of the cluster's feature set.

    The words are those of openshift/cluster-kube-apiserver-operator, pkg/operator/featureupgradablecontroller.
    """
    reason = f"FeatureGates_RestrictedFeatureGates_{feature_set}"
    message = f'FeatureGatesUpgradeable: "{feature_set}" does not allow updates'
    return _condition("Upgradeable", "False", reason, message)


def forbids_updates(operator: str, feature_set: str) -> bool:
    """Returns whether the ClusterOperator of that name forbids minor updates in a cluster with this feature set."""
    return operator == "kube-apiserver" and feature_set.endswith("NoUpgrade")


def _condition(kind: str, value: str, reason: str, message: str) -> JSON:
    return {"type": kind, "status": value, "reason": reason} | ({"message": message} if message else {})


OPERATORS = resource_of(ClusterOperator)
DEPLOYMENTS = Resource(group="apps", version="v1", kind="Deployment", plural="deployments", namespaced=True)
OPERAND = "operand"
# Pauses in seconds: while something is not ready yet, and after an error.
_LOOK_S, _AGAIN_S = 0.2, 1.0


@dataclass(frozen=True, slots=True)
class Component:
    """The component as its arguments describe it: operators by name, and where its operand runs."""

    name: str
    namespace: str
    version: str
    operators: tuple[tuple[str, Expected], ...]


class ComponentController:
    """The control loop of a component's ClusterOperators and operand."""

    def __init__(self, component: Component, client: SyncClient, clock: Clock) -> None:
        self._component = component
        self._client = client
        self._clock = clock
        self._started = clock.monotonic()

    def run(self) -> None:
        """Reconciles until the process gets a signal to end."""
        while True:
            try:
                ready = self._operand_ready()
                page = self._client.send(calls.list_raw(OPERATORS))
                operators_by_name = {item["metadata"]["name"]: item for item in page.items}
                settled = [
                    self._write_operator_status(name, operators_by_name.get(name), expected, ready)
                    for name, expected in self._component.operators
                ]
                if all(settled):
                    self._until_changed(page.resource_version)
                else:
                    self._clock.pause(_LOOK_S)
            except KubeError as error:
                _print_line(f"retrying: {error}")
                self._clock.pause(_AGAIN_S)

    def _write_operator_status(self, name: str, operator: JSON | None, expected: Expected, ready: bool) -> bool:
        """Writes the status of one operator; returns whether it is in its final state."""
        if operator is None:
            return True  # the operator that applies the release creates it, and the watch reports that
        now = operator.get("status") or {}
        running_s = self._clock.monotonic() - self._started
        operator_status = status(now, expected, running_s=running_s, operand_ready=ready, at=self._client.now())
        if operator_status is not None:
            body = {"metadata": {"resourceVersion": operator["metadata"]["resourceVersion"]}, "status": operator_status}
            try:
                self._client.send(calls.merge_patch(OPERATORS, name, body, subresource="status"))
            except (Conflict, NotFound):
                return False
            versions = ", ".join(f"{each['name']} {each['version']}" for each in operator_status["versions"])
            states = ", ".join(f"{each['type']}={each['status']}" for each in operator_status["conditions"])
            _print_line(f"{name}: {versions or 'no version yet'}; {states}")
        reached = (operator_status or now).get("versions") == expected.versions
        return reached or expected.behaviour.kind == "stuck"

    def _operand_ready(self) -> bool:
        """Reports whether this version's operand has rolled out; applies it if it is missing or outdated."""
        component = self._component
        try:
            deployment = self._client.send(calls.get_raw(DEPLOYMENTS, OPERAND, component.namespace))
        except NotFound:
            deployment = {}
        containers = deployment.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or [{}]
        operand = _operand(component)
        if containers[0].get("image") != operand["spec"]["template"]["spec"]["containers"][0]["image"]:
            self._client.send(calls.apply(DEPLOYMENTS, operand, field_manager=component.name, force=True))
            return False
        state, replicas = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
        current = state.get("observedGeneration") == deployment["metadata"]["generation"]
        return bool(current and state.get("updatedReplicas") == state.get("availableReplicas") == replicas)

    def _until_changed(self, version: str) -> None:
        names = {name for name, _ in self._component.operators}
        for event in self._client.watch(ClusterOperator, resource_version=version):
            if event.type != "BOOKMARK" and event.object.metadata.name in names:
                return


def _print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _operand(component: Component) -> JSON:
    """Returns the component's operand: one pod in which nothing runs, because the node declares it ready."""
    labels = {"app": f"{component.name}-{OPERAND}"}
    image = f"registry.runup.example/{component.name}-{OPERAND}:{component.version}"
    return {
        "metadata": {"name": OPERAND, "namespace": component.namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"tolerations": [{"operator": "Exists"}], "containers": [{"name": OPERAND, "image": image}]},
            },
        },
    }


def component_of(arguments: Sequence[str]) -> Component:
    """Returns the component that the arguments describe; exits 2 with one line if they are not valid."""
    parser = argparse.ArgumentParser(prog="component-operator")
    for name in ("--name", "--namespace", "--release"):
        parser.add_argument(name, required=True)
    parser.add_argument("--feature-set", default="")
    parser.add_argument("--operator", action="append", default=[], metavar="NAME[=BEHAVIOUR]")
    parser.add_argument("--operand", action="append", default=[], metavar="OPERATOR=VERSION")
    options = parser.parse_args(arguments)
    operands = dict(operand.split("=", 1) for operand in options.operand)
    operators = []
    for operator in options.operator:
        name, _, behaviour = operator.partition("=")
        operand_versions = ((name, operands[name]),) if name in operands else ()
        feature_set = options.feature_set if forbids_updates(name, options.feature_set) else ""
        try:
            expected = Expected(options.release, operand_versions, parse(behaviour or "well"), feature_set)
            operators.append((name, expected))
        except ValueError as error:
            parser.error(f"--operator {operator}: {error}")
    return Component(options.name, options.namespace, options.release, tuple(operators))


def main() -> None:
    """Runs the operator; exits 1 if its behaviour is crash."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    component = component_of(sys.argv[1:])
    crashing = [name for name, expected in component.operators if expected.behaviour.kind == "crash"]
    if crashing:
        sys.exit(f"panic: {', '.join(crashing)}: assignment to entry in nil map")
    with SyncClient(config.load(), user_agent=f"{component.name}/{component.version}") as client:
        ComponentController(component, client, SystemClock()).run()


if __name__ == "__main__":
    main()
