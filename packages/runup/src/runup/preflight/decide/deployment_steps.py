"""The next step for the preflight's Deployment, as a table over everything that is observed.

A test walks the whole product of the four axes, so that a missing row shows.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Deployed(Enum):
    """The preflight's Deployment, as the API server has it."""

    NONE = "none"
    OURS = "for the wanted target"
    OTHER = "for another target"
    GOING = "being deleted, or its pods still end"


class Trust(Enum):
    """The signature of the target's image."""

    PENDING = "not verified yet"
    VERIFIED = "verified, or verification was forced"
    FAILED = "not trusted"


class DeploymentState(NamedTuple):
    """The observed situation. `over`: this attempt has failed for good."""

    wanted: bool
    deployed: Deployed
    trust: Trust
    over: bool


class Step(Enum):
    """The action to take."""

    NOTHING = "nothing"
    VERIFY = "verify the signature"
    REFUSE = "say that the image is not trusted"
    START = "start the Deployment"
    WATCH = "read the report, keep the Deployment as it should be"
    STOP = "delete the Deployment"
    AWAIT_GONE = "wait until the Deployment and its pods are gone"
    HOLD = "say why the attempt failed, start nothing"


_START = {Trust.PENDING: Step.VERIFY, Trust.VERIFIED: Step.START, Trust.FAILED: Step.REFUSE}
_WHILE_WANTED = {Deployed.OURS: Step.WATCH, Deployed.OTHER: Step.STOP, Deployed.GOING: Step.AWAIT_GONE}
_WHEN_OVER = {
    Deployed.NONE: Step.HOLD,
    Deployed.OURS: Step.STOP,
    Deployed.OTHER: Step.STOP,
    Deployed.GOING: Step.AWAIT_GONE,
}
# Without a request nothing is held: only what is left over is deleted.
_UNWANTED = _WHEN_OVER | {Deployed.NONE: Step.NOTHING}

STEPS: dict[DeploymentState, Step] = (
    # A running target was verified before; a signature store that fails later does not stop it.
    {
        DeploymentState(True, deployed, trust, over=False): step
        for deployed, step in _WHILE_WANTED.items()
        for trust in Trust
    }
    | {DeploymentState(True, Deployed.NONE, trust, over=False): step for trust, step in _START.items()}
    | {
        DeploymentState(True, deployed, trust, over=True): step
        for deployed, step in _WHEN_OVER.items()
        for trust in Trust
    }
    | {
        DeploymentState(False, deployed, trust, over): step
        for deployed, step in _UNWANTED.items()
        for trust in Trust
        for over in (False, True)
    }
)
