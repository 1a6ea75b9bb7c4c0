"""The settings of the node agent: folders, runner, images, the API server's address, time limits, and back-off.

The rules of back-off are the kubelet's (pkg/kubelet/kuberuntime `doBackOff`, client-go's flowcontrol.Backoff): the
first restart is immediate, each later one waits twice as long, and a container that ran long enough starts over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from kubekit.api.whole_v1 import WholePod
from kubesandbox.node.runner_interface import Runner
from kubesandbox.node.unpacked_images import ImageStore


@dataclass(frozen=True, slots=True)
class Limits:
    """The first and the longest wait, in seconds; the kubelet's by default."""

    first_s: float = 10.0
    longest_s: float = 300.0

    def delays(self) -> Iterator[float]:
        """Yields the waits after one failure, after two, and so on."""
        delay = self.first_s
        while True:
            yield delay
            delay = min(2 * delay, self.longest_s)


KUBELET = Limits()
# Volumes that cannot be set up yet (pkg/util/goroutinemap/exponentialbackoff): 500 ms to 2 min 2 s.
MOUNTS = Limits(0.5, 122.0)


@dataclass(frozen=True, slots=True)
class Restarts:
    """A container's restarts; times are seconds of a monotonic clock."""

    limits: Limits = KUBELET
    wait_s: float = 0.0
    at: float = 0.0

    def delay_s(self, ended_at: float) -> float:
        """Returns the seconds from its end to its restart; 0 after a run of more than twice the longest wait."""
        return 0.0 if ended_at - self.at > 2 * self.limits.longest_s else self.wait_s

    def after_restart(self, ended_at: float, now: float) -> Restarts:
        """Returns the state after a restart at `now`."""
        waited = self.delay_s(ended_at)
        # After a long run the back-off starts over with the first wait.
        longer = min(2 * waited, self.limits.longest_s) if waited else self.limits.first_s
        return replace(self, wait_s=longer, at=now)


def go_duration(seconds: float) -> str:
    """Returns `seconds` as Go writes a duration: `10s`, `1m20s`, `5m0s`."""
    minutes, remaining_s = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    if hours:
        return f"{hours}h{minutes}m{remaining_s:g}s"
    return f"{minutes}m{remaining_s:g}s" if minutes else f"{remaining_s:g}s"


@dataclass(frozen=True, slots=True, kw_only=True)
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
    # Whether declared pods that may end (restartPolicy other than Always) are declared completed, as Jobs need it.
    completes_others: bool = False
    backoff: Limits = KUBELET
    # Seconds between SIGTERM and SIGKILL when the agent itself ends.
    shutdown_s: float = 0.0

    def host_path(self, node: str, path: str) -> Path:
        """Returns the folder that is `path` on `node`."""
        return self.data / "nodes" / node / path.lstrip("/")

    def pod_folder(self, pod: WholePod) -> Path:
        """Returns the folder of a pod's logs and volumes; the API server serves logs from it."""
        metadata = pod.metadata
        return self.data / "pods" / f"{metadata.namespace}_{metadata.name}_{metadata.uid}"
