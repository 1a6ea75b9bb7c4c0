"""One request for a preflight, from its start until the request goes away: its identity, and whether it is over.

The record lives in an annotation of ConfigMap `preflight-history`, not in memory: a managing operator that is killed
finds there which attempt runs, and that a failed one is not to be started again before somebody asks anew.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

from kubekit.api.meta_v1 import Wire
from kubekit.lang.pattern import Pattern
from runup.api.config_v1 import Release

_ID = Pattern(r"preflight-[0-9]+-[0-9a-f]{10}")


class Attempt(Wire, frozen=True):
    """A preflight that was started. `failed` and `failure` are set once it is over for good.

    `became_update`: its request has lost its mode, and was told so; the update waits for it. `making_way`: nothing
    speaks against that update any more, so the workload goes, and what was found last counts until it is gone;
    `silent`: what was found last counted no more, as the target had not been heard of for its whole time limit.
    """

    id: str
    source_version: str
    target_version: str
    target_image: str
    started_time: datetime | None = None
    failed: str = ""
    failure: str = ""
    became_update: bool = False
    making_way: bool = False
    silent: bool = False

    def is_for(self, target: Release, source: str) -> bool:
        """Whether this attempt checks `target` from `source`."""
        same = (self.target_version, self.target_image) == (target.version, target.image)
        return same and self.source_version == source


def attempt_id(*, generation: int, image: str, source: str) -> str:
    """The same request gives the same ID, so that a killed operator finds its own work; safe as a folder's name."""
    text = "\n".join((str(generation), digest_of(image) or image, source))
    return f"preflight-{generation}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"


def is_attempt_id(name: str) -> bool:
    """Whether `name` is what `attempt_id` gives, so that what is named so may be removed as a preflight's."""
    return _ID.fullmatch(name) is not None


def digest_of(image: str) -> str:
    """`sha256:...` of a pull spec, or nothing where it names a tag."""
    return image.rpartition("@")[2] if "@" in image else ""
