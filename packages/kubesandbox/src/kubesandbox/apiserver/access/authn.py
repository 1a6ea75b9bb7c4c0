"""Authentication: a client certificate or a bearer token in, a user out. Authorization checks impersonation later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from kubesandbox.apiserver.access.tokens import AUDIENCE, Claims, InvalidToken, TokenSigner
from kubesandbox.apiserver.http.messages import Request, User
from kubesandbox.apiserver.status_errors import unauthorized
from kubesandbox.apiserver.store import Store

ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))
_AUTHENTICATED = "system:authenticated"
# Paths open to anonymous clients; all others are 401 (as with anonymous access limited to these paths).
ANONYMOUS_PATHS = ("/healthz", "/livez", "/readyz", "/version")


class Authenticator:
    """The authenticator of requests. Valid tokens are cached until they expire."""

    def __init__(self, store: Store, signer: TokenSigner, now: Callable[[], datetime]) -> None:
        self._store = store
        self._signer = signer
        self._now = now
        self._static: dict[str, User] = {}
        self._claims: dict[str, Claims] = {}

    def add_token(self, token: str, user: User) -> None:
        """Accepts a static token."""
        self._static[token] = with_authenticated(user)

    def identify(self, request: Request, certificate: User | None) -> User:
        """Returns the user of a request. Raises ApiError 401 for invalid or missing credentials."""
        header = request.header("authorization")
        scheme, _, token = header.partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            return self._user_of_token(token.strip())
        if certificate is not None:
            return certificate
        if request.path.startswith(ANONYMOUS_PATHS):
            return ANONYMOUS
        raise unauthorized()

    def _user_of_token(self, token: str) -> User:
        """Returns the user of a bearer token. Raises ApiError 401."""
        if user := self._static.get(token):
            return user
        user = self.review(token, (AUDIENCE,))
        if user is None:
            raise unauthorized()
        return user

    def review(self, token: str, audiences: tuple[str, ...]) -> User | None:
        """Returns the user of a ServiceAccount (or static) token, or None if the token is not valid."""
        if user := self._static.get(token):
            return user
        try:
            claims = self._claims.get(token) or self._signer.read(token)
        except InvalidToken:
            return None
        if claims.expires_s <= int(self._now().timestamp()) or not set(audiences) & set(claims.audiences):
            self._claims.pop(token, None)
            return None
        if not self._owners_still_exist(claims):
            return None
        # Bounds the memory; the tokens are verified again.
        if len(self._claims) > 10_000:
            self._claims.clear()
        self._claims[token] = claims
        return _account_user(claims)

    def _owners_still_exist(self, claims: Claims) -> bool:
        """Returns whether the account of a token, and the object that it is bound to, still exist."""
        # A token is invalid once its account, or the object that it is bound to, is deleted.
        bound = [("serviceaccounts", claims.account, claims.account_uid)]
        if claims.bound_kind in {"Pod", "Secret"}:
            bound.append((f"{claims.bound_kind.lower()}s", claims.bound_name, claims.bound_uid))
        for resource, name, uid in bound:
            entry = self._store.get(resource, claims.namespace, name)
            if entry is None or _uid_of(entry) != uid:
                return False
        return True


def _uid_of(entry: Any) -> str:
    if "uid" not in entry.cache:
        entry.cache["uid"] = entry.load()["metadata"]["uid"]
    uid: str = entry.cache["uid"]
    return uid


def _account_user(claims: Claims) -> User:
    """Returns the user of a ServiceAccount's token, with the extra fields that name its pod."""
    extra = [("authentication.kubernetes.io/credential-id", (f"JTI={claims.token_id}",))]
    if claims.bound_kind == "Pod":
        extra.append(("authentication.kubernetes.io/pod-name", (claims.bound_name,)))
        extra.append(("authentication.kubernetes.io/pod-uid", (claims.bound_uid,)))
    return User(
        f"system:serviceaccount:{claims.namespace}:{claims.account}",
        claims.account_uid,
        ("system:serviceaccounts", f"system:serviceaccounts:{claims.namespace}", _AUTHENTICATED),
        tuple(extra),
    )


def certificate_user(peer: Mapping[str, Any] | None) -> User | None:
    """Returns the user of a verified client certificate, in the form of `ssl.SSLObject.getpeercert`, or None."""
    if not peer:
        return None
    pairs = [pair for group in peer.get("subject", ()) for pair in group]
    name = next((value for key, value in pairs if key == "commonName"), "")
    groups = tuple(value for key, value in pairs if key == "organizationName")
    return with_authenticated(User(name, groups=groups)) if name else None


def with_authenticated(user: User) -> User:
    """Returns `user` as a member of system:authenticated, unless anonymous."""
    if _AUTHENTICATED in user.groups or user.name == ANONYMOUS.name:
        return user
    return User(user.name, user.uid, (*user.groups, _AUTHENTICATED), user.extra)
