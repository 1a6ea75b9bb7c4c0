"""Sandboxed clusters of a fleet update, by contexts of one kubeconfig, and the file of the update."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.rollout.control.policy_world import NEW, World, world

from kubekit.lang import yaml as kyaml
from runup.api.update_policy_v1alpha1 import UpdateRun
from runup.fleet.control.update_clusters import MANAGER

GATES = "{forecast: Ignore, health: {settle: 1s}, alerts: {severities: []}}"
FILE = f"""
apiVersion: update.runup.dev/v1alpha1
kind: FleetUpdate
metadata: {{name: "5.1"}}
spec:
  target: {{version: 5.1.0, image: "{NEW}"}}
  stages:
  - name: canary
    selector: {{matchLabels: {{kubernetes.io/metadata.name: harbour}}}}
  - name: main
    selector: {{matchExpressions: [{{key: kubernetes.io/metadata.name, operator: NotIn, values: [harbour]}}]}}
  policy: {{calendars: [Always], soak: 0s, gates: {GATES}}}
"""


class Fleet:
    """The clusters of a test, by name."""

    def __init__(self, clusters: Mapping[str, World], folder: Path) -> None:
        self.clusters = clusters
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        merged: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
        for name, each in clusters.items():
            document = kyaml.load(each.server.kubeconfig.read_bytes(), name=name)
            merged["clusters"].append({"name": name, "cluster": document["clusters"][0]["cluster"]})
            merged["users"].append({"name": name, "user": document["users"][0]["user"]})
            merged["contexts"].append({"name": name, "context": {"cluster": name, "user": name}})
        self.kubeconfig.write_text(json.dumps({**merged, "current-context": next(iter(clusters))}))

    @property
    def words(self) -> tuple[str, ...]:
        """The options that name the clusters."""
        return ("--contexts", ",".join(self.clusters), "--kubeconfig", str(self.kubeconfig))

    def heal(self) -> None:
        """Every cluster runs 5.0.3, and its preflight of 5.1.0 is clear."""
        for each in self.clusters.values():
            each.heal()
            each.server.patch_spec(desiredUpdate={"version": "5.1.0", "image": NEW, "mode": "Preflight"})
            each.report()

    def writes(self, name: str) -> list[str]:
        """The requests of this command that changed ClusterVersion, without dry runs."""
        log = self.clusters[name].server.kubeconfig.parent / "audit.log"
        found = []
        for line in log.read_text(encoding="utf-8").splitlines():
            event = json.loads(line)
            uri = event["requestURI"]
            is_write = "clusterversions/version" in uri and event["verb"] == "patch" and "dryRun" not in uri
            if is_write and f"fieldManager={MANAGER}" in uri and event.get("responseStatus", {}).get("code", 200) < 300:
                found.append(uri)
        return found

    def started(self, name: str) -> bool:
        """Reports whether the cluster's update was requested."""
        desired = self.clusters[name].desired()
        return desired.get("version") == "5.1.0" and not desired.get("mode")

    def finish(self, name: str) -> None:
        """The cluster's update is complete."""
        self.clusters[name].update("Completed")

    def runs(self, name: str) -> list[UpdateRun]:
        """The UpdateRuns of a cluster."""
        return self.clusters[name].client.list_all(UpdateRun)[0]


@contextmanager
def fleet(folder: Path, **clusters: bool) -> Iterator[Fleet]:
    """Clusters by name; with True the component update-policy is installed in it."""
    with ExitStack() as opened:
        worlds = {}
        for name, update_policy in clusters.items():
            (folder / name).mkdir()
            worlds[name] = opened.enter_context(world(folder / name / "data", update_policy=update_policy))
        yield Fleet(worlds, folder)
