"""HTTP requests to a registry: TLS, proxies, redirects, authentication, retries, and errors that name the remedy.

In: a request. Out: an open answer, or an OciError. Credentials are sent to their host and to the token service that it
names, never along a redirect, and unencrypted to another machine only if that host was listed as plain. Protocol: OCI
distribution-spec 1.1; tokens: the distribution project's token specification.
"""

from __future__ import annotations

import contextlib
import errno
import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlencode, urljoin, urlsplit

import kubekit
from kubekit.http import http_date
from kubekit.http.addresses import Deadline, ForbiddenAddress, connect_allowed
from kubekit.http.http_connection import Answer, Incomplete
from kubekit.http.single_request import send_once
from kubekit.lang.text import cut
from kubekit.oci import registry_errors as errors
from kubekit.oci.access import Access
from kubekit.oci.credentials import Login, quote_headers
from kubekit.oci.credentials import parse_challenges as parse_challenges
from kubekit.oci.reference import DOCKER_HUB, Reference

AGAIN = frozenset({429, 500, 502, 503, 504})  # statuses after which a retry may succeed
FIRST_PAUSE_S = 1.0
MAX_PAUSE_S = 60.0
MAX_REDIRECTS = 10
_MAX_ANSWER = 1 << 20
_MAX_TOKEN = 64 * 1024
_UPLOADED_PIECE = 32 * 1024
# Of a registry's own messages, each in bytes.
_MOST_TEXTS, _LONGEST_TEXT = 3, 200
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_BAD_REQUEST = 400
# Time for a TLS handshake that only shows which protocol a server speaks, in seconds.
_HANDSHAKE_S = 5.0
# Why a certificate is not valid (openssl/x509_vfy.h).
_NOT_YET, _EXPIRED, _OTHER_HOST = 9, 10, frozenset({62, 64})
_READS = frozenset({"GET", "HEAD"})
# Docker Hub serves the registry API under another name than its images have.
_HUB_HOST = "registry-1.docker.io"
# Characters of a place that a registry leads to which messages quote.
_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryRequest:
    """A request to the registry of `reference`.

    `path` is below the repository, or a whole URL that the registry returned. `scope` is what a token must allow:
    `pull` or `pull,push`. `what` is for messages. A path as body is streamed. `size` is the number of bytes to be
    transferred, for which the time limit is extended.
    """

    reference: Reference
    method: str
    path: str
    what: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | Path | None = None
    scope: str = "pull"
    size: int = 0

    @property
    def noun(self) -> str:
        """The kind of object that the registry may not have, for messages."""
        return "manifest" if self.path.startswith("manifests/") else "blob"


class Transport:
    """Sends requests to registries with the settings in `access`, for one thread at a time; caches tokens."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._authorizations: dict[tuple[str, str, str], str] = {}
        self._tls: dict[bool, ssl.SSLContext] = {}
        # Registries on this machine that turned out to speak TLS.
        self._secure: set[str] = set()
        # Registries of which it was found out once whether they do.
        self._probed: set[str] = set()

    @contextlib.contextmanager
    def ask(self, request: RegistryRequest) -> Iterator[Answer]:
        """Opens the answer, whose status is below 300. Raises OciError."""
        with contextlib.closing(self._authorized_answer(request)) as answer:
            yield answer

    def _repository_url(self, reference: Reference) -> str:
        host = _HUB_HOST if reference.host == DOCKER_HUB else reference.host
        scheme = "http" if self._access.is_plain(host) and host not in self._secure else "https"
        return f"{scheme}://{host}/v2/{reference.path}/"

    def _request_url(self, request: RegistryRequest) -> SplitResult:
        """Returns the URL to request. Raises Unauthorized if it is not allowed, BadImage if it is invalid."""
        return self.allowed(self._repository_url(request.reference), request.path, request)

    def _authorized_answer(self, request: RegistryRequest) -> Answer:
        """Returns a successful answer; after a 401 it gets an authorization and sends the request once more."""
        key = (request.reference.host, request.reference.path, request.scope)
        on_registry = self._is_registrys(request)
        answer = self._answer_after_retries(request, self._authorizations.get(key, "") if on_registry else "")
        # The registry's challenge names the token service and the scope (distribution project, token specification).
        # A challenge of a server to which the registry redirects gets no credentials.
        if answer.status == 401 and answer.origin == urlsplit(self._repository_url(request.reference)).netloc:
            with contextlib.closing(answer):
                challenges = answer.headers.get_all("WWW-Authenticate")
            self._authorizations[key] = self._authorization_for(request, challenges)
            answer = self._answer_after_retries(request, self._authorizations[key])
        if answer.status >= 300:
            with contextlib.closing(answer):
                raise self._error_for_status(request, answer, _registry_message(answer))
        return answer

    def _is_registrys(self, request: RegistryRequest) -> bool:
        """Returns whether the URL is on the registry itself: another host, named for an upload, gets no credentials."""
        return self._request_url(request).netloc == urlsplit(self._repository_url(request.reference)).netloc

    def _answer_after_retries(self, request: RegistryRequest, authorization: str) -> Answer:
        """Returns the answer, after retries while the registry reports that it is overloaded or broken."""
        for attempt in range(1, self._access.attempts + 1):
            last = attempt == self._access.attempts
            try:
                answer = self._attempt_once(request, authorization)
            except Interrupted as error:
                if last or self._access.wait(pause_s(attempt)):
                    raise errors.Unreachable(f"{request.what}: {request.reference.host} broke off: {error}") from error
                continue
            if answer.status not in AGAIN or last:
                return answer
            with contextlib.closing(answer):
                seconds = pause_s(attempt, answer.headers.get("Retry-After"), answer.headers.get("Date"))
            if self._access.wait(seconds):
                raise errors.Unreachable(f"{request.what}: given up while {answer.origin} answered {answer.status}")
        raise AssertionError("the last attempt returns or raises")

    def _attempt_once(self, request: RegistryRequest, authorization: str) -> Answer:
        """Makes one attempt. Raises Unreachable if another one does not help, else Interrupted."""
        url, access = self._request_url(request), self._access
        seconds = access.request_s + request.size / access.slowest_bytes_s
        deadline = Deadline.after(seconds, access.timeout_s, access.monotonic)
        try:
            answer = self._follow_redirects(url, request, authorization, deadline)
            # Servers that speak TLS alone answer a plain request by this status, by a TLS alert, or not at all.
            if answer.status != _BAD_REQUEST or answer.origin != url.netloc or not self._speaks_tls(url):
                return answer
            answer.close()
            return self._over_tls(request, authorization, url)
        except ForbiddenAddress as error:
            raise errors.Unauthorized(f"{request.what}: {request.reference.host} leads elsewhere: {error}") from error
        except OSError as error:
            unanswered = isinstance(error, ConnectionRefusedError | TimeoutError)
            if not unanswered and self._speaks_tls(url):
                return self._over_tls(request, authorization, url)
            raise connection_error(request, url.netloc, error) from error
        except ValueError as error:
            # A host that no resolver takes, or a header that no request can have.
            raise errors.BadImage(f"{request.what}: {url.netloc} cannot be asked: {error}") from error

    def _speaks_tls(self, url: SplitResult) -> bool:
        """Returns whether the server behind a plain URL, which did not answer as HTTP servers do, speaks TLS."""
        if url.scheme != "http" or url.netloc in self._probed:
            return False
        self._probed.add(url.netloc)
        reach = self._access.reach(url.netloc, url.netloc, redirected=False)
        context = _unverifying_context()
        deadline = Deadline.after(_HANDSHAKE_S, self._access.timeout_s, self._access.monotonic)
        try:
            with connect_allowed(url.hostname or "", url.port or 80, reach, deadline) as plain:
                plain.settimeout(deadline.wait_s())
                with context.wrap_socket(plain, server_hostname=url.hostname):
                    return True
        except (OSError, ValueError):
            return False

    def _over_tls(self, request: RegistryRequest, authorization: str, url: SplitResult) -> Answer:
        """Sends the request over TLS to a registry on this machine. Raises Unreachable for one that was listed."""
        if url.netloc in self._access.plain_http or not self._is_registrys(request):
            raise errors.Unreachable(
                f"{request.what}: {url.netloc} speaks TLS, but is listed for plain HTTP: do not list it"
            )
        self._secure.add(url.netloc)
        return self._attempt_once(request, authorization)

    def _follow_redirects(
        self, url: SplitResult, request: RegistryRequest, authorization: str, deadline: Deadline
    ) -> Answer:
        """Returns the answer after redirects of a read; a redirect of a write is returned as it is."""
        reference, reads = request.reference, request.method in _READS
        registry = urlsplit(self._repository_url(reference)).netloc
        # This machine and listed hosts are reached directly, all others through the proxies.
        direct = self._access.is_plain(url.netloc)
        checked = reference.host not in self._access.unchecked
        headers = {"User-Agent": kubekit.product, **request.headers}
        request_headers = {"Authorization": authorization} if authorization else {}
        for hop in range(MAX_REDIRECTS + 1):
            try:
                proxy = None if direct else self._access.egress.proxy_for(url)
                # Reading the machine's authorities takes longer than most requests; a file that was named must be one.
                tls = url.scheme == "https" or self._access.ca_file
                proxy_tls = proxy is not None and proxy.scheme == "https"
                with _open_body(request.body) as (body, length):
                    answer = send_once(
                        request.method,
                        url,
                        {**headers, **request_headers, **length},
                        body,
                        context=self._tls_context(checked=checked) if tls else None,
                        deadline=deadline,
                        reach=self._access.reach(url.netloc, registry, redirected=bool(hop)),
                        proxy=proxy,
                        proxy_context=self._tls_context(checked=True) if proxy_tls else None,
                    )
            except ForbiddenAddress as error:
                if hop or url.netloc != registry:
                    raise
                raise errors.AddressNotAllowed(
                    f"{request.what}: registry {request.reference.host} was not asked, because it is at an inner "
                    "address (this machine, link-local, or the cluster's Services): an administrator may list it as an "
                    "inner registry"
                ) from error
            except OSError as error:
                if not hop:
                    raise
                raise connection_error(request, url.netloc, error) from error
            location = answer.headers.get("Location")
            if not reads or not location or answer.status not in _REDIRECTS:
                return answer
            answer.close()
            before, url = url, self.allowed(url.geturl(), location, request)
            # Blobs are often in another owner's storage, which must not see the credentials.
            if (url.scheme, url.netloc) != (before.scheme, before.netloc):
                request_headers = {}
        raise OSError(errno.ELOOP, f"more than {MAX_REDIRECTS} redirects, the last to {url.netloc}")

    def _tls_context(self, *, checked: bool) -> ssl.SSLContext:
        """Returns the context for servers whose certificate is verified, or for others. Raises Unreachable."""
        if checked not in self._tls:
            context = self._access.egress.context() if checked else _unverifying_context()
            if checked and (ca_file := self._access.ca_file):
                try:
                    context.load_verify_locations(cafile=ca_file)
                except (OSError, ssl.SSLError) as error:
                    why = getattr(error, "strerror", None) or error
                    raise errors.Unreachable(f"{ca_file}: no certificate authorities can be read: {why}") from error
            self._tls[checked] = context
        return self._tls[checked]

    def allowed(self, base: str, url: str, request: RegistryRequest) -> SplitResult:
        """Returns `url` from `base`. Raises Unauthorized for another scheme, or plain HTTP to a host not listed."""
        try:
            parts = urlsplit(urljoin(base, url))
            host = f"{parts.hostname or ''}:{parts.port or ''}"  # a port beyond 65535 is a ValueError
            if not host.isascii():
                host.encode("idna")
        except ValueError as error:
            raise errors.BadImage(
                f"{request.what}: {request.reference.host} leads to {url[:_SHOWN]!r}, which is not a URL"
            ) from error
        if parts.scheme == "https" or (parts.scheme == "http" and self._access.is_plain(parts.netloc)):
            return parts
        raise errors.Unauthorized(
            f"{request.what}: {request.reference.host} leads to {parts.scheme[:_SHOWN]}://{parts.netloc[:_SHOWN]}; "
            "plain HTTP is for this machine and for hosts that were listed for it"
        )

    def _authorization_for(self, request: RegistryRequest, challenges: list[str]) -> str:
        """Returns the Authorization header that answers the registry's challenges: a token, else user and password."""
        login = self._access.credentials.login(request.reference)
        offered = parse_challenges(challenges)
        if "realm" in offered.get("bearer", {}):
            return f"Bearer {self._fetch_token(request, offered['bearer'], login)}"
        if "basic" in offered:
            if login is not None and login.basic:
                return login.basic
            raise errors.Unauthorized(_no_login_text(request))
        raise errors.Unauthorized(
            f"{request.what}: {request.reference.host} asks for {quote_headers(challenges) or 'nothing known'}"
        )

    def _fetch_token(self, request: RegistryRequest, challenge: Mapping[str, str], login: Login | None) -> str:
        """Returns the token that the challenge's service issues for the request's scope. Raises Unauthorized."""
        scope = f"repository:{request.reference.path}:{request.scope}"
        parameters = {"service": challenge.get("service", ""), "scope": scope}
        if login is not None and login.identity_token:
            form = {
                "grant_type": "refresh_token",
                "refresh_token": login.identity_token,
                "client_id": kubekit.product.partition("/")[0],
                **parameters,
            }
            headers = {"Content-Type": "application/x-www-form-urlencoded"}
            token_request = RegistryRequest(
                reference=request.reference,
                method="POST",
                path=challenge["realm"],
                what=request.what,
                headers=headers,
                body=urlencode(form).encode(),
            )
        else:
            joint = "&" if "?" in challenge["realm"] else "?"
            query = urlencode({key: value for key, value in parameters.items() if value})
            token_request = RegistryRequest(
                reference=request.reference, method="GET", path=f"{challenge['realm']}{joint}{query}", what=request.what
            )
        with contextlib.closing(self._answer_after_retries(token_request, login.basic if login else "")) as answer:
            if answer.status in AGAIN:
                raise errors.Unreachable(
                    f"{request.what}: the token service of {request.reference.host} said {answer.status}"
                )
            if answer.status >= 400:
                raise errors.Unauthorized(
                    _no_login_text(request) if login is None else _wrong_login(request, _registry_message(answer))
                )
            try:
                data = answer.read(_MAX_ANSWER)
            except OSError as error:
                raise errors.Unreachable(f"{request.what}: the token service broke off: {error}") from error
        service = f"{request.what}: the token service of {request.reference.host}"
        try:
            document = json.loads(data)
            token = document.get("token") or document.get("access_token")
        except (ValueError, RecursionError, AttributeError) as error:
            raise errors.Unauthorized(f"{service} sent no JSON") from error
        if not isinstance(token, str) or not 0 < len(token) <= _MAX_TOKEN or not token.isprintable():
            raise errors.Unauthorized(f"{service} sent no token")
        return token

    def _error_for_status(self, request: RegistryRequest, answer: Answer, message: str) -> errors.OciError:
        """Returns the error for an answer with that message, which may come from where the registry redirects to."""
        status, host = answer.status, request.reference.host
        quote = f" ({message})" if message else ""
        asked = (self._request_url(request).netloc, urlsplit(self._repository_url(request.reference)).netloc)
        elsewhere = answer.origin not in asked
        if elsewhere and status in {401, 403}:
            return errors.Unauthorized(
                f"{request.what}: {answer.origin}, to which registry {host} redirects, answered {status}{quote}"
            )
        if status == 404:
            return errors.ImageNotFound(f"{request.what}: {request.noun} unknown")
        if status in {401, 403}:
            # The remedy differs: without a login one is needed, with a login it lacks the permission.
            has_login = self._access.credentials.login(request.reference) is not None
            return errors.Unauthorized(_wrong_login(request, message) if has_login else _no_login_text(request))
        error = errors.Unreachable if status in AGAIN else errors.BadImage
        server = f"{answer.origin}, to which registry {host} redirects," if elsewhere else f"registry {host}"
        return error(f"{request.what}: {server} answered {status}{quote}")


class Interrupted(Exception):
    """The connection broke: another attempt may succeed."""


def _unverifying_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def pause_s(attempt: int, retry_after: str | None = None, date: str | None = None) -> float:
    """Returns the seconds to wait after `attempt`: as the registry asks, up to a minute, else 1, 2, 4 and so on.

    A date in Retry-After is compared with the answer's own Date, so that no clock is needed.
    """
    fallback = FIRST_PAUSE_S * 2.0 ** (attempt - 1)
    try:
        requested_s = float(retry_after or "nan")
    except ValueError:
        try:
            requested_s = (
                http_date.parse_http_date(retry_after or "") - http_date.parse_http_date(date or "")
            ).total_seconds()
        except (ValueError, TypeError):
            return fallback
    # NaN, which means no Retry-After, is the only number that differs from itself.
    return min(max(requested_s, 0.0), MAX_PAUSE_S) if requested_s == requested_s else fallback


@contextlib.contextmanager
def _open_body(body: bytes | Path | None) -> Iterator[tuple[bytes | Iterator[bytes] | None, dict[str, str]]]:
    """Opens a body: bytes, or the pieces of a file with the header that says how many bytes they are."""
    if not isinstance(body, Path):
        yield body, {}
        return
    with body.open("rb") as file:
        pieces = iter(lambda: file.read(_UPLOADED_PIECE), b"")
        yield pieces, {"Content-Length": str(body.stat().st_size)}


def connection_error(request: RegistryRequest, host: str, reason: Any) -> Exception:
    """Returns the error that ends the attempts, or Interrupted for one that may pass."""
    if isinstance(reason, ssl.SSLCertVerificationError):
        return errors.Untrusted(f"{request.what}: {_untrusted_text(host, reason)}")
    if isinstance(reason, ssl.SSLError):
        why = (
            f"{host} does not speak TLS as expected ({reason.reason}); if it speaks plain HTTP, name it by --plain-http"
        )
    elif isinstance(reason, TimeoutError):
        why = f"registry {host} did not answer in time"
    elif isinstance(reason, Incomplete):
        return Interrupted("it hung up before its answer was complete")
    elif isinstance(reason, (ConnectionResetError, BrokenPipeError)):
        return Interrupted(str(reason) or type(reason).__name__)
    elif getattr(reason, "errno", None) == errno.EPROTO:
        return Interrupted(reason.strerror)
    else:
        why = f"registry {host} cannot be reached: {getattr(reason, 'strerror', None) or reason}"
    return errors.Unreachable(f"{request.what}: {why}")


def _untrusted_text(host: str, error: ssl.SSLCertVerificationError) -> str:
    """Returns the fault of a certificate and its remedy (X509_STORE_CTX_get_error(3))."""
    reason = error.verify_message
    if error.verify_code == _EXPIRED:
        return f"the certificate of {host} has expired ({reason}); renew it"
    if error.verify_code == _NOT_YET:
        return f"the certificate of {host} is not valid yet ({reason}); set the clocks right"
    if error.verify_code in _OTHER_HOST:
        return (
            f"the certificate of {host} is for another host ({reason}); name the registry as its certificate does, or "
            f"give it one for {host.partition(':')[0]}"
        )
    return f"the certificate of {host} is not trusted ({reason}); name its certificate authority"


def _no_login_text(request: RegistryRequest) -> str:
    host = request.reference.host
    return f"{request.what}: registry {host} wants credentials, and none are known for {host}/{request.reference.path}"


def _wrong_login(request: RegistryRequest, message: str) -> str:
    """Returns the message for credentials that the registry refused."""
    quote = f" ({message})" if message else ""
    action = "pushing to" if "push" in request.scope else "reading"
    host = request.reference.host
    return (
        f"{request.what}: registry {host} refused {action} {request.reference.path} with the credentials given{quote}"
    )


def _registry_message(answer: Answer) -> str:
    """Returns the message in an error's body (distribution-spec, error codes), quoted and truncated, or ""."""
    try:
        errors = json.loads(answer.read(_MAX_ANSWER)).get("errors") or []
        texts = [str(error.get("message") or error.get("code") or "") for error in errors]
    except (ValueError, RecursionError, AttributeError, TypeError, OSError):
        return ""
    lines = [" ".join(text.split()) for text in texts[:_MOST_TEXTS] if text]
    # Without quotes, which would end the quotation.
    plain = ["".join(char if char.isprintable() and char != '"' else " " for char in line) for line in lines]
    messages = "; ".join(cut(text, _LONGEST_TEXT) for text in plain)
    return f'the registry says: "{messages}"' if messages else ""
