"""Decides which lookups of a release image are due: verifying its signature, and reading its version.

Each lookup is made once, and again `RECHECK` after a failure. In: what is known of the image (`ReleaseCheck`). Out:
work that a worker begins; its result is part of a later pass.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from kubekit.error_types import Terminal
from runup.api.config_v1 import Update
from runup.clusterversion.decide import targets
from runup.clusterversion.decide.observed import ReleaseCheck
from runup.clusterversion.decide.view import View
from runup.clusterversion.decide.work import ReadRelease, VerifyRelease, Work
from runup.preflight.decide.deployment_steps import Trust

RECHECK = timedelta(seconds=60)


def check_work(image: str, check: ReleaseCheck | None, now: datetime) -> tuple[Work, ...]:
    """Returns the work of verifying `image` if it is due: at first, and again `RECHECK` after a failure."""
    if check is not None and check.running:
        return ()
    settled = check is not None and check.trust is Trust.VERIFIED
    fresh = check is not None and check.at is not None and timedelta() <= now - check.at < RECHECK
    return () if settled or fresh else (VerifyRelease(image),)


def read_work(image: str, check: ReleaseCheck | None, now: datetime) -> tuple[Work, ...]:
    """Returns the work of reading the version of `image` if it is due: at first, or `RECHECK` after a failure."""
    if not image or (check is not None and (check.reading or check.version)):
        return ()
    fresh = check is not None and check.read_at is not None and timedelta() <= now - check.read_at < RECHECK
    return () if fresh else (ReadRelease(image),)


def look_work(view: View, update: Update) -> tuple[Work, ...]:
    """Returns the work due on an image that no graph knows: verifying it and, once trusted, reading its version."""
    check = view.observed.releases.get(update.image)
    verify = check_work(update.image, check, view.now) if update.image else ()
    return (*verify, *(read_work(update.image, check, view.now) if targets.is_trusted(update, check) else ()))


def retry_unreadable(view: View, update: Update, error: Terminal) -> dict[str, Any]:
    """Returns work and delay that retry an unreadable image: registries recover, secrets are corrected."""
    if error.reason not in (targets.UNREADABLE, targets.UNTRUSTED):
        return {}
    return {"work": look_work(view, update), "requeue_after_s": RECHECK.total_seconds()}
