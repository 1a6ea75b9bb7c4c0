"""The endpoints of health: their checks, as kube-apiserver 1.34 names them, and the answers to probes."""

from __future__ import annotations

from kubesandbox.apiserver.http.list_options import Query
from kubesandbox.apiserver.http.messages import Response, text_response

_HOOKS = (
    "start-apiserver-admission-initializer", "generic-apiserver-start-informers",
    "priority-and-fairness-config-consumer", "priority-and-fairness-filter", "storage-object-count-tracker-hook",
    "start-apiextensions-informers", "start-apiextensions-controllers", "crd-informer-synced",
    "start-system-namespaces-controller", "start-cluster-authentication-info-controller",
    "start-kube-apiserver-identity-lease-controller", "start-kube-apiserver-identity-lease-garbage-collector",
    "start-legacy-token-tracking-controller", "start-service-ip-repair-controllers", "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes", "priority-and-fairness-config-producer", "bootstrap-controller",
    "start-kubernetes-service-cidr-controller", "start-kube-aggregator-informers",
    "apiservice-status-local-available-controller", "apiservice-status-remote-available-controller",
    "apiservice-registration-controller", "apiservice-discovery-controller", "kube-apiserver-autoregistration",
    "autoregister-completion", "apiservice-openapi-controller", "apiservice-openapiv3-controller",
)  # fmt: skip
# The one check after the start that is not named as a hook.
_AFTER_START = tuple(name if name == "autoregister-completion" else f"poststarthook/{name}" for name in _HOOKS)
_FIRST = ("ping", "log", "etcd")
_PROBES = {
    "healthz": (*_FIRST, *_AFTER_START),
    "livez": (*_FIRST, *_AFTER_START),
    "readyz": (*_FIRST, "etcd-readiness", "informer-sync", *_AFTER_START, "shutdown"),
}
_SAFE = (("X-Content-Type-Options", "nosniff"),)


def answer_probe(path: str, query: Query) -> Response | None:
    """Returns the answer to a path of a probe or of one of its checks, or None for another path."""
    probe, _, check = path[1:].partition("/")
    checks = _PROBES.get(probe)
    if checks is None or path.endswith("/"):
        return None
    if check:
        return text_response("ok") if check in checks else None
    if "verbose" not in query:
        return text_response("ok", headers=_SAFE)
    excluded = query.get("exclude", "")
    lines = [f"[+]{name} {'excluded: ok' if name == excluded else 'ok'}" for name in checks]
    if excluded and excluded not in checks:
        lines.append(f'warn: some health checks cannot be excluded: no matches for "{excluded}"')
    return text_response("\n".join((*lines, f"{probe} check passed\n")), headers=_SAFE)
