"""The agent's environment: folders, runner, images, the API server's address, and time limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kubekit.api.whole_v1 import WholePod
from kubesandbox.node.backoff import KUBELET, Limits
from kubesandbox.node.runner_interface import Runner
from kubesandbox.node.unpacked_images import ImageStore


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """The sandbox's data folder and all other settings that are the same for all pods of an agent."""

    data: Path
    runner: Runner
    images: ImageStore
    server: str
    ca: Path
    host_ip: str = "127.0.0.1"
    # Whether pods of other images are declared ready, or stay pending.
    declare_others: bool = True
    backoff: Limits = KUBELET
    # Seconds between SIGTERM and SIGKILL when the agent itself ends.
    shutdown_s: float = 0.0

    def host_path(self, node: str, path: str) -> Path:
        """Returns the folder that stands for `path` on `node`."""
        return self.data / "nodes" / node / path.lstrip("/")

    def pod_folder(self, pod: WholePod) -> Path:
        """Returns the folder of a pod's logs and volumes; the API server serves logs from it."""
        metadata = pod.metadata
        return self.data / "pods" / f"{metadata.namespace}_{metadata.name}_{metadata.uid}"
