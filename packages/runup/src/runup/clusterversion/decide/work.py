"""The long-running work that a pass may request, one type for each kind; `control` begins it, and no pass awaits it.

A pass requests what is due and not under way. The state of the work is part of the next `Observed`, like anything else.
"""

from __future__ import annotations

from dataclasses import dataclass

from runup.advice.decide.service import Query
from runup.api.config_v1 import Release
from runup.applying.decide.progress import ApplyReason, WantedRelease


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
