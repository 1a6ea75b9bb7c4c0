"""An administrator's hands on a cluster: objects by apiVersion and kind, pods' logs, and waiting for a fact."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from tests.servers import eventually

from kubekit.api.scheme import Resource
from kubekit.kube import calls, config
from kubekit.kube.api_errors import KubeError, NotFound
from kubekit.kube.client_sync import SyncClient

JSON = dict[str, Any]
MANAGER = "realcluster"
PODS = Resource(group="", version="v1", kind="Pod", plural="pods", namespaced=True)
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
STALLED_S = 240.0
LOOKS_S = 10.0


class Kube:
    """A connection; kinds are looked up in the server's discovery."""

    def __init__(self, kubeconfig: Path) -> None:
        self.client = SyncClient(config.load(str(kubeconfig)))
        self._kinds: dict[tuple[str, str], Resource] = {}
        self.signs: list[Callable[[], Any]] = [self._pod_states]
        """What changes while the cluster is getting somewhere."""

    def close(self) -> None:
        """Closes the connection."""
        self.client.close()

    def resource(self, api_version: str, kind: str) -> Resource:
        """How the server serves the kind; raises LookupError if it does not."""
        if (api_version, kind) not in self._kinds:
            group, _, version = api_version.rpartition("/")
            path = f"/apis/{api_version}" if group else f"/api/{version}"
            for each in msgspec.json.decode(self.client.send(calls.get_path(path)))["resources"]:
                if "/" not in each["name"]:
                    found = Resource(
                        group=group,
                        version=version,
                        kind=each["kind"],
                        plural=each["name"],
                        namespaced=each["namespaced"],
                    )
                    self._kinds[api_version, each["kind"]] = found
        if (api_version, kind) not in self._kinds:
            raise LookupError(f"{api_version} {kind} is not served")
        return self._kinds[api_version, kind]

    def apply(self, *objects: JSON) -> None:
        """Server-side apply of each object, in this order; a definition is served before the next object is applied."""
        for each in objects:
            resource = self.resource(each["apiVersion"], each["kind"])
            self.client.send(calls.apply(resource, each, field_manager=MANAGER))
            if each["kind"] == "CustomResourceDefinition":
                self._await_served(each["spec"])

    def get(self, api_version: str, kind: str, name: str, namespace: str = "") -> JSON:
        """An object; empty without one, or nobody answers."""
        try:
            return self.client.send(calls.get_raw(self.resource(api_version, kind), name, namespace))
        except KubeError:
            return {}

    def patch(self, api_version: str, kind: str, name: str, patch: JSON, namespace: str = "") -> JSON:
        """A merge patch."""
        return self.client.send(calls.merge_patch(self.resource(api_version, kind), name, patch, namespace))

    def delete(self, api_version: str, kind: str, name: str, namespace: str = "") -> None:
        """Asks for an object's end; that there is none is fine."""
        try:
            self.client.send(calls.delete(self.resource(api_version, kind), name, namespace))
        except NotFound:
            return

    def listed(self, api_version: str, kind: str, namespace: str = "", labels: str = "") -> list[JSON]:
        """Objects with these labels."""
        resource = self.resource(api_version, kind)
        return list(self.client.send(calls.list_raw(resource, namespace, label_selector=labels)).items)

    def pods(self, namespace: str, labels: str = "") -> list[JSON]:
        """Pods with these labels that nobody has asked to end; empty while nobody answers."""
        try:
            found = self.client.send(calls.list_raw(PODS, namespace, label_selector=labels)).items
        except KubeError:
            return []
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def running(self, namespace: str, labels: str, count: int = 1) -> Sequence[JSON]:
        """Those pods, once there are so many and all are ready."""

        def looked() -> Sequence[JSON]:
            pods = self.pods(namespace, labels)
            return pods if len(pods) == count and all(map(pod_ready, pods)) else []

        found: Sequence[JSON] = self.until(looked, f"{count} ready pods {labels} in {namespace}")
        return found

    def logs(self, namespace: str, pod: str, *, previous: bool = False) -> str:
        """What the pod's only container has printed, as its kubelet tells it."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log"
        query = (("previous", "true"),) if previous else ()
        return self.client.send(calls.get_path(path, query)).decode()

    def until(self, condition: Callable[[], Any], what: str, stalled_s: float = STALLED_S) -> Any:
        """The first true value of `condition`; what the server cannot answer meanwhile is not yet true.

        Fails once the cluster's `signs` have not changed for `stalled_s`: on a busy machine everything takes longer,
        and nothing is wrong as long as it continues. What continues for ever is ended by the test's own time limit.
        """

        def looked() -> Any:
            try:
                return condition()
            except KubeError:
                return None

        before, changed = None, time.monotonic()
        while True:
            try:
                return eventually(looked, what, LOOKS_S)
            except AssertionError as error:
                now = self._signs()
                if now != before:
                    before, changed = now, time.monotonic()
                elif time.monotonic() - changed >= stalled_s:
                    text = f"{what} did not happen, and nothing else did for {stalled_s:g} s"
                    raise AssertionError(text) from error

    def _signs(self) -> list[Any]:
        try:
            return [sign() for sign in self.signs]
        except KubeError:
            return []

    def _pod_states(self) -> list[Any]:
        """Each pod's node, phase and containers' states, without times."""
        pods = self.client.send(calls.list_raw(PODS)).items
        return sorted(
            (
                pod["metadata"]["namespace"],
                pod["metadata"]["name"],
                pod["spec"].get("nodeName", ""),
                pod["status"].get("phase", ""),
                "deletionTimestamp" in pod["metadata"],
                [
                    (each["name"], each["ready"], each["restartCount"], *each.get("state", {}))
                    for each in pod["status"].get("containerStatuses", [])
                ],
            )
            for pod in pods
        )

    def _await_served(self, spec: Mapping[str, Any]) -> None:
        version = next(each["name"] for each in spec["versions"] if each["served"])
        resource = Resource(
            group=spec["group"],
            version=version,
            kind=spec["names"]["kind"],
            plural=spec["names"]["plural"],
            namespaced=spec["scope"] == "Namespaced",
        )
        self.until(lambda: self.client.send(calls.list_raw(resource, limit=1)) is not None, f"{resource} is served")


def pod_ready(pod: JSON) -> bool:
    """Whether the pod's condition Ready is True."""
    conditions = pod.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def metadata(name: str, namespace: str = "", **rest: Any) -> JSON:
    """An object's metadata."""
    return {"name": name, **({"namespace": namespace} if namespace else {}), **rest}
