"""The process of a component's operator, which keeps in place what its pod's arguments name.

    component-operator --name storage --namespace NS --release 5.1.0 --operator storage=slow:20 --operand NAME=VERSION

One blocking client and one thread: a sandbox runs several of these beside everything else.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import Conflict, KubeError, NotFound
from kubekit.kube.client_sync import SyncClient
from kubekit.kube.clock import Clock, SystemClock
from runup.api.config_v1 import ClusterOperator
from runup.sandbox.component.behaviour import Expected, parse, status

JSON = dict[str, Any]
OPERATORS = resource_of(ClusterOperator)
DEPLOYMENTS = Resource("apps", "v1", "Deployment", "deployments", namespaced=True)
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
                settled, version = self._reconcile_once()
                if settled:
                    self._until_changed(version)
                else:
                    self._clock.pause(_LOOK_S)
            except KubeError as error:
                _print_line(f"retrying: {error}")
                self._clock.pause(_AGAIN_S)

    def _reconcile_once(self) -> tuple[bool, str]:
        """Reconciles everything one step; returns whether nothing remains to be done, and the resource version of the
        list.
        """
        ready = self._operand_ready()
        page = self._client.send(calls.list_raw(OPERATORS))
        operators_by_name = {item["metadata"]["name"]: item for item in page.items}
        settled = [
            self._write_operator_status(name, operators_by_name.get(name), expected, ready)
            for name, expected in self._component.operators
        ]
        return all(settled), page.resource_version

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
            _print_line(f"{name}: {_words(operator_status)}")
        reached = (operator_status or now).get("versions") == expected.versions
        return reached or expected.behaviour.kind == "stuck"

    def _operand_ready(self) -> bool:
        """Reports whether this version's operand has rolled out; applies it if it is missing or outdated."""
        component = self._component
        try:
            deployment = self._client.send(calls.get_raw(DEPLOYMENTS, OPERAND, component.namespace))
        except NotFound:
            deployment = {}
        if _image(deployment) != _operand(component)["spec"]["template"]["spec"]["containers"][0]["image"]:
            self._client.send(calls.apply(DEPLOYMENTS, _operand(component), field_manager=component.name, force=True))
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


def _words(operator_status: JSON) -> str:
    versions = ", ".join(f"{version['name']} {version['version']}" for version in operator_status["versions"])
    states = ", ".join(f"{condition['type']}={condition['status']}" for condition in operator_status["conditions"])
    return f"{versions or 'no version yet'}; {states}"


def _image(deployment: JSON) -> str:
    containers = deployment.get("spec", {}).get("template", {}).get("spec", {}).get("containers") or [{}]
    return str(containers[0].get("image", ""))


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
    parser.add_argument("--operator", action="append", default=[], metavar="NAME[=BEHAVIOUR]")
    parser.add_argument("--operand", action="append", default=[], metavar="OPERATOR=VERSION")
    options = parser.parse_args(arguments)
    operands = dict(operand.split("=", 1) for operand in options.operand)
    operators = []
    for operator in options.operator:
        name, _, behaviour = operator.partition("=")
        operand_versions = ((name, operands[name]),) if name in operands else ()
        try:
            operators.append((name, Expected(options.release, operand_versions, parse(behaviour or "well"))))
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
