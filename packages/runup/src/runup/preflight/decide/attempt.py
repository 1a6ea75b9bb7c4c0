"""A request for a preflight, from its start until the request is withdrawn: its identity, and whether it is over.

The record lives in an annotation of ConfigMap `preflight-history`, not in memory. A managing operator that restarts
reads there which attempt runs, and that a failed attempt is not to be started again before a new request.
"""

from __future__ import annotations

import hashlib
import re
from datetime import datetime

from kubekit.api.meta_v1 import Wire
from runup.api.config_v1 import Release, Update

# On ClusterVersion: the ID of the attempt that must end although an update waits for it (docs/decisions/0076).
END_ANNOTATION = "preflight.runup.dev/end"
_ID = re.compile(r"preflight-[0-9]+-[0-9a-f]{10}")


class Attempt(Wire, frozen=True, kw_only=True):
    """A preflight that was started. `failed` and `failure` are set once it has failed for good.

    `became_update`: its request was changed into an update, which waits for it. `making_way`: no risk blocks that
    update any more, so the workload is deleted, and its last findings count until it is gone. `silent`: its last
    findings no longer count, because the target had sent no heartbeat for its whole time limit. `unfinished_since`: the
    target had completed, was restarted, and has no complete report since then.

    `refused`: the reason why its request was refused after it had started, so that it was ended. A request that is
    accepted again starts another attempt. `requested_version` and `requested_image` are what the request named when
    it was last seen with its mode; both are empty in a record of an earlier release. `kept_mode`: a client that
    does not know the mode asked for an update.
    """

    id: str
    source_version: str
    target_version: str
    target_image: str
    started_time: datetime | None = None
    failed: str = ""
    failure: str = ""
    refused: str = ""
    became_update: bool = False
    making_way: bool = False
    silent: bool = False
    unfinished_since: datetime | None = None
    requested_version: str = ""
    requested_image: str = ""
    kept_mode: bool = False

    def is_for(self, target: Release, source: str) -> bool:
        """Returns whether this attempt checks `target` from `source`."""
        same_target = (self.target_version, self.target_image) == (target.version, target.image)
        return same_target and self.source_version == source

    @property
    def over(self) -> bool:
        """Reports whether the attempt has failed for good, or was ended because its request was refused."""
        return bool(self.failed or self.refused)

    @property
    def requested(self) -> tuple[str, str]:
        """The version and image that the request named; both are empty if that is not known."""
        return self.requested_version, self.requested_image


def keeps_mode(update: Update, before: Attempt | None, *, after_refusal: bool = False) -> bool:
    """Returns whether a client that does not know modes asked for an update with `update`, a preflight's request.

    A merge patch without `mode` keeps the mode of the request `before`. `oc adm upgrade` names version and image of a
    release that is offered; `runup upgrade` names one of both for a preflight. A request that was refused has left no
    attempt; `after_refusal` says that this one took its place.
    """
    both_named = bool(update.version and update.image)
    if before is None:
        return after_refusal and both_named
    if (update.version, update.image) == before.requested:
        return before.kept_mode
    return both_named and any(before.requested) and not before.became_update


def attempt_id(*, generation: int, image: str, source: str) -> str:
    """Returns the ID of the attempt for a request; it is safe as a folder's name.

    The same request gives the same ID, so that an operator that was killed finds its own work.
    """
    # The digest and not the whole pull spec: a mirror of the same image is the same request.
    text = "\n".join((str(generation), digest_of(image) or image, source))
    return f"preflight-{generation}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def is_attempt_id(name: str) -> bool:
    """Returns whether `name` has the form of `attempt_id`, so that its folder may be removed as a preflight's."""
    return _ID.fullmatch(name) is not None


def digest_of(image: str) -> str:
    """Returns the `sha256:...` of a pull spec, or an empty string if the pull spec names a tag."""
    return image.rpartition("@")[2] if "@" in image else ""
