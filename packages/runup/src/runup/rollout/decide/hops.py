"""Decides through which releases a run updates, and whether pools may stay paused from one to the next. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from kubekit.api.core_v1 import Node
from kubekit.lang import version
from kubekit.lang.oc_pull_spec import is_same_image
from kubekit.lang.text import count
from kubekit.rules.version_skew import allowed_skew, version_of
from runup.advice.decide.graph import Graph
from runup.advice.decide.update_paths import shortest_way
from runup.api.config_v1 import ClusterVersion
from runup.api.update_policy_v1alpha1 import Candidate, RunHop, UpdateRun, UpdateRunStatus
from runup.clusterversion.decide.preconditions import allows_step
from runup.rollout.decide.gates.cluster import is_blocked


class Path(msgspec.Struct, frozen=True, kw_only=True):
    """The releases to update through, the target last; or the problem, and `unknown` if another look may solve it."""

    hops: tuple[Candidate, ...] = ()
    problem: str = ""
    unknown: bool = False


NOT_RESOLVED = Path(problem="the path is not resolved yet", unknown=True)


def current_target(run: UpdateRun) -> Candidate:
    """Returns the release of the hop that is next or in progress."""
    hops = run.status.hops
    if run.status.hop >= len(hops):
        return run.spec.target
    return Candidate(version=hops[run.status.hop].version, image=hops[run.status.hop].image)


def needs_path(run: UpdateRun) -> bool:
    """Reports whether the releases of a run with several hops are not resolved yet."""
    return run.spec.max_hops > 1 and not run.status.hops and run.status.step == "Waiting"


def has_next(status: UpdateRunStatus) -> bool:
    """Reports whether another hop follows the current one."""
    return status.hop + 1 < len(status.hops)


def hops_of(path: Path) -> tuple[RunHop, ...]:
    """Returns the path in the form of a run's status."""
    return tuple(RunHop(version=each.version, image=each.image) for each in path.hops)


def offered_path(cluster: ClusterVersion, target: Candidate) -> Path | None:
    """Returns the path of one hop if the cluster is offered the target itself, else None."""
    for release in cluster.status.listed_updates():
        if release.version == target.version and (not target.image or is_same_image(release.image, target.image)):
            return Path(hops=(Candidate(version=release.version, image=release.image),))
    return None


def find_path(
    graph: Graph, origin: str, target: Candidate, *, max_hops: int, block_versions: Iterable[str] = ()
) -> Path:
    """Returns the shortest path in supported steps over releases with a digest that are not blocked.

    `target.image` may be empty. Updates with risks are part of it: each hop has its own gates.
    """
    blocked = tuple(block_versions)
    images = {release.version: release.image for release in graph.releases}

    def allows(from_: str, to: str) -> bool:
        return allows_step(from_, to) and not is_blocked(to, blocked) and "@sha256:" in images.get(to, "")

    if version.parse(origin) is None or version.parse(target.version) is None:
        return Path(problem=f"{origin or 'the running version'} or {target.version} is not a version")
    way = shortest_way(graph.step_map, origin, target.version, allows=allows)
    if not way:
        return Path(problem=f"the update service has no path from {origin} to {target.version} in supported steps")
    if len(way) > max_hops:
        return Path(problem=f"the path to {target.version} has {count(len(way), 'hop')}, and maxHops is {max_hops}")
    hops = tuple(Candidate(version=step.to, image=images[step.to]) for step in way)
    if target.image and not is_same_image(hops[-1].image, target.image):
        return Path(problem=f"{target.version} is offered as {hops[-1].image}, not as {target.image}")
    return Path(hops=hops)


def pools_may_wait(status: UpdateRunStatus, nodes: Sequence[Node]) -> bool:
    """Reports whether the kubelets of all nodes are still supported after the next hop.

    The newest kubelet shows the version of the API server, whose nodes are updated. Each minor version of the release
    is one of Kubernetes. A version that is not known is not supported.
    """
    hop, following = version.parse(status.hops[status.hop].version), version.parse(status.hops[status.hop + 1].version)
    kubelets = [version_of(node.status.node_info.kubelet_version) for node in nodes]
    minors = [each.minor for each in kubelets if each is not None]
    if hop is None or following is None or hop.major != following.major or not minors or len(minors) < len(kubelets):
        return False
    server, oldest = max(minors) + following.minor - hop.minor, min(minors)
    return server - oldest <= allowed_skew(oldest)
