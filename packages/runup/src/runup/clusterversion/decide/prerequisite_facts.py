"""The values between `probe`, which collects facts, and `judge`, which turns them into rows."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import msgspec

from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ClusterVersion


class Result(Enum):
    """The result of one row; its value is printed."""

    OK = "ok"
    PROBLEM = "problem"
    UNKNOWN = "unknown"


class PrerequisiteRow(msgspec.Struct, frozen=True):
    """A line of output: what was checked, its result, what was seen, and the way out if there is something to do."""

    name: str
    result: Result
    says: str
    way_out: str = ""


class Right(msgspec.Struct, frozen=True):
    """A right that a command needs, such as `patch clusterversions.config.openshift.io`, and what it is needed for."""

    verb: str
    resource: str
    why: str
    needed: bool = True


class Installed(msgspec.Struct, frozen=True):
    """A component's Deployment, wherever it is.

    `by_install`: it is of an inventory of `runup install`, which has `version`; of others `image` tells it. `why` is
    the Deployment's own message if it is not available, `lacking` the rights that its account lacks. A text that ends
    in `_error` says why the fact of that name is missing.
    """

    component: str
    namespace: str
    deployment: str
    image: str = ""
    by_install: bool = True
    version: str = ""
    version_error: str = ""
    wanted: int = 1
    ready: int = 1
    rolled_out: bool = True
    why: str = ""
    lacking: tuple[str, ...] = ()
    rights_error: str = ""


class Facts(msgspec.Struct, frozen=True):
    """The collected facts. A text in `errors` says why the fact of that name is missing.

    `mode` is the result of a strict dry run of a preflight request: "" if the server would accept it, else its
    message. `is_plain`: the cluster has no ClusterVersion, and is one of Kubernetes alone. `rights`: whether each is
    allowed, None if the server did not say. `reached`: URL -> "" or why it was not reached. `components`: those that
    are installed, None if that could not be read.
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
    is_plain: bool = False
    components: tuple[Installed, ...] | None = None
