"""Signatures that must not verify a release, each with the keyring that it is shown to; for tests and the bench.

Every row is signed by a real key. What is wrong is the key's state, the claim, or the message around it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.hostile.images import peak_kib
from bench.hostile.openpgp import BINARY, COMPROMISED, RETIRED, Certificate, Key, packet
from bench.hostile.survey import Survey
from kubekit.oci.registry_errors import Unverified
from kubekit.oci.signatures import Keyring, signature_claim, verify_signatures

NAME = "registry.example/ocp/release"
DIGEST = "sha256:" + "52" * 32
OTHER = "sha256:" + "51" * 32
YEAR = timedelta(days=365)


@dataclass(frozen=True)
class Hostile:
    """`signature` shown to `keyring`; `said` is what the refusal must say."""

    name: str
    signature: bytes
    keyring: bytes
    said: str


def signatures(now: datetime) -> Iterator[Hostile]:
    """Every row, made at `now`, which must be the real time: the OpenPGP library reads its own clock."""
    yield from _of_dead_keys(now.astimezone(UTC))
    yield from _of_odd_claims(now.astimezone(UTC))


def honest(now: datetime) -> list[tuple[str, bytes, bytes]]:
    """Name, signature, keyring of what must be accepted, so that refusing everything is noticed."""
    made, text = now - 2 * YEAR, signature_claim(DIGEST, NAME)
    old = Certificate(Key(made))
    sub = Certificate(Key(made), subkey=Key(made))
    lasting = Certificate(Key(made), primary_for=9 * YEAR, subkey=Key(made), subkey_for=9 * YEAR)
    revoked_sub = replace(sub, subkey_revoked=RETIRED, revoked_at=now - YEAR)
    assert sub.subkey is not None and lasting.subkey is not None
    return [
        ("the primary key", old.primary.message(text, now - YEAR), old.public),
        ("a signing subkey", sub.subkey.message(text, now - YEAR), sub.public),
        ("keys that expire in years", lasting.subkey.message(text, now - YEAR), lasting.public),
        ("the primary key beside a revoked subkey", sub.primary.message(text, now - YEAR), revoked_sub.public),
        ("a good key beside an expired one", old.primary.message(text, now), _expired(made).public + old.public),
    ]


def _expired(made: datetime) -> Certificate:
    return Certificate(Key(made), primary_for=YEAR)


def _of_dead_keys(now: datetime) -> Iterator[Hostile]:
    made, text = now - 2 * YEAR, signature_claim(DIGEST, NAME)
    while_alive = made + timedelta(days=30)
    expired = _expired(made)
    yield Hostile(
        "an expired key, dated back", expired.primary.message(text, while_alive), expired.public, "expired on"
    )
    yield Hostile("an expired key", expired.primary.message(text, now), expired.public, "expired on")
    for reason, what in ((COMPROMISED, "a stolen key"), (RETIRED, "a retired key")):
        gone = Certificate(Key(made), revoked=reason, revoked_at=now - YEAR)
        signed = gone.primary.message(text, while_alive)
        yield Hostile(f"{what}, dated before its revocation", signed, gone.public, "is revoked")
    sub = Certificate(Key(made), subkey=Key(made))
    assert sub.subkey is not None
    signed = sub.subkey.message(text, while_alive)
    short = replace(sub, subkey_for=YEAR)
    yield Hostile("an expired subkey, dated back", signed, short.public, "expired on")
    short = replace(sub, primary_for=YEAR)
    yield Hostile("a subkey of an expired key, dated back", signed, short.public, "expired on")
    for reason, what in ((COMPROMISED, "a stolen subkey"), (RETIRED, "a retired subkey")):
        gone = replace(sub, subkey_revoked=reason, revoked_at=now - YEAR)
        yield Hostile(f"{what}, dated before its revocation", signed, gone.public, "is revoked")
    gone = replace(sub, revoked=RETIRED, revoked_at=now - YEAR)
    yield Hostile("a subkey of a retired key, dated back", signed, gone.public, "is revoked")
    later = Certificate(Key(made))
    yield Hostile("a date to come", later.primary.message(text, now + YEAR), later.public, "keyring")


def _of_odd_claims(now: datetime) -> Iterator[Hostile]:
    key = Certificate(Key(now - YEAR))
    good = signature_claim(DIGEST, NAME)
    image = json.dumps({"docker-manifest-digest": OTHER})
    twice = {
        "the digest twice": good.replace(b'"image":{', f'"image":{{"docker-manifest-digest":"{OTHER}",'.encode()),
        "the image twice": good.replace(b'"image":', f'"image":{image},"image":'.encode()),
        "critical twice": good.replace(b'{"critical":', b'{"critical":{},"critical":', 1),
        "a member of the optional part twice": good.replace(b'"creator":', b'"creator":"x","creator":'),
    }
    for name, body in twice.items():
        yield Hostile(name, key.primary.message(body, now), key.public, "cannot be read")
    bodies = {
        "another digest": signature_claim(OTHER, NAME),
        "no JSON": b"hello",
        "brackets without end": b"[" * 20_000,
        "a second claim after it": good + good,
        "a byte order mark": b"\xef\xbb\xbf" + good,
    }
    for name, body in bodies.items():
        yield Hostile(name, key.primary.message(body, now), key.public, "the signed claim")
    signed = key.primary.message(good, now)
    alien = Certificate(Key(now - YEAR))
    yield Hostile("another key", alien.primary.message(good, now), key.public, "keyring")
    yield Hostile("another claim under the signature", signed.replace(b"5252", b"5151"), key.public, "keyring")
    yield Hostile("cut short", signed[:-20], key.public, "keyring")
    yield Hostile("nothing", b"", key.public, "keyring")
    yield Hostile("packets without end", packet(10, b"PGP") * 9_000, key.public, "keyring")
    detached = key.primary.sign(BINARY, good, now)
    yield Hostile("a signature of nothing", detached, key.public, "keyring")


def survey(now: datetime) -> dict[str, Any]:
    """Every row verified in this process; counted as refused, accepted, wrong or crashed, with the slowest."""
    seen = Survey()
    rows = [("hostile", row.name, row.signature, row.keyring, row.said) for row in signatures(now)]
    rows += [("honest", name, signature, ring, "") for name, signature, ring in honest(now)]
    for kind, name, signature, ring, said in rows:
        started = time.perf_counter()
        outcome, why = _judged(signature, ring, said, now)
        took_s = time.perf_counter() - started
        seen.take(kind, outcome, took_s, what=name, wrong=f"{name}: {why}" if why else "")
    return seen.found()


def _judged(signature: bytes, ring: bytes, said: str, now: datetime) -> tuple[str, str]:
    """What came of it, and in words what was wrong; `said` is empty where it must be accepted."""
    try:
        verify_signatures(DIGEST, [Keyring("a", ring)], [signature], now=now)
    except Unverified as error:
        told = "; ".join((str(error), *error.details))
        if said and said in told:
            return "refused as due", ""
        return "wrong", f"refused with {told[:300]!r}"
    except Exception as error:  # noqa: BLE001 -- that is what is looked for
        return "crashed", f"{type(error).__name__}: {error}"[:300]
    return ("wrong", "accepted") if said else ("accepted as due", "")


def main() -> None:
    """Print what came of all of them, and the most memory that the process had."""
    print(json.dumps(survey(datetime.now(UTC)) | {"peak_mib": round(peak_kib() / 1024, 1)}))


if __name__ == "__main__":
    main()
