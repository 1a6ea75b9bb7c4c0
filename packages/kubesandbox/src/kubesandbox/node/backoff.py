"""Back-off: the time until a failed operation is tried again. Times in, seconds out.

The rules are the kubelet's (pkg/kubelet/kuberuntime `doBackOff`, client-go's flowcontrol.Backoff): the first restart is
immediate, each later one waits twice as long, and a container that ran long enough starts over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace


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
