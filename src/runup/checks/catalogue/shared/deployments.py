"""Declares how Deployments are read for all checks: of each its number of pods, its strategy, and its failures."""

from __future__ import annotations

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition, Object, ObjectMeta, Wire
from runup.checks.decide.reads import Slim


class RollingUpdate(Wire, frozen=True):
    """How many pods a roll-out may have too many and too few, as numbers or shares."""

    max_surge: int | str | None = None
    max_unavailable: int | str | None = None


class DeploymentStrategy(Wire, frozen=True):
    """`strategy` of a Deployment: RollingUpdate, which is the default, or Recreate."""

    type: str = ""
    rolling_update: RollingUpdate | None = None


class ScaledDeploymentSpec(Wire, frozen=True):
    """`spec` of a Deployment without its template."""

    replicas: int = 1
    strategy: DeploymentStrategy = DeploymentStrategy()


class ScaledDeploymentStatus(Wire, frozen=True):
    """`status` of a Deployment without its counts."""

    conditions: tuple[Condition, ...] = ()


class ScaledDeployment(Object, frozen=True):
    """A Deployment of which little more than its number of pods is read: there may be tens of thousands."""

    spec: ScaledDeploymentSpec = ScaledDeploymentSpec()
    status: ScaledDeploymentStatus = ScaledDeploymentStatus()


def _slim(deployment: ScaledDeployment) -> ScaledDeployment:
    metadata, failure = deployment.metadata, find(deployment.status.conditions, "ReplicaFailure")
    return ScaledDeployment(
        metadata=ObjectMeta(
            name=metadata.name, namespace=metadata.namespace, resource_version=metadata.resource_version
        ),
        spec=deployment.spec,
        status=ScaledDeploymentStatus((failure,) if failure else ()),
    )


DEPLOYMENTS = Slim("apps", "v1", "Deployment", "deployments", namespaced=True, type=ScaledDeployment, keep=_slim)


def needs_surge(deployment: ScaledDeployment) -> bool:
    """Returns whether a roll-out makes a new pod before it takes an old one away (apps/v1, RollingUpdateDeployment).

    Shares of maxSurge are rounded up, those of maxUnavailable down; 25% is the default of both.
    """
    spec = deployment.spec
    if not spec.replicas or spec.strategy.type == "Recreate":
        return False
    rolling = spec.strategy.rolling_update or RollingUpdate()
    unavailable = _scaled(rolling.max_unavailable, spec.replicas, up=False)
    return unavailable == 0 and _scaled(rolling.max_surge, spec.replicas, up=True) > 0


def _scaled(value: int | str | None, replicas: int, *, up: bool) -> int:
    if isinstance(value, int):
        return value
    share = (value or "25%").removesuffix("%")
    if not share.isdigit():
        # What cannot be read no API server has stored; it claims nothing.
        return 1 if not up else 0
    return -(-int(share) * replicas // 100) if up else int(share) * replicas // 100
