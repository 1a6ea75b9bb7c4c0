"""ServiceAccount tokens: JSON Web Tokens signed by the server's key (ES256), for an account and optionally a pod."""

from __future__ import annotations

import base64
import hashlib
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from kubesandbox.apiserver.access.certs import write_private

JSON = dict[str, Any]

ISSUER = "https://kubernetes.default.svc.cluster.local"
AUDIENCE = ISSUER
_SIDE = 32  # bytes of each half of a P-256 signature


class InvalidToken(Exception):
    """A token that is malformed, or that this server did not sign."""


@dataclass(frozen=True, slots=True)
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
        header = {"alg": "ES256", "kid": self._key_id}
        signed = f"{_b64(orjson.dumps(header))}.{_b64(orjson.dumps(payload))}"
        r, s = decode_dss_signature(self._key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
        # JWTs carry the two numbers of the signature, not its DER form (RFC 7518, 3.4).
        return f"{signed}.{_b64(r.to_bytes(_SIDE, 'big') + s.to_bytes(_SIDE, 'big'))}"

    def read(self, token: str) -> Claims:
        """Returns the claims of a token that this server signed. Raises InvalidToken. The caller checks the expiry."""
        try:
            signed, _, signature = token.rpartition(".")
            raw = _unb64(signature)
            der = encode_dss_signature(int.from_bytes(raw[:_SIDE], "big"), int.from_bytes(raw[_SIDE:], "big"))
            self._public.verify(der, signed.encode(), ec.ECDSA(hashes.SHA256()))
            payload = orjson.loads(_unb64(signed.partition(".")[2]))
            return _parse_claims(payload)
        except (InvalidSignature, ValueError, KeyError, TypeError) as error:
            raise InvalidToken("the token is not one of this server") from error


def _parse_claims(payload: JSON) -> Claims:
    """Returns the claims in a token's payload. Raises KeyError if one is missing."""
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


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
