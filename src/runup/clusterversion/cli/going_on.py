"""An update that is under way beside what is asked for now: whether there is one, and what takes it back. Pure.

A preflight's request overwrites the update's, and ends without a trace in the spec. So the status says what is under
way (decision D23), and taking it back is a request of its own wherever the spec does not show that one is removed.
"""

from __future__ import annotations

import msgspec

from runup.api.config_v1 import ClusterVersion, Release, Update
from runup.cli.cluster import Patch
from runup.cli.render.text import Output, err, out
from runup.clusterversion.cli.targets import Target, clear_patch, cleared, update_patch
from runup.preflight.cli.render import preflight as rendered

_HINT = "Take it back: runup upgrade --clear"


class GoingOn(msgspec.Struct, frozen=True):
    """An accepted update that is not complete, and the release that it started from."""

    to: Release
    back_to: Release

    @property
    def taken_back(self) -> str:
        """What is said of the request that takes it back."""
        return f"Taking back the update to {self.to.version}; the cluster stays at {self.back_to.version}\n"


def going_on(cluster: ClusterVersion) -> GoingOn | None:
    """The update that is under way; None where the newest entry of the history is complete or the only one."""
    status = cluster.status
    newest = status.history[0] if status.history else None
    if newest is None or newest.state != "Partial" or newest.version != status.desired.version:
        return None
    before = next((entry for entry in status.history[1:] if entry.state == "Completed" and entry.image), None)
    if before is None or _same(before.image, newest.image):
        return None
    return GoingOn(status.desired, Release(version=before.version, image=before.image))


def goes_on(found: GoingOn | None) -> tuple[Output, ...]:
    """The sentence for whoever ended a preflight, or another request, during an update."""
    return (out(f"The update to {found.to.version} is under way and goes on. {_HINT}\n"),) if found else ()


def unasked(cluster: ClusterVersion) -> tuple[Output, ...]:
    """What `runup upgrade` says of an update that the spec does not show."""
    found = going_on(cluster)
    desired = cluster.spec.desired_update
    if found is None or (desired is not None and not desired.mode and asks_for(desired, found.to)):
        return ()
    return (out(f"\nThe update to {found.to.version} goes on, whatever is asked for beside it. {_HINT}\n"),)


def before_a_preflight(cluster: ClusterVersion) -> tuple[Output, ...]:
    """What happens to the update request whose place a preflight's request takes."""
    found, desired = going_on(cluster), cluster.spec.desired_update
    said = []
    if found is not None:
        text = f"warning: the update to {found.to.version} is under way and goes on; what is found now may be different"
        said.append(err(f"{text} when it is done\n"))
        if desired is None and cluster.status.observed_generation < cluster.metadata.generation:
            said.append(
                err("warning: a request to take it back has not been seen by the operator and is lost by this\n")
            )
    pending = desired is not None and not desired.mode and bool(desired.version or desired.image)
    running = found.to if found else cluster.status.desired
    if desired is not None and pending and not asks_for(desired, running):
        name = desired.version or desired.image
        said.append(err(f"warning: this takes the place of the request to update to {name}, which was not accepted\n"))
    return tuple(said)


def back(cluster: ClusterVersion, *, version: str, image: str) -> Target | None:
    """The target that takes the update under way back, where `version` or `image` mean the release it started from."""
    found = going_on(cluster)
    if found is None:
        return None
    meant = _same(image, found.back_to.image) if image else version == found.back_to.version
    if not meant:
        return None
    return Target(found.back_to.version, found.back_to.image, (out(found.taken_back),), takes_back=True)


class Clearing(msgspec.Struct, frozen=True):
    """What `--clear` sends, if anything, and what it says once the server has taken it."""

    patch: Patch | None
    said: tuple[Output, ...]


def clearing(cluster: ClusterVersion) -> Clearing:
    """What `--clear` means for `cluster`: a preflight ends, an update is taken back, or another request goes."""
    desired, found = cluster.spec.desired_update, going_on(cluster)
    if desired is not None and desired.mode:
        return Clearing(clear_patch(desired), (out(rendered.cleared(cluster)), *goes_on(found)))
    if found is None:
        if desired is None:
            return Clearing(None, (out("info: No update in progress\n"),))
        return Clearing(clear_patch(desired), (out(cleared(desired, cluster)),))
    if desired is not None and asks_for(desired, found.back_to):
        return Clearing(None, (out(f"info: {found.taken_back}"),))
    if desired is not None and asks_for(desired, found.to):
        return Clearing(_taking_back(cluster, desired, found), (out(found.taken_back),))
    if desired is not None and (desired.version or desired.image):
        return Clearing(clear_patch(desired), (out(cleared(desired, cluster)), *goes_on(found)))
    return Clearing(_named(desired, found), (out(found.taken_back),))


def _taking_back(cluster: ClusterVersion, desired: Update, found: GoingOn) -> Patch:
    """Removing the request is enough where the operator has seen it; else the release is named."""
    seen = cluster.status.observed_generation >= cluster.metadata.generation
    return clear_patch(desired) if seen else _named(desired, found)


def _named(desired: Update | None, found: GoingOn) -> Patch:
    return update_patch(desired, version=found.back_to.version, image=found.back_to.image)


def asks_for(update: Update, release: Release) -> bool:
    """Whether `update` names `release`, by image where it has one."""
    if update.image:
        return _same(update.image, release.image)
    return bool(update.version) and update.version == release.version


def _same(one: str, other: str) -> bool:
    digests = one.rpartition("@")[2], other.rpartition("@")[2]
    return bool(one) and (one == other or ("@" in one and "@" in other and digests[0] == digests[1]))
