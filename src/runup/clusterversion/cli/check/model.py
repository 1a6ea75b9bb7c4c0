"""What `runup check` saw, and what it makes of it: values between `probe`, which asks, and `judge`, which decides."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import msgspec

from runup.api.config_v1 import ClusterVersion, FeatureGate


class Result(Enum):
    """How one line stands; the word is what is printed."""

    OK = "ok"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


class Row(msgspec.Struct, frozen=True):
    """One line: what was looked at, how it stands, what was seen, and the way out where there is something to do."""

    name: str
    result: Result
    says: str
    way_out: str = ""


class Right(msgspec.Struct, frozen=True):
    """A right that a command needs: `patch clusterversions.config.openshift.io`, and what for."""

    verb: str
    resource: str
    why: str
    needed: bool = True


class Facts(msgspec.Struct, frozen=True):
    """Everything that was asked. A text in `errors` says why the fact of that name is missing.

    `mode` is what a strict dry run of a preflight request came to: "" where the server would take it, else its words.
    `rights`: whether each may be done, None where the server would not say. `reached`: URL -> "" or why not, from here.
    """

    server: str = ""
    kubernetes: str = ""
    cluster: ClusterVersion | None = None
    gates: FeatureGate | None = None
    mode: str | None = None
    rights: Mapping[Right, bool | None] = msgspec.field(default_factory=dict)
    stores: tuple[str, ...] = ()
    reached: Mapping[str, str] = msgspec.field(default_factory=dict)
    errors: Mapping[str, str] = msgspec.field(default_factory=dict)
