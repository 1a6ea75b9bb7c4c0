"""Objects of Traefik are of an API group that the k3s of the target's version does not read.

Applies when the nodes run k3s, the update crosses Kubernetes 1.32, whose k3s brings Traefik 3, and there is an
IngressRoute, IngressRouteTCP, Middleware or TLSOption of the group `traefik.containo.us`.

Why it matters: Traefik 3 reads only the group `traefik.io`, so the routes of these objects stop working.

Remedy: write them in `traefik.io/v1alpha1`, which Traefik 2.10 and later read, before the update.

Accepting it is right where Traefik is not the one of k3s (`--disable=traefik`).

Source of the rule: <https://docs.k3s.io/networking/networking-services#traefik-ingress-controller> (Traefik 3 from 1.32
on, also in place of an installed Traefik 2); <https://doc.traefik.io/traefik/v2.10/deprecation/features/> (Traefik 3
does not support the group); both as of 2026-11.
"""

from __future__ import annotations

from functools import partial

from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import Object
from runup.checks.catalogue.shared.kubernetes_versions import target_minor
from runup.checks.writing import (
    DEFINITIONS,
    Context,
    Findings,
    Slim,
    Snapshot,
    count,
    declared,
    full_name,
    names_of,
    resource_of,
    risk,
    slim_metadata,
    yield_from_all,
)
from runup.rules.distributions import distribution_of

NAME = "TraefikGroupRemoved"
_FIRST = 32
EXAMPLE = """
update: {from: 1.31.4, to: 1.32.0}
---
apiVersion: v1
kind: Node
metadata: {name: server-0}
status: {nodeInfo: {kubeletVersion: v1.31.4+k3s1}}
---
apiVersion: traefik.containo.us/v1alpha1
kind: IngressRoute
metadata: {name: till, namespace: shop}
spec: {routes: []}
"""
_KINDS = tuple(
    Slim(
        group="traefik.containo.us",
        version="v1alpha1",
        kind=kind,
        plural=plural,
        namespaced=True,
        type=Object,
        keep=lambda obj: Object(metadata=slim_metadata(obj)),
        changes=(_FIRST,),
    )
    for kind, plural in (
        ("IngressRoute", "ingressroutes"),
        ("IngressRouteTCP", "ingressroutetcps"),
        ("Middleware", "middlewares"),
        ("TLSOption", "tlsoptions"),
    )
)


def run(snapshot: Snapshot, context: Context) -> Findings:
    """Yields a risk for each kind of which there are objects."""
    if not context.source.minor < _FIRST <= (target_minor(context) or 0):
        return
    if distribution_of(snapshot.all(Node)).name == "k3s":
        yield from yield_from_all(*(partial(_of_kind, snapshot, kind) for kind in _KINDS))


def _of_kind(snapshot: Snapshot, kind: Slim) -> Findings:
    """Yields the risk of the objects of a kind."""
    objects = sorted(snapshot.listed_or_none(kind), key=full_name)
    if objects:
        yield risk(
            f"{NAME}-{kind.kind}",
            f"{count(len(objects), kind.kind)} ({names_of(objects)}) of {kind.group}, which the Traefik 3 of k3s "
            f"1.{_FIRST} and later does not read.",
            objects,
            fix="Write them in traefik.io/v1alpha1 before the update.",
            kind=kind,
        )


CHECK = declared(
    run,
    NAME,
    "traefik",
    reads=(*_KINDS, resource_of(Node), DEFINITIONS),
    rank=628,
    clusters="Kubernetes",
)
