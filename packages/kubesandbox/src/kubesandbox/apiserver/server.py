"""The API server's lifecycle: a data folder in, an HTTPS address and an administrator's kubeconfig out.

async with ApiServer(data=Path("data"), port=0) as server:
    print(server.url, server.kubeconfig)
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import ssl
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from email.utils import format_datetime
from functools import partial
from pathlib import Path
from typing import Any, Self

import msgspec
import orjson
from aiohttp import web
from multidict import CIMultiDict

from kubekit.http.limited_site import LimitedSite, Limits
from kubekit.kube.clock import Clock, SystemClock, machine_now
from kubesandbox.apiserver import initial_objects, status_errors
from kubesandbox.apiserver.access import certs
from kubesandbox.apiserver.access.audit import AuditLog
from kubesandbox.apiserver.access.authn import Authenticator, TokenSigner, certificate_user, openid_configuration
from kubesandbox.apiserver.access.authz import Authorizer, Escalation
from kubesandbox.apiserver.access.collected import CONTROLLERS, Collected
from kubesandbox.apiserver.access.impersonation import impersonated_user
from kubesandbox.apiserver.access.review_requests import Reviews
from kubesandbox.apiserver.custom.conversion_webhooks import ConversionWebhooks
from kubesandbox.apiserver.custom.custom_kinds import Definitions
from kubesandbox.apiserver.faults import Faults
from kubesandbox.apiserver.http import messages
from kubesandbox.apiserver.http.body import MAX_BYTES
from kubesandbox.apiserver.http.probes import answer_probe
from kubesandbox.apiserver.http.query_parameters import WriteOptions, check_timeout
from kubesandbox.apiserver.http.request_target import Target, endpoint_error, not_there
from kubesandbox.apiserver.large_steps import is_large, run_step
from kubesandbox.apiserver.metadata import new_uid
from kubesandbox.apiserver.objects import strategies
from kubesandbox.apiserver.objects.admission import Admission
from kubesandbox.apiserver.objects.reading import Renderer, render_unstored
from kubesandbox.apiserver.objects.rest import Rest
from kubesandbox.apiserver.objects.schemas import Schemas
from kubesandbox.apiserver.policies import policy_admission
from kubesandbox.apiserver.policies.webhook_admission import WebhookAdmission
from kubesandbox.apiserver.policies.webhook_client import WebhookClient
from kubesandbox.apiserver.published.discovery_documents import VERSION, Discovery
from kubesandbox.apiserver.published.openapi import OpenApiDocuments
from kubesandbox.apiserver.quotas.usage import QUOTAS, QuotaAdmission
from kubesandbox.apiserver.served_kinds import KindTable
from kubesandbox.apiserver.server_flags import Disabled
from kubesandbox.apiserver.store import Store
from kubesandbox.apiserver.subresources.handlers import Subresources

# Bodies above Kubernetes' own limit get Kubernetes' error; the transport only cuts off those far above it.
_TRANSPORT_LIMIT = MAX_BYTES * 4
# Characters of an error with thousands of causes.
_LONG_MESSAGE = 256 * 1024
# All clients of a sandbox are at one address; Go's clients keep a connection for longer than those of this project.
_LIMITS = Limits(connections=10_000, of_address=10_000, idle_s=600.0)
# The number of connections whose client certificate is kept read.
_MAX_CACHED_CONNECTIONS = 4096

# Characters that no header may have.
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_OWN = WriteOptions(manager="kube-apiserver", validation="Ignore")
_LOG = logging.getLogger(__name__)


class ApiServer:
    """A server on one data folder. Use it as an async context manager, or call `start` and `stop`."""

    def __init__(
        self,
        data: Path,
        port: int = 0,
        *,
        audit: Path | None = None,
        clock: Clock | None = None,
        host: str = "127.0.0.1",
        client_authority: bytes = b"",
        disabled: Disabled | None = None,
    ) -> None:
        """`client_authority` (PEM) signs client certificates, too, next to the authority of the data folder.

        `disabled` names the admission plugins and versions that this server does not have.
        """
        self._disabled = disabled or Disabled()
        self.data = Path(data)
        self.clock = clock or SystemClock()
        self.faults = Faults(self.clock)
        self._host, self._port = host, port
        self._client_authority = client_authority
        self._audit_path = audit or self.data / "audit.log"
        self._runner: web.ServerRunner | None = None
        self._user_by_connection: dict[Any, messages.User | None] = {}
        # The last Date header with its second: formatting it takes as long as routing a request.
        self._date: tuple[datetime | None, str] = (None, "")
        self.url = ""

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig (group system:masters)."""
        return self.data / "admin.kubeconfig"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Opens the data folder, listens, and writes the kubeconfig. Raises StoreError or OSError."""
        self.data.mkdir(parents=True, exist_ok=True)
        ca, _ = certs.load_or_create(self.data / "pki", machine_now())
        self._ca = ca
        self.store = Store(self.data / "store.db", monotonic=self.clock.monotonic)
        await self.store.open()
        try:
            self._app = self._build_app()
            # Together, so that the store commits them in a few transactions; namespaces first, as others are in them.
            own = initial_objects.initial_objects()
            for namespaces in (True, False):
                chosen = [obj for obj in own if (obj["kind"] == "Namespace") is namespaces]
                await asyncio.gather(*map(self._create_own_object, chosen))
            await self._start_listening(ca)
        except BaseException:
            await self.store.close()
            raise
        masters = ("system:masters",)
        certs.write_private(self.data / "controllers.kubeconfig", self.kubeconfig_for(CONTROLLERS, masters))
        certs.write_private(self.kubeconfig, self.kubeconfig_for("kubernetes-admin", masters))

    async def stop(self) -> None:
        """Ends the watches, stops listening, commits, and closes the store."""
        self.rest.reading.stop_watches()
        await self.definitions.stop()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        await self.store.close()
        self._audit.close()

    # -- building --------------------------------------------------------------------------------------------------

    def _build_app(self) -> App:
        """Returns the application with its store, kinds, access control and handlers."""
        clock, store = self.clock, self.store
        self.kinds, self.schemas = KindTable(self._disabled.serves), Schemas()
        self._audit = AuditLog(self._audit_path, clock.now, clock.monotonic)
        signer = TokenSigner.load_or_create(self.data / "pki" / "service-account.key")
        self.authn = Authenticator(store, signer, clock.now)
        self.authz = Authorizer(store)
        plugins = self._disabled.plugins
        admission = Admission(store, plugins)
        self.rest = Rest(
            store=store, kinds=self.kinds, schemas=self.schemas, admission=admission, renderer=Renderer(clock),
            clock=clock,
        )  # fmt: skip
        self.definitions = Definitions(store, self.kinds, self.schemas, self.rest, clock=clock)
        admission.definitions = self.definitions
        client = WebhookClient(store)
        self.schemas.conversions.ask = ConversionWebhooks(client).convert_objects
        self.rest.writing.webhooks = WebhookAdmission(
            store, self.kinds, client=client, convert=self.schemas.conversions.as_other_kind,
            complete=self.schemas.complete, authorize=self.authz.decide, disabled=plugins,
        )  # fmt: skip
        self.rest.writing.guard = Escalation(self.authz).check
        admission.policy_status = lambda policy: policy_admission.policy_status(policy, self.kinds, self.schemas.tree)
        if "ValidatingAdmissionPolicy" not in plugins:
            self.rest.writing.policies = policy_admission.PolicyAdmission(
                store, self.kinds, self.rest.objects, self.authz.decide
            ).check
        quota = next(kind for kind in self.kinds if kind.resource == QUOTAS)
        if "ResourceQuota" not in plugins:
            self.rest.writing.quotas = QuotaAdmission(store, quota, self.rest.change, clock).admit
        reviews, pods = Reviews(self.authn, self.authz), self.data / "pods"
        self.discovery = Discovery(self.kinds)
        return App(
            kinds=self.kinds,
            rest=self.rest,
            subresources=Subresources(self.rest, reviews, signer=signer, clock=clock, pods=pods),
            authn=self.authn,
            authz=self.authz,
            collected=Collected(store),
            discovery=self.discovery,
            audit=self._audit,
            documents=OpenApiDocuments(self.kinds, clock).serve,
            faults=self.faults,
        )

    async def _create_own_object(self, obj: dict[str, Any], *, keep_existing: bool = True) -> None:
        """Creates one of the server's own objects; one that is there is kept, or gets what `obj` has."""
        group, _, version = obj["apiVersion"].rpartition("/")
        kind = next((k for k in self.kinds if (k.group, k.version, k.kind) == (group, version, obj["kind"])), None)
        if kind is None:  # its version is turned off
            return
        namespace, name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
        if self.store.get(kind.storage, namespace, name) is None:
            await self.rest.writing.create_object(kind, namespace, obj, _OWN)
        elif not keep_existing:
            target = Target(
                verb="update", group=kind.group, version=kind.version, namespace=namespace,
                resource=kind.plural, name=name,
            )  # fmt: skip
            changed = {key: value for key, value in obj.items() if key != "metadata"}
            await self.rest.change(kind, target, lambda old: {**old, **changed}, _OWN)

    async def _start_listening(self, ca: certs.KeyPair) -> None:
        """Listens for HTTPS on the host and port; port 0 takes a free one."""
        # Clients may use a token instead of a certificate, which is therefore asked for and not demanded.
        context, pki = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self.data / "pki"
        context.load_cert_chain(pki / "server.crt", pki / "server.key")
        context.load_verify_locations(cadata=(ca.cert + self._client_authority).decode())
        context.verify_mode = ssl.CERT_OPTIONAL
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        server = web.Server(self._serve_request, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await self._runner.setup()
        site = LimitedSite(self._runner, self._host, self._port, ssl_context=context, limits=_LIMITS, backlog=1024)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"https://{self._host}:{port}"
        self.discovery.address = f"{self._host}:{port}"
        for obj in initial_objects.of_server(self._host, port, self._ca.cert):
            await self._create_own_object(obj, keep_existing=False)

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> bytes:
        """Returns a kubeconfig for another user, by client certificate."""
        pair = certs.issue_client(self._ca, user, groups, machine_now())
        return certs.build_kubeconfig(self.url, self._ca, user, certs.client_credentials(pair))

    # -- the rim to aiohttp ----------------------------------------------------------------------------------------

    async def _serve_request(self, raw: web.BaseRequest) -> web.StreamResponse:
        """Converts aiohttp's request and the response of the application."""
        raw._client_max_size = _TRANSPORT_LIMIT
        body = await raw.read() if raw.body_exists else b""
        try:
            request = messages.Request.parse(raw.method, raw.raw_path, raw.headers.items(), body)
        except status_errors.ApiError as error:
            return web.Response(status=400, text=f"400 Bad Request: {error.message}")
        response = await self._app.handle(request, self._user_of_certificate(raw))
        # The Date header has the cluster's time, which need not be the machine's.
        now = self.clock.now()
        if now != self._date[0]:
            self._date = now, format_datetime(now, usegmt=True)
        fields = CIMultiDict(response.headers)
        fields["Content-Type"], fields["Date"] = response.content_type, self._date[1]
        if response.stream is not None:
            return await self._send_stream(raw, response, fields)
        return web.Response(body=response.body, status=response.status, headers=fields)

    def _user_of_certificate(self, raw: web.BaseRequest) -> messages.User | None:
        """Returns the user of the connection's client certificate, None without one.

        Each connection's certificate is read once. Ended connections are not removed one by one: the cache is emptied
        when it is full.
        """
        transport = raw.transport
        if transport is None:
            return None
        protocol = transport.get_protocol()
        if protocol not in self._user_by_connection:
            if len(self._user_by_connection) > _MAX_CACHED_CONNECTIONS:
                self._user_by_connection.clear()
            tls = transport.get_extra_info("ssl_object")
            der = tls.getpeercert(binary_form=True) if tls is not None else None
            self._user_by_connection[protocol] = certificate_user(transport.get_extra_info("peercert"), der)
        return self._user_by_connection[protocol]

    async def _send_stream(
        self, raw: web.BaseRequest, response: messages.Response, headers: CIMultiDict[str]
    ) -> web.StreamResponse:
        """Sends a response piece by piece, until the handler or the client ends it."""
        answer = web.StreamResponse(status=response.status, headers=headers)
        answer.enable_chunked_encoding()
        writer = await answer.prepare(raw)
        if writer is not None and hasattr(writer, "send_headers"):
            # aiohttp holds the headers back until the first chunk; a client must learn at once that its watch began.
            writer.send_headers()
        stream = response.stream
        if stream is None:
            return answer
        try:
            async for chunk in stream:
                if chunk:
                    await answer.write(chunk)
            await answer.write_eof()
        except (ConnectionError, asyncio.CancelledError):
            # The client has disconnected, or the server is stopping: then the last chunk ends the response properly.
            with contextlib.suppress(Exception):
                await answer.write_eof()
        finally:
            await stream.aclose()  # type: ignore[attr-defined]
        return answer


@dataclass(slots=True, kw_only=True)
class App:
    """The request handler: authenticates, authorizes, calls the handler, and turns every failure into a Status.

    It uses no web framework and no socket.
    """

    kinds: KindTable
    rest: Rest
    subresources: Subresources
    authn: Authenticator
    authz: Authorizer
    collected: Collected
    discovery: Discovery
    audit: AuditLog
    documents: Callable[[messages.Request], messages.Response | None]
    faults: Faults

    def __post_init__(self) -> None:
        def authorize(request: messages.Request, target: Target) -> None:
            if request.user is not None:
                self.authz.require(request.user, target)

        self.rest.patching.authorize = authorize

    async def handle(self, request: messages.Request, certificate: messages.User | None) -> messages.Response:
        """Returns the response to one request, which is then in the audit log; never raises."""
        received = self.audit.now_text()
        audit_id = request.header("audit-id") or new_uid()
        failure: status_errors.ApiError | None = None
        try:
            self.audit.reserve()
        except OSError as error:
            return _not_audited(error)
        try:
            response = await self._respond(request, certificate)
        except status_errors.ApiError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - one bug must not take the server down
            _LOG.exception("%s %s", request.method, request.uri)
            failure = status_errors.internal(f"{type(error).__name__}: {error}")
        if failure is not None:
            response = await _failure_response(failure)
        if messages.wants_protobuf(request, response):
            response = await run_step(partial(messages.in_protobuf, response), large=is_large(response.body))
        response = messages.indented(request, response)
        response = replace(response, headers=(*response.headers, *_common_headers(request, response, audit_id)))
        try:
            self.audit.write(request, response=response, received=received, audit_id=audit_id, failure=failure)
        except OSError as error:
            return _not_audited(error)
        return response

    async def _respond(self, request: messages.Request, certificate: messages.User | None) -> messages.Response:
        """Authenticates, authorizes and carries the request out. Raises ApiError."""
        target = request.target
        if target.fault:
            return messages.text_response(f'Internal Server Error: "{request.uri}": {target.fault}\n', 500)
        check_timeout(target, request.query)
        request.sender = self.authn.identify(request, certificate)
        # Until the rights to impersonate are known, the request is the sender's.
        request.user = request.sender
        request.user = impersonated_user(self.authz, request, request.sender) or request.sender
        self.authz.require(request.user, target)
        if self.faults.active:
            await self.faults.inject(request)
        return await self._dispatch_request(request, target)

    async def _dispatch_request(self, request: messages.Request, target: Target) -> messages.Response:
        """Returns the response of the handler for the path and verb. Raises ApiError."""
        kind = self.kinds.find(target.group, target.version, target.resource) if target.is_resource else None
        if kind is None or target.path.startswith("//"):
            return self._serve_document(request)
        if failure := endpoint_error(request.method, target, kind):
            # The real server has no handler for such a path of a custom resource.
            if kind.custom:
                return self._serve_document(request)
            raise failure
        if not kind.custom and not target.subresource:
            # The real server's router does so for built-in resources.
            messages.check_acceptable(request.header("accept"))
        elif kind.custom and not target.subresource:
            accepted = messages.negotiate(request.header("accept"))
            if accepted.as_protobuf and accepted.form is messages.Form.OBJECT:
                raise status_errors.only_media_types()
        if not kind.namespaced:
            # A namespace is in itself for authorization and the audit log, not in the store.
            target = msgspec.structs.replace(target, namespace="")
        if text := strategies.deprecation_warning(kind):
            request.warnings.append(text)
        if target.subresource:
            return await self.rest.reading.known(lambda: self.subresources.handle(request, target, kind))
        if review := self.subresources.review(kind):
            accepted = messages.negotiate(request.header("accept"), messages.UNSTORED)
            return render_unstored(await review(request, target), accepted)
        self.collected.check_collected(request, target, kind)
        if (handler := self.rest.verbs.get(target.verb)) is None:
            raise status_errors.method_not_allowed()
        return await self.rest.reading.known(lambda: handler(request, target, kind))

    def _serve_discovery(self, path: str, request: messages.Request) -> messages.Response | None:
        """Returns the discovery document at a path, or None. Raises ApiError 406."""
        if self.discovery.serve(path, messages.Form.OBJECT) is None:
            return None
        return self.discovery.serve(path, messages.negotiate(request.header("accept"), messages.DOCUMENTS).form)

    def _openid(self, path: str, accept: str) -> messages.Response | None:
        """Returns a document of the issuer of tokens, None for another path. Raises ApiError 406."""
        if path == "/openid/v1/jwks":
            document, type_ = self.authn.signer.key_set(), "application/jwk-set+json"
        elif path == "/.well-known/openid-configuration":
            document, type_ = openid_configuration(f"https://{self.discovery.address}"), messages.JSON_TYPE
        else:
            return None
        if accept and not any(clause.split(";")[0].strip() in (type_, "*/*") for clause in accept.split(",")):
            raise status_errors.not_acceptable(type_)
        cached = (("Cache-Control", "public, max-age=3600"),)
        return messages.Response(body=orjson.dumps(document), content_type=type_, headers=cached)

    def _serve_document(self, request: messages.Request) -> messages.Response:
        """Returns the response of a path without objects: health, discovery, OpenAPI, version. Raises ApiError 404."""
        if request.target.path.startswith(("//", "/apis//")):
            return messages.text_response("404 page not found\n", 404)
        path = request.target.path.rstrip("/") or "/"
        if (answer := answer_probe(request.target.path, request.query)) is not None:
            return answer
        if path == "/":
            paths = ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/readyz"]
            for group, versions in self.kinds.groups().items():
                if group:
                    paths += [f"/apis/{group}", *(f"/apis/{group}/{version}" for version in versions)]
            return messages.json_response({"paths": sorted([*paths, "/version"])})
        if document := self.documents(request):
            return document
        document = None
        if path == "/version":
            # A handler without objects: the parameters of media types have no meaning.
            media = ",".join(clause.partition(";")[0] for clause in request.header("accept").split(","))
            accepted = messages.negotiate(media, frozenset({messages.Form.OBJECT}))
            if accepted.as_yaml or accepted.as_protobuf:
                raise status_errors.not_acceptable()
            document = messages.Response(body=orjson.dumps(VERSION, option=orjson.OPT_INDENT_2))
        document = document or self._openid(path, request.header("accept"))
        if path.split("/")[1] in {"api", "apis"}:
            document = self._serve_discovery(path, request)
        if document is not None:
            # The aggregator's group handlers accept any method.
            if request.method == "GET" or (path.startswith("/apis") and path.count("/") < 3):
                return document
            raise status_errors.method_not_allowed()
        if request.target.has_builtin_group or path.startswith("/version/"):
            raise not_there()
        return messages.text_response("404 page not found\n", 404)


def _common_headers(request: messages.Request, response: messages.Response, audit_id: str) -> Iterator[tuple[str, str]]:
    """Yields the headers that every response has."""
    yield "Audit-Id", _CONTROL.sub("\ufffd", audit_id)
    if not any(name == "Cache-Control" for name, _ in response.headers):
        yield "Cache-Control", "no-cache, private"
    for text in request.warnings.sent():
        yield "Warning", _CONTROL.sub("\ufffd", f"299 - {messages.encode_json(text).decode()}")


async def _failure_response(failure: status_errors.ApiError) -> messages.Response:
    """Returns the response with a failure, which may have as many causes as the object has fields."""
    return await run_step(
        lambda: messages.json_response(failure.status(), failure.code, failure.headers),
        large=len(failure.message) > _LONG_MESSAGE,
    )


def _not_audited(error: OSError) -> messages.Response:
    _LOG.error("the audit log cannot be written: %s", error)
    failure = status_errors.internal(f"the request cannot be audited: {error.strerror}")
    return messages.json_response(failure.status(), failure.code)
