"""The request handler: authenticates, authorizes, calls the handler, and turns every failure into a Status.

`App.handle` takes and returns values and uses no web framework, so that tests can run the whole server without a
socket.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec
import orjson

from kubekit.kube.clock import Clock
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.access.audit import AuditLog
from kubesandbox.apiserver.access.authn import Authenticator
from kubesandbox.apiserver.access.authz import Attributes, Authorizer
from kubesandbox.apiserver.access.collected import Collected
from kubesandbox.apiserver.http import endpoints, health_probes
from kubesandbox.apiserver.http.content_negotiation import DOCUMENTS, UNSTORED, negotiate
from kubesandbox.apiserver.http.messages import Request, Response, User, json_response, text_response
from kubesandbox.apiserver.http.query_parameters import check_timeout
from kubesandbox.apiserver.http.routing import Target, parse_target
from kubesandbox.apiserver.metadata import new_uid
from kubesandbox.apiserver.objects import strategies
from kubesandbox.apiserver.objects.representations import render_unstored
from kubesandbox.apiserver.objects.rest import Rest
from kubesandbox.apiserver.published.discovery_documents import VERSION, Discovery
from kubesandbox.apiserver.served_kinds import KindTable
from kubesandbox.apiserver.status_errors import ApiError
from kubesandbox.apiserver.subresources.places import Subresources

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class Parts:
    """The components of the server."""

    clock: Clock
    kinds: KindTable
    rest: Rest
    subresources: Subresources
    authn: Authenticator
    authz: Authorizer
    collected: Collected
    discovery: Discovery
    audit: AuditLog
    documents: Callable[[Request], Response | None]


class App:
    """The whole server without its socket."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        parts.rest.patching.authorize = self._authorize_as
        self._verbs = parts.rest.verbs

    async def handle(self, request: Request, uri: str, certificate: User | None) -> Response:
        """Returns the response to one request; never raises. `uri` is the path with its query, for the audit log."""
        parts = self._parts
        received = parts.audit.now_text()
        target = parse_target(request.method, request.path, request.query)
        user: User | None = None
        acting: User | None = None
        failure: ApiError | None = None
        audit_id = request.header("audit-id") or new_uid()
        try:
            check_timeout(target, request.query)
            user = parts.authn.identify(request, certificate)
            acting = self._impersonated_user(request, user)
            request.user = acting or user
            parts.authz.require(request.user, Attributes.of(target))
            response = await self._dispatch_request(request, target)
        except ApiError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - one bug must not take the server down
            _LOG.exception("%s %s", request.method, uri)
            failure = status_errors.internal(f"{type(error).__name__}: {error}")
        if failure is not None:
            response = json_response(failure.status(), failure.code, failure.headers)
        response = replace(response, headers=_with_extra(response.headers, request, audit_id))
        parts.audit.write(
            request,
            target,
            uri,
            response.status,
            received,
            stage="ResponseStarted" if response.stream else "ResponseComplete",
            audit_id=audit_id,
            user=user,
            impersonated=acting,
            reason=failure.reason if failure else "",
            message=failure.message if failure else "",
        )
        return response

    async def _dispatch_request(self, request: Request, target: Target) -> Response:
        """Returns the response of the handler for the path and verb. Raises ApiError."""
        if not target.is_resource:
            return self._serve_document(request)
        parts = self._parts
        kind = parts.kinds.find(target.group, target.version, target.resource)
        if kind is None or not endpoints.is_custom_place(target, kind):
            return self._serve_document(request)
        if failure := endpoints.endpoint_error(request.method, target, kind):
            raise failure
        if target.resource == "namespaces":
            target = msgspec.structs.replace(target, namespace="")
        if text := strategies.deprecation_warning(kind):
            request.warnings.append(text)
        if target.subresource:
            return await parts.rest.reading.known(lambda: parts.subresources.handle(request, target, kind))
        if review := parts.subresources.review(kind):
            accepted = negotiate(request.header("accept"), UNSTORED)
            return render_unstored(await review(request, target), accepted)
        parts.collected.check_collected(request, target, kind)
        return await parts.rest.reading.known(lambda: self._verbs[target.verb](request, target, kind))

    def _serve_document(self, request: Request) -> Response:
        """Returns the response of a path without objects: health, discovery, OpenAPI, version. Raises ApiError 404."""
        path = request.path.rstrip("/") or "/"
        if (answer := health_probes.answer_probe(path, request.query)) is not None:
            return answer
        if path == "/":
            return json_response({"paths": self._list_paths()})
        if document := self._parts.documents(request):
            return document
        document = json_response(VERSION) if path == "/version" else self._serve_discovery(request, path)
        if document is not None:
            # The aggregator's group handlers accept any method.
            if request.method == "GET" or (path.startswith("/apis") and path.count("/") < 3):
                return document
            raise status_errors.method_not_allowed()
        if endpoints.in_builtin_group(path):
            kind = self._parts.kinds.find(*endpoints.resource_of(path))
            raise status_errors.method_not_allowed() if kind else endpoints.not_there()
        return text_response("404 page not found\n", 404)

    def _serve_discovery(self, request: Request, path: str) -> Response | None:
        if path.split("/")[1] not in {"api", "apis"}:
            return None
        return self._parts.discovery.serve(path, negotiate(request.header("accept"), DOCUMENTS).form)

    def _list_paths(self) -> list[str]:
        """Returns the paths that `/` lists, sorted."""
        groups = self._parts.kinds.groups()
        paths = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
        for group, versions in groups.items():
            if group:
                paths += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
        return sorted(paths)

    # -- impersonation -----------------------------------------------------------------------------------------------

    def _impersonated_user(self, request: Request, user: User) -> User | None:
        """Returns the user that the request's headers name, None without such headers. Raises ApiError."""
        name = request.header("impersonate-user")
        groups = tuple(filter(None, request.header("impersonate-group").split("\n")))
        if not name:
            # Groups or a uid without a user are an error, as in k8s.io/apiserver's impersonation filter.
            if groups or request.header("impersonate-uid"):
                raise status_errors.internal("requested impersonation without impersonating a user")
            return None
        self._require_impersonation(user, name, groups)
        # Impersonating a ServiceAccount adds its groups unless others are given.
        if name.startswith("system:serviceaccount:") and name.count(":") == 3 and not groups:
            namespace = name.split(":")[2]
            groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        if name != "system:anonymous" and "system:authenticated" not in groups:
            groups = (*groups, "system:authenticated")
        return User(name, request.header("impersonate-uid"), groups)

    def _require_impersonation(self, user: User, name: str, groups: tuple[str, ...]) -> None:
        """Raises ApiError 403 unless `user` may impersonate that user and those groups."""
        authz = self._parts.authz
        if name.startswith("system:serviceaccount:") and name.count(":") == 3:
            _, _, namespace, account = name.split(":")
            authz.require(user, Attributes("impersonate", "", "serviceaccounts", namespace=namespace, name=account))
        else:
            authz.require(user, Attributes("impersonate", "", "users", name=name))
        for group in groups:
            authz.require(user, Attributes("impersonate", "", "groups", name=group))

    def _authorize_as(self, request: Request, target: Target) -> None:
        if request.user is not None:
            self._parts.authz.require(request.user, Attributes.of(target))


def _with_extra(headers: tuple[tuple[str, str], ...], request: Request, audit_id: str) -> tuple[tuple[str, str], ...]:
    """Returns the headers with the audit ID, the warnings, and no caching unless the response says otherwise."""
    extended = [*headers, ("Audit-Id", audit_id)]
    if not any(name == "Cache-Control" for name, _ in headers):
        extended.append(("Cache-Control", "no-cache, private"))
    extended += [("Warning", f"299 - {orjson.dumps(text).decode()}") for text in request.warnings]
    return tuple(extended)
