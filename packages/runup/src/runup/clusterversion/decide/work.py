"""The long-running work that a pass may request, one type for each kind; `control` begins it, and no pass awaits it.

A pass requests what is due and not under way. The state of the work is part of the next `Observed`, like anything else.
Each lookup of a release image, its signature or its version, is made once, and again `RECHECK` after a failure.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from kubekit.error_types import Terminal
from runup.advice.decide.service import Query
from runup.api.config_v1 import Release, Update
from runup.applying.decide.progress import ApplyReason, WantedRelease
from runup.clusterversion.decide import observed, targets
from runup.clusterversion.decide.view import View
from runup.preflight.decide.deployment_steps import Trust


@dataclass(frozen=True, slots=True)
class RetrieveUpdates:
    """The query of the update service."""

    query: Query


@dataclass(frozen=True, slots=True)
class EvaluateRules:
    """The evaluation of the risks' PromQL queries; it replaces the queries requested before."""

    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VerifyRelease:
    """The verification of the signature of release image `image`."""

    image: str


@dataclass(frozen=True, slots=True)
class ReadRelease:
    """The reading of the version of release image `image`."""

    image: str


@dataclass(frozen=True, slots=True)
class ReadRights:
    """The reading of the rights that the checks of release image `image` need."""

    image: str


@dataclass(frozen=True, slots=True)
class ReadImages:
    """The reading of the images that release image `image` refers to."""

    image: str


@dataclass(frozen=True, slots=True)
class LoadRelease:
    """The loading of the payload of `release`."""

    release: Release


@dataclass(frozen=True, slots=True)
class ApplyRelease:
    """The application of a release. The payload of `wanted.image` is loaded; `state` is what the history implies."""

    wanted: WantedRelease
    state: ApplyReason


Work = (
    RetrieveUpdates | EvaluateRules | VerifyRelease | ReadRelease | ReadRights | ReadImages | LoadRelease | ApplyRelease
)


RECHECK = timedelta(seconds=60)


def check_work(image: str, check: observed.ReleaseCheck | None, now: datetime) -> tuple[Work, ...]:
    """Returns the work of verifying `image` if it is due: at first, and again `RECHECK` after a failure."""
    if check is not None and check.running:
        return ()
    settled = check is not None and check.trust is Trust.VERIFIED
    fresh = check is not None and check.at is not None and timedelta() <= now - check.at < RECHECK
    return () if settled or fresh else (VerifyRelease(image),)


def read_work(image: str, check: observed.ReleaseCheck | None, now: datetime) -> tuple[Work, ...]:
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
