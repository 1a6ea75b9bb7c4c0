"""Authentication: a client certificate or a bearer token in, a user out. Authorization checks impersonation later.

ServiceAccount tokens are JSON Web Tokens signed by the server's key (ES256), for an account and optionally a pod.
"""

from __future__ import annotations

import base64
import hashlib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from kubesandbox.apiserver.access.certs import write_private
from kubesandbox.apiserver.http.messages import Request, User
from kubesandbox.apiserver.status_errors import JSON, unauthorized
from kubesandbox.apiserver.store import Store

ANONYMOUS = User("system:anonymous", groups=("system:unauthenticated",))
_AUTHENTICATED = "system:authenticated"
# Paths open to anonymous clients; all others are 401 (as with anonymous access limited to these paths).
ANONYMOUS_PATHS = ("/healthz", "/livez", "/readyz", "/version")
ISSUER = "https://kubernetes.default.svc.cluster.local"
AUDIENCE = ISSUER
_ALGORITHM = "ES256"
_CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
_SIDE = 32  # bytes of each half of a P-256 signature


class Authenticator:
    """The authenticator of requests. Valid tokens are cached until they expire."""

    def __init__(self, store: Store, signer: TokenSigner, now: Callable[[], datetime]) -> None:
        self._store, self.signer, self._now = store, signer, now
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
            user = self.review(token.strip(), (AUDIENCE,))
            if user is None:
                raise unauthorized()
            return user
        if certificate is not None:
            return certificate
        if request.target.path.startswith(ANONYMOUS_PATHS):
            return ANONYMOUS
        raise unauthorized()

    def review(self, token: str, audiences: tuple[str, ...]) -> User | None:
        """Returns the user of a ServiceAccount (or static) token, or None if the token is not valid."""
        if user := self._static.get(token):
            return user
        try:
            claims = self._claims.get(token) or self.signer.read(token)
        except InvalidToken:
            return None
        if claims.expires_s <= int(self._now().timestamp()) or not set(audiences) & set(claims.audiences):
            self._claims.pop(token, None)
            return None
        # A token is invalid once its account, or the object that it is bound to, is deleted.
        bound = [("serviceaccounts", claims.account, claims.account_uid)]
        if claims.bound_kind in {"Pod", "Secret"}:
            bound.append((f"{claims.bound_kind.lower()}s", claims.bound_name, claims.bound_uid))
        for resource, name, uid in bound:
            entry = self._store.get(resource, claims.namespace, name)
            if entry is None:
                return None
            if "uid" not in entry.cache:
                entry.cache["uid"] = entry.load()["metadata"]["uid"]
            if entry.cache["uid"] != uid:
                return None
        # Bounds the memory; the tokens are verified again.
        if len(self._claims) > 10_000:
            self._claims.clear()
        self._claims[token] = claims
        extra = [(_CREDENTIAL_ID, (f"JTI={claims.token_id}",))]
        if claims.bound_kind == "Pod":
            extra.append(("authentication.kubernetes.io/pod-name", (claims.bound_name,)))
            extra.append(("authentication.kubernetes.io/pod-uid", (claims.bound_uid,)))
        name, namespace = f"system:serviceaccount:{claims.namespace}:{claims.account}", claims.namespace
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", _AUTHENTICATED)
        return User(name, claims.account_uid, groups, tuple(extra))


def certificate_user(peer: Mapping[str, Any] | None, der: bytes | None) -> User | None:
    """Returns the user of a verified client certificate, in both forms of `ssl.SSLObject.getpeercert`, or None."""
    if not peer:
        return None
    pairs = [pair for group in peer.get("subject", ()) for pair in group]
    name = next((value for key, value in pairs if key == "commonName"), "")
    groups = tuple(value for key, value in pairs if key == "organizationName")
    extra = ((_CREDENTIAL_ID, (f"X509SHA256={hashlib.sha256(der or b'').hexdigest()}",)),)
    return with_authenticated(User(name, groups=groups, extra=extra)) if name else None


def with_authenticated(user: User) -> User:
    """Returns `user` as a member of system:authenticated, unless anonymous."""
    if _AUTHENTICATED in user.groups or user.name == ANONYMOUS.name:
        return user
    return User(user.name, user.uid, (*user.groups, _AUTHENTICATED), user.extra)


class InvalidToken(Exception):
    """A token that is malformed, or that this server did not sign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """The claims of a token."""

    namespace: str
    account: str
    account_uid: str
    expires_s: int
    audiences: tuple[str, ...]
    token_id: str
    bound_kind: str = ""
    bound_name: str = ""
    bound_uid: str = ""


class TokenSigner:
    """The signer and reader of tokens; times are seconds since the epoch."""

    def __init__(self, key: ec.EllipticCurvePrivateKey) -> None:
        self._key = key
        self._public = key.public_key()
        der = self._public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self._key_id = _b64(hashlib.sha256(der).digest())

    @classmethod
    def load_or_create(cls, path: Path) -> TokenSigner:
        """Returns the signer whose key is in `path`, created on first use. Raises TypeError if it is not an EC key."""
        if path.exists():
            key = serialization.load_pem_private_key(path.read_bytes(), None)
            if not isinstance(key, ec.EllipticCurvePrivateKey):
                raise TypeError(f"{path} is not an EC key")
            return cls(key)
        key = ec.generate_private_key(ec.SECP256R1())
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        write_private(path, pem)
        return cls(key)

    def sign(self, claims: Claims, now_s: int) -> str:
        """Returns the token for `claims`."""
        bound: JSON = {
            "namespace": claims.namespace,
            "serviceaccount": {"name": claims.account, "uid": claims.account_uid},
        }
        if claims.bound_kind:
            bound[claims.bound_kind.lower()] = {"name": claims.bound_name, "uid": claims.bound_uid}
        payload: JSON = {
            "aud": list(claims.audiences),
            "exp": claims.expires_s,
            "iat": now_s,
            "iss": ISSUER,
            "jti": claims.token_id or str(uuid.uuid4()),
            "kubernetes.io": bound,
            "nbf": now_s,
            "sub": f"system:serviceaccount:{claims.namespace}:{claims.account}",
        }
        header = {"alg": _ALGORITHM, "kid": self._key_id}
        signed = f"{_b64(orjson.dumps(header))}.{_b64(orjson.dumps(payload))}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        # JWTs carry the two numbers of the signature, not its DER form (RFC 7518, 3.4).
        return f"{signed}.{_b64(r.to_bytes(_SIDE, 'big') + s.to_bytes(_SIDE, 'big'))}"

    def key_set(self) -> JSON:
        """Returns the public key as a JSON Web Key Set (RFC 7517)."""
        numbers = self._public.public_numbers()
        x, y = (_b64(number.to_bytes(_SIDE, "big")) for number in (numbers.x, numbers.y))
        key = {"use": "sig", "kty": "EC", "kid": self._key_id, "crv": "P-256", "alg": _ALGORITHM, "x": x, "y": y}
        return {"keys": [key]}

    def read(self, token: str) -> Claims:
        """Returns the claims of a token that this server signed. Raises InvalidToken. The caller checks the expiry."""
        try:
            signed, _, signature = token.rpartition(".")
            raw = _unb64(signature)
            der = encode_dss_signature(int.from_bytes(raw[:_SIDE], "big"), int.from_bytes(raw[_SIDE:], "big"))
            self._public.verify(der, signed.encode(), ec.ECDSA(hashes.SHA256()))
            payload = orjson.loads(_unb64(signed.partition(".")[2]))
            bound = payload["kubernetes.io"]
            kind = next((name for name in ("Pod", "Secret", "Node") if name.lower() in bound), "")
            about: JSON = bound[kind.lower()] if kind else {}
            return Claims(
                namespace=bound["namespace"],
                account=bound["serviceaccount"]["name"],
                account_uid=bound["serviceaccount"]["uid"],
                expires_s=int(payload["exp"]),
                audiences=tuple(payload["aud"]),
                token_id=payload["jti"],
                bound_kind=kind,
                bound_name=about.get("name", ""),
                bound_uid=about.get("uid", ""),
            )
        except (InvalidSignature, ValueError, KeyError, TypeError) as error:
            raise InvalidToken("the token is not one of this server") from error


def openid_configuration(address: str) -> JSON:
    """Returns the configuration of the issuer at `address` (OpenID Connect Discovery 1.0)."""
    return {
        "issuer": ISSUER,
        "jwks_uri": f"{address}/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [_ALGORITHM],
    }


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
