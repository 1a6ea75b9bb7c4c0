"""The routers of the next minor version will refuse routes that are served today.

Applies when a router has set condition UnservableInFutureVersions of a Route to True: the Route's certificate or its
settings are such that the next minor version does not take them, as certificates signed with SHA-1 in 4.16.

Why it matters what is reached by these routes is not reached any more once the routers are updated.

What to do `oc -n NAMESPACE describe route NAME` has the router's reason; give the Route a certificate that is taken,
and the router clears the condition.

Accepting it means that these routes end with the update.

Source of the rule openshift/api `route/v1` (RouteUnservableInFutureVersions), openshift/router `upgrade_validation`,
and the admin gate of cluster-ingress-operator 4.15 for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition, Object, ObjectMeta, Wire
from runup.checks.catalogue.declaring import MINOR, declared, named, risk
from runup.checks.catalogue.shared.presence import DEFINITIONS, listed_or_none
from runup.checks.decide.model import Context, Finding, Snapshot
from runup.checks.decide.reads import Slim
from runup.checks.decide.wording import cause, count, names

NAME = "RoutesUnservable"
EXAMPLE = """
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop, namespace: web}
spec: {host: shop.example.com}
status:
  ingress:
  - routerName: default
    conditions:
    - {type: Admitted, status: "True"}
    - {type: UnservableInFutureVersions, status: "True", reason: UpgradeRouteValidationFailed, message: uses SHA1}
"""


class RouteIngress(Wire, frozen=True):
    """What one router says of a Route."""

    conditions: tuple[Condition, ...] = ()


class RouteStatus(Wire, frozen=True):
    """`status` of a Route, by router."""

    ingress: tuple[RouteIngress, ...] = ()


class Route(Object, frozen=True):
    """A name under which a Service is reached from outside."""

    status: RouteStatus = RouteStatus()


def _slim(route: Route) -> Route:
    """Returns the Route with its name and what forbids it in the future: a cluster may have ten thousand."""
    metadata = route.metadata
    told = _told(route)
    return Route(
        metadata=ObjectMeta(
            name=metadata.name, namespace=metadata.namespace, resource_version=metadata.resource_version
        ),
        status=RouteStatus((RouteIngress((told,)),)) if told else RouteStatus(),
    )


ROUTES = Slim("route.openshift.io", "v1", "Route", "routes", namespaced=True, type=Route, keep=_slim)


def _told(route: Route) -> Condition | None:
    """Returns the condition by which a router says that it will not serve the Route, None if none says so."""
    told = (find(each.conditions, "UnservableInFutureVersions") for each in route.status.ingress)
    return next((condition for condition in told if condition is not None and condition.status == "True"), None)


def _run(snapshot: Snapshot, _context: Context) -> Iterator[Finding]:
    routes = [(route, told) for route in listed_or_none(snapshot, ROUTES) if (told := _told(route))]
    if not routes:
        return
    routes.sort(key=lambda each: named(each[0]))
    first, told = routes[0]
    yield risk(
        NAME,
        f"{count(len(routes), 'Route')} will not be served by the next minor version any more "
        f"({names([named(route) for route, _ in routes])}). "
        f"Of {named(first)} the router says{f': {why}' if (why := cause(told)) else ' nothing more'}.",
        [route for route, _ in routes],
        fix="Give them certificates and settings that the target takes; the router takes its condition back then.",
        kind=ROUTES,
    )


CHECK = declared(
    __doc__,
    NAME,
    "cluster-ingress-operator",
    (ROUTES, DEFINITIONS),
    _run,
    rank=710,
    updates=MINOR,
    example=EXAMPLE,
)
