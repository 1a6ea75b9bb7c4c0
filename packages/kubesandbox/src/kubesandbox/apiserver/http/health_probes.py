"""The probes `/healthz`, `/livez` and `/readyz`, with `?verbose` and `?exclude=CHECK`, and each check by itself.

As k8s.io/apiserver/pkg/server/healthz answers. All checks are passed by a server that answers: it listens once its
store is open. The hooks of other components, which a real server lists too, are not there.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubesandbox.apiserver.http.messages import Response, text_response

_CHECKS = ("ping", "log", "etcd")
_PROBES = {"healthz": _CHECKS, "livez": _CHECKS, "readyz": (*_CHECKS, "informer-sync", "shutdown")}
_SAFE = (("X-Content-Type-Options", "nosniff"),)


def answer_probe(path: str, query: Mapping[str, str]) -> Response | None:
    """Returns the answer to a path of a probe or of one of its checks, or None for another path."""
    probe, _, check = path[1:].partition("/")
    checks = _PROBES.get(probe)
    if checks is None:
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
