"""The routers of the next minor version will refuse routes that they serve today.

Applies when a router has set condition UnservableInFutureVersions of a Route to True: the Route's certificate or its
settings are such that the next minor version does not take them, as certificates signed with SHA-1 in 4.16. Routers
before 4.15 do not set that condition. So for an update from before 4.16 to 4.16 or later, it applies also to a Route
with a certificate (`certificate`, `caCertificate`, `destinationCACertificate`) that an authority signed with SHA-1 or
MD5. A self-signed certificate is accepted.

Why it matters: services behind these routes cannot be reached once the routers are updated.

Remedy: `oc -n NAMESPACE describe route NAME` shows the router's reason; give the Route a certificate that the next
version accepts, and the router clears the condition.

Accepting it means that these routes stop working with the update.

Source of the rule: openshift/api `route/v1` (RouteUnservableInFutureVersions), openshift/router `upgrade_validation`,
and the admin gate of cluster-ingress-operator 4.15 for it; openshift/router 4.16, `pkg/router/routeapihelpers`
(validateCertSignatureAlgorithms).
"""

from __future__ import annotations

import msgspec

from kubekit.api.conditions import find
from kubekit.api.meta_v1 import Condition, Object, Wire
from kubekit.lang.version import Version
from runup.checks.catalogue.shared.certificate_bundles import weak_signature
from runup.checks.decide.model import DEFINITIONS, Context, Snapshot
from runup.checks.writing import MINOR, Findings, Slim, cause, count, declared, full_name, names_of, risk, slim_metadata

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


class RouteTLS(Wire, frozen=True):
    """The certificates of a Route; its key is not read."""

    certificate: str = ""
    ca_certificate: str = ""
    destination_ca_certificate: str = msgspec.field(default="", name="destinationCACertificate")


class RouteSpec(Wire, frozen=True):
    """`spec` of a Route."""

    tls: RouteTLS | None = None


class RouteIngress(Wire, frozen=True):
    """A router's word on a Route."""

    conditions: tuple[Condition, ...] = ()


class RouteStatus(Wire, frozen=True):
    """`status` of a Route, by router."""

    ingress: tuple[RouteIngress, ...] = ()


class Route(Object, frozen=True, kw_only=True):
    """A name under which a Service is reached from outside.

    `weak_signature` (SHA-1 or MD5) is no field of a Route: it is looked up in the certificates, which are then dropped.
    """

    spec: RouteSpec = RouteSpec()
    status: RouteStatus = RouteStatus()
    weak_signature: str = ""


def _slim_route(route: Route) -> Route:
    """Returns the Route with its name and what forbids it in the future: a cluster may have ten thousand."""
    condition, tls = _refusing_condition(route), route.spec.tls or RouteTLS()
    weak = map(weak_signature, (tls.certificate, tls.ca_certificate, tls.destination_ca_certificate))
    return Route(
        metadata=slim_metadata(route),
        status=RouteStatus((RouteIngress((condition,)),)) if condition else RouteStatus(),
        weak_signature=next(filter(None, weak), ""),
    )


ROUTES = Slim(
    group="route.openshift.io",
    version="v1",
    kind="Route",
    plural="routes",
    namespaced=True,
    type=Route,
    keep=_slim_route,
)
# Its routers do not take certificates that an authority signed with SHA-1 or MD5.
_REFUSES_SHA1 = Version("4.16.0-0")


def _refusing_condition(route: Route) -> Condition | None:
    """Returns the condition by which a router says that it will not serve the Route, None if none says so."""
    conditions = (find(ingress.conditions, "UnservableInFutureVersions") for ingress in route.status.ingress)
    return next((condition for condition in conditions if condition is not None and condition.status == "True"), None)


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields one risk that names the Routes that routers of the next minor version refuse."""
    refuses_sha1 = context.source < _REFUSES_SHA1 <= context.target
    refused: list[tuple[Route, str]] = []
    for route in sorted(snapshot.listed_or_none(ROUTES), key=full_name):
        if condition := _refusing_condition(route):
            why = cause(condition)
            refused.append((route, f"the router says{f': {why}' if why else ' nothing more'}"))
        elif refuses_sha1 and route.weak_signature:
            refused.append((route, f"a certificate is signed with {route.weak_signature}"))
    if not refused:
        return
    first, why = refused[0]
    yield risk(
        NAME,
        f"{count(len(refused), 'Route')} will not be served by the next minor version any more "
        f"({names_of([route for route, _ in refused])}). Of {full_name(first)} {why}.",
        [route for route, _ in refused],
        fix="Give them certificates and settings that the target takes; the router takes its condition back then.",
        kind=ROUTES,
    )


CHECK = declared(run, NAME, "cluster-ingress-operator", reads=(ROUTES, DEFINITIONS), rank=710, updates=MINOR)
