"""What `runup check` saw, and what it makes of it: values between `probe`, which asks, and `judge`, which decides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from runup.api.config_v1 import ClusterVersion, FeatureGate


class Result(Enum):
    """How one line stands; the word is what is printed."""

    OK = "ok"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Row:
    """One line: what was looked at, how it stands, what was seen, and the way out where there is something to do."""

    name: str
    result: Result
    says: str
    way_out: str = ""


@dataclass(frozen=True, slots=True)
class Right:
    """A right that a command needs: `patch clusterversions.config.openshift.io`, and what for."""

    verb: str
    resource: str
    why: str
    needed: bool = True


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that was asked. A text in `errors` says why the fact of that name is missing.

    `mode` is what a strict dry run of a preflight request came to: "" where the server would take it, else its words.
    `rights`: whether each may be done, None where the server would not say. `reached`: URL -> "" or why not, from here.
    """

    server: str = ""
    kubernetes: str = ""
    cluster: ClusterVersion | None = None
    gates: FeatureGate | None = None
    mode: str | None = None
    rights: Mapping[Right, bool | None] = field(default_factory=dict)
    stores: tuple[str, ...] = ()
    reached: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
