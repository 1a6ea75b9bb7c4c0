"""Whether a release is the one that was signed: every keyring must say so, and everything odd is a no with a reason."""

from __future__ import annotations

import base64
import bz2
import json
import shutil
import subprocess
import sys
import tracemalloc
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pysequoia
import pytest
from bench.hostile import signatures as hostile_signatures
from bench.hostile.openpgp import RETIRED, Certificate, Key, packet
from bench.hostile.signatures import Hostile

from kubekit.oci.openpgp import openpgp_error_text, usable_keys
from kubekit.oci.registry_errors import BadImage, CannotWrite, Unverified
from kubekit.oci.signatures import (
    MAX_SIGNATURE_BYTES,
    MAX_SIGNATURES,
    Keyring,
    SigningKey,
    Verification,
    add_signature,
    digest_to_verify,
    generate_key,
    signature_claim,
    unique_members,
    verifier_from_config_map,
    verify_signatures,
)

NOW = datetime.now(UTC)
DIGEST = "sha256:" + "52" * 32
OTHER = "sha256:" + "51" * 32
NAME = "registry.example/ocp/release"
KEY, OTHER_KEY = generate_key(), generate_key()
RING, OTHER_RING = Keyring("a", KEY.public), Keyring("b", OTHER_KEY.public)


def signed(body: bytes, key: SigningKey = KEY) -> bytes:
    """An OpenPGP message around any text."""
    return bytes(pysequoia.sign(pysequoia.Tsk.from_bytes(key.secret).signer(), body, armor=False))


def changed(**changes: Any) -> bytes:
    """The claim for DIGEST with some of its parts replaced."""
    document = json.loads(signature_claim(DIGEST, NAME))
    for path, value in changes.items():
        *folders, last = path.split("__")
        place = document
        for folder in folders:
            place = place[folder.replace("_", "-")]
        place[last.replace("_", "-")] = value
    return json.dumps(document).encode()


def refusal(signature: bytes, *rings: Keyring, digest: str = DIGEST, now: datetime = NOW) -> str:
    """Why the digest is not verified, with what each keyring said."""
    with pytest.raises(Unverified) as caught:
        verify_signatures(digest, rings or (RING,), [signature], now=now)
    return "; ".join([caught.value.message, *caught.value.details])


def test_a_good_signature_verifies() -> None:
    """The verdict names the keyring and the signature that convinced it."""
    signature = KEY.sign(DIGEST, NAME)
    found = verify_signatures(DIGEST, [RING], [signature], now=NOW)
    assert (found.digest, found.keyrings, found.signatures) == (DIGEST, ("a",), (signature,))


def test_the_claim_has_the_container_signature_format() -> None:
    """Field by field as containers/image's document containers-signature(5) has it."""
    assert json.loads(signature_claim(DIGEST, NAME)) == {
        "critical": {
            "type": "atomic container signature",
            "image": {"docker-manifest-digest": DIGEST},
            "identity": {"docker-reference": NAME},
        },
        "optional": {"creator": "runup"},
    }


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param(signature_claim(OTHER, NAME), f"the signed claim is for {OTHER}", id="another digest"),
        pytest.param(changed(critical__type="another"), "is of type 'another'", id="another type"),
        pytest.param(changed(critical__identity__docker_reference=""), "names no docker-reference", id="no identity"),
        pytest.param(changed(critical__identity__more="x"), "cannot be read", id="an unknown field inside"),
        pytest.param(changed(more={}), "cannot be read", id="an unknown field at the top"),
        pytest.param(b"hello", "cannot be read", id="no JSON"),
        pytest.param(b"", "cannot be read", id="nothing"),
        pytest.param(b"[" * 100_00, "cannot be read", id="brackets without end"),
        pytest.param(signature_claim(DIGEST, NAME) + b" {}", "cannot be read", id="something after the claim"),
    ],
)
def test_a_good_signature_of_another_claim_is_refused(body: bytes, said: str) -> None:
    """The key is right; what it signed is not this release."""
    assert said in refusal(signed(body))


def test_a_claim_without_the_optional_part_is_good() -> None:
    """Nothing depends on it, and null represents nothing."""
    for body in (
        changed(optional=None),
        json.dumps({"critical": json.loads(signature_claim(DIGEST, NAME))["critical"]}).encode(),
    ):
        assert verify_signatures(DIGEST, [RING], [signed(body)], now=NOW)


@pytest.mark.parametrize(
    "signature",
    [
        pytest.param(OTHER_KEY.sign(DIGEST, NAME), id="another key"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"hello", id="no message"),
        pytest.param(KEY.sign(DIGEST, NAME)[:-10], id="a message cut short"),
        pytest.param(KEY.sign(DIGEST, NAME)[:40], id="the first bytes alone"),
        pytest.param(signature_claim(DIGEST, NAME), id="the claim without a signature"),
        pytest.param(KEY.public, id="the public key itself"),
    ],
)
def test_what_is_no_signature_by_the_key_is_refused(signature: bytes) -> None:
    """The keyring is named, so that one knows whose key is missing."""
    assert refusal(signature).startswith(f"unable to verify {DIGEST} against keyrings: a; signature-1: keyring a: ")


@pytest.mark.slow
def test_every_flipped_byte_is_noticed() -> None:
    """None of them gives a verified digest; most break the message, some the signature."""
    good = KEY.sign(DIGEST, NAME)
    for at in range(len(good)):
        broken = bytearray(good)
        broken[at] ^= 0x01
        verification = Verification(DIGEST, [RING], now=NOW)
        if verification.add(bytes(broken), "it"):
            # Unhashed parts, such as the issuer's hint, may differ: then what was signed is still the same.
            assert verification.result().digest == DIGEST
            assert pysequoia.verify(
                bytes=bytes(broken), store=lambda _ids: _certificates(KEY)
            ).bytes == signature_claim(DIGEST, NAME)


def _certificates(key: SigningKey) -> list[Any]:
    return list(pysequoia.Cert.split_bytes(key.public))


def test_a_revoked_key_is_refused() -> None:
    """Its signature was good once."""
    key = generate_key()
    signature = key.sign(DIGEST, NAME)
    secret = pysequoia.Tsk.from_bytes(key.secret)
    certificate = secret.extract_certificate()
    verify_signatures(DIGEST, [Keyring("a", str(certificate).encode())], [signature], now=NOW)
    revoked = pysequoia.Cert.from_bytes(bytes(certificate) + bytes(certificate.revoke(secret.certifier())))
    assert revoked.is_revoked
    refusal(signature, Keyring("a", bytes(revoked)))


@pytest.mark.parametrize("row", list(hostile_signatures.signatures(NOW)), ids=lambda row: row.name)
def test_a_signature_that_proves_nothing(row: Hostile) -> None:
    """By a key that ended, whatever date it claims, or of a claim that can be read in two ways."""
    assert row.said in refusal(row.signature, Keyring("a", row.keyring))


@pytest.mark.parametrize(
    ("signature", "ring"),
    [pytest.param(signature, ring, id=name) for name, signature, ring in hostile_signatures.honest(NOW)],
)
def test_the_same_keys_alive_are_good(signature: bytes, ring: bytes) -> None:
    """The other half of the rows above: what refuses everything proves nothing."""
    assert verify_signatures(DIGEST, [Keyring("a", ring)], [signature], now=NOW).digest == DIGEST


def test_a_key_counts_until_the_moment_that_it_expires() -> None:
    """By the time that the caller passes."""
    made = NOW - timedelta(days=10)
    certificate = Certificate(Key(made), primary_for=timedelta(days=30))
    ring, signature = Keyring("a", certificate.public), certificate.primary.message(signature_claim(DIGEST, NAME), NOW)
    end = made.replace(microsecond=0) + timedelta(days=30)
    assert verify_signatures(DIGEST, [ring], [signature], now=end - timedelta(seconds=1)).digest == DIGEST
    assert f"expired on {end:%Y-%m-%d}" in refusal(signature, ring, now=end)


def test_an_error_has_no_backtrace() -> None:
    """Where the environment asks the library for one, conditions and logs would carry a page of it."""
    script = (
        "from datetime import UTC, datetime\n"
        "from kubekit.oci.registry_errors import OciError\n"
        "from kubekit.oci.signatures import Keyring, SigningKey, generate_key, verify_signatures\n"
        "ring, none, now = Keyring('a', generate_key().public), Keyring('b', b'x'), datetime.now(UTC)\n"
        "bad = (b'', b'hello', b'\\xc4\\x0d' * 9, generate_key().sign('sha256:' + '5' * 64, 'a'))\n"
        "def verify(ring, signature): verify_signatures('sha256:' + '5' * 64, [ring], [signature], now=now)\n"
        "for broken in (\n"
        "    *(lambda each=each: verify(ring, each) for each in bad),\n"
        "    lambda: verify(none, b''), lambda: SigningKey(b'x').public,\n"
        "):\n"
        "    try:\n"
        "        broken()\n"
        "    except OciError as error:\n"
        "        print(error, *getattr(error, 'details', ()))\n"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script], env={"RUST_BACKTRACE": "1"}, capture_output=True, text=True, check=True
    )
    assert "backtrace" not in shown.stdout.lower()
    assert len(shown.stdout.splitlines()) == 6
    assert all(line.strip() for line in shown.stdout.splitlines())


def test_every_keyring_must_agree() -> None:
    """One of two is not enough, and the message names the other."""
    assert "against keyrings: b" in refusal(KEY.sign(DIGEST, NAME), RING, OTHER_RING)
    both = [KEY.sign(DIGEST, NAME), OTHER_KEY.sign(DIGEST, NAME)]
    assert verify_signatures(DIGEST, [RING, OTHER_RING], both, now=NOW).keyrings == ("a", "b")


def test_one_keyring_may_hold_several_keys() -> None:
    """Any of them will do; armored and binary keyrings read alike."""
    together = bytes(pysequoia.Cert.from_bytes(KEY.public)) + bytes(pysequoia.Cert.from_bytes(OTHER_KEY.public))
    for key in (KEY, OTHER_KEY):
        assert verify_signatures(DIGEST, [Keyring("both", together)], [key.sign(DIGEST, NAME)], now=NOW)


def test_a_huge_signature_is_not_looked_at() -> None:
    """It is refused by its size; a good one after it still counts."""
    huge = signed(signature_claim(DIGEST, NAME) + b" " * MAX_SIGNATURE_BYTES)
    assert f"is larger than {MAX_SIGNATURE_BYTES} bytes" in refusal(huge)
    assert verify_signatures(DIGEST, [RING], [huge, KEY.sign(DIGEST, NAME)], now=NOW)


def signed_to(size: int, body: bytes) -> bytes:
    """A message of that size around the body and blanks. It is made until it has it: a signature's numbers begin with
    zeros now and then, which are left out.
    """
    blanks, message = size - 1000, b""
    for _ in range(100):
        message = signed(body + b" " * blanks)
        if len(message) == size:
            break
        blanks += size - len(message)
    return message


def test_how_large_a_signature_may_be() -> None:
    """50 KiB to the byte; a larger one is noted, and says nothing for or against."""
    fits = signed_to(51_200, signature_claim(DIGEST, NAME))
    assert len(fits) == 51_200
    verification = Verification(DIGEST, [RING], now=NOW)
    assert verification.add(fits + b"x", "one") is False
    with pytest.raises(Unverified) as caught:
        verification.result()
    assert caught.value.details == ("one: is larger than 51200 bytes",)
    assert verification.add(fits, "two") is True
    assert verification.add(fits + b"x", "three") is True
    assert verification.result().signatures == (fits,)


def compressed(packets: bytes, algorithm: int = 1, *, indeterminate: bool = False) -> bytes:
    """An OpenPGP packet of compressed data (RFC 9580, 5.6), with a length or, as GnuPG writes it, to the end."""
    packer: Any = {1: lambda: zlib.compressobj(9, zlib.DEFLATED, -15), 2: lambda: zlib.compressobj(9)}.get(algorithm)
    if algorithm == 3:
        packed = bz2.compress(packets)
    elif packer is None:
        packed = packets
    else:
        making = packer()
        packed = making.compress(packets) + making.flush()
    body = bytes([algorithm]) + packed
    return (b"\xa3" if indeterminate else b"\xc8\xff" + len(body).to_bytes(4, "big")) + body


GOOD = KEY.sign(DIGEST, NAME)


@pytest.mark.parametrize(
    "signature",
    [
        pytest.param(compressed(GOOD, 0), id="as it is"),
        pytest.param(compressed(GOOD, 1), id="ZIP"),
        pytest.param(compressed(GOOD, 2), id="ZLIB"),
        pytest.param(compressed(GOOD, 3), id="BZip2"),
        pytest.param(compressed(GOOD, indeterminate=True), id="as GnuPG writes it"),
    ],
)
def test_a_signature_may_be_compressed_once(signature: bytes) -> None:
    """By each algorithm of the standard."""
    assert verify_signatures(DIGEST, [RING], [signature], now=NOW).signatures == (signature,)


def partial(body: bytes) -> bytes:
    """Compressed data in two parts (RFC 9580, 4.2.1.4): 512 bytes, then the rest, of less than 192 bytes."""
    return b"\xc8\xe9" + body[:512] + bytes([len(body) - 512]) + body[512:]


@cache
def bomb() -> bytes:
    """A signed message of 40 MiB: made where a test needs it, and not by each worker that collects."""
    return signed(b"0" * (40 << 20))


@cache
def packed_bomb() -> bytes:
    """The same, compressed."""
    return compressed(bomb())


BOMBS: dict[str, tuple[Callable[[], bytes], str]] = {
    "compressed": (packed_bomb, "decompresses to more than 262144 bytes"),
    "compressed by BZip2": (lambda: compressed(bomb(), 3), "decompresses to more than 262144 bytes"),
    "compressed twice": (lambda: compressed(packed_bomb()), "compressed more than once"),
    "compressed below a packet that says what is signed": (
        lambda: GOOD[:15] + packed_bomb(),
        "compressed more than once",
    ),
    "compressed beside a signature": (lambda: packed_bomb() + GOOD, "compressed more than once"),
    "in parts": (lambda: partial(compressed(packed_bomb())[6:]), "compressed more than once"),
    "of an algorithm nobody knows": (lambda: compressed(GOOD, 9), "an unknown algorithm 9"),
    "of no algorithm": (lambda: b"\xc8\x00", "an unknown algorithm -1"),
    "that is no stream": (lambda: b"\xc8\x03\x01\xff\xff", "cannot be decompressed"),
    "cut short": (lambda: GOOD[:-1], "ends inside a packet"),
    "cut in a length": (lambda: b"\xcb\xff\x00", "ends inside a packet"),
    "text": (lambda: b"-----BEGIN PGP MESSAGE-----", "not a binary OpenPGP message"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_message_that_grows_is_not_read(name: str) -> None:
    """Six hundred bytes could be gigabytes: nothing that is larger than a claim by far is decompressed."""
    made, text = BOMBS[name]
    signature = made()
    assert len(signature) <= MAX_SIGNATURE_BYTES
    tracemalloc.start()
    try:
        assert text in refusal(signature)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_what_each_store_and_keyring_said_is_kept() -> None:
    """In their order; a keyring that is satisfied is not asked again."""
    verification = Verification(DIGEST, [RING, OTHER_RING], now=NOW)
    verification.note("store x: 404")
    assert verification.add(KEY.sign(DIGEST, NAME), "one") is False
    assert verification.add(KEY.sign(OTHER, NAME), "two") is False
    with pytest.raises(Unverified) as caught:
        verification.result()
    assert str(caught.value) == caught.value.message == f"unable to verify {DIGEST} against keyrings: b"
    store, one, two = caught.value.details
    assert store == "store x: 404"
    assert one.startswith("one: keyring b: ")
    assert two.startswith("two: keyring b: ")


def test_keyrings_that_miss_a_signature_are_named_in_order() -> None:
    """All of them."""
    rings = [Keyring("b", KEY.public), Keyring("a", KEY.public)]
    assert refusal(b"", *rings).startswith(f"unable to verify {DIGEST} against keyrings: a, b; ")


def test_one_signature_may_convince_several_keyrings() -> None:
    """And is there once."""
    signature = KEY.sign(DIGEST, NAME)
    coming = iter([b"", signature, b"never asked for"])
    found = verify_signatures(DIGEST, [RING, Keyring("c", KEY.public)], coming, now=NOW)
    assert (found.keyrings, found.signatures) == (("a", "c"), (signature,))
    assert list(coming) == [b"never asked for"]


@pytest.mark.parametrize("digest", ["", "5.2.0", "sha256:abc"])
def test_what_is_no_digest_is_not_verified(digest: str) -> None:
    """Nor is there a claim of it."""
    with pytest.raises(Unverified) as caught:
        Verification(digest, [RING], now=NOW)
    assert caught.value.message == f"{digest!r} is not a digest, and only digests can be verified"
    with pytest.raises(BadImage) as refused:
        signature_claim(digest, NAME)
    assert refused.value.message == f"{digest!r} is not a digest"


def test_a_member_that_is_there_twice_is_named() -> None:
    """The first of them, where there are several."""
    body = b'{"a": 1, "b": 2, "c": 3, "b": 4, "c": 5}'
    with pytest.raises(ValueError, match="it has 'b' twice"):
        json.loads(body, object_pairs_hook=unique_members)
    assert json.loads(b'{"a": {"b": 1}, "b": 2}', object_pairs_hook=unique_members) == {"a": {"b": 1}, "b": 2}


def test_why_a_key_does_not_count_is_said() -> None:
    """Of a key and of a subkey, by its fingerprint; every one of them."""
    made = NOW - timedelta(days=10)
    expired = Certificate(Key(made), primary_for=timedelta(days=5))
    sub = Certificate(Key(made), subkey=Key(made), subkey_revoked=RETIRED, revoked_at=NOW - timedelta(days=1))
    assert sub.subkey is not None
    dead = usable_keys(Keyring("a", expired.public + sub.public), NOW).dead
    assert dead == (
        f"key {expired.primary.fingerprint.hex()} expired on {made + timedelta(days=5):%Y-%m-%d}",
        f"subkey {sub.subkey.fingerprint.hex()} is revoked",
    )
    shown = refusal(sub.subkey.message(signature_claim(DIGEST, NAME), NOW), Keyring("a", expired.public + sub.public))
    assert f" ({'; '.join(dead)})" in shown
    assert len(usable_keys(Keyring("a", expired.public + sub.public), NOW).certificates) == 1
    assert usable_keys(RING, NOW).dead == ()
    # A key that nobody has bound to a name (RFC 9580, 10.1): the library reads it, and cannot evaluate it.
    unbound = Key(made)
    evaluated = usable_keys(Keyring("a", packet(6, unbound.body) + sub.public), NOW)
    assert len(evaluated.certificates) == 1
    why, _ = evaluated.dead
    assert why.startswith(f"key {unbound.fingerprint.hex()} cannot be used: ")


def test_a_subkey_counts_until_the_moment_that_it_expires() -> None:
    """By the newest word on it."""
    made = (NOW - timedelta(days=10)).replace(microsecond=0)
    sub = Certificate(Key(made), subkey=Key(made), subkey_for=timedelta(days=30))
    assert sub.subkey is not None
    ring, signature = Keyring("a", sub.public), sub.subkey.message(signature_claim(DIGEST, NAME), NOW)
    end = made + timedelta(days=30)
    assert verify_signatures(DIGEST, [ring], [signature], now=end - timedelta(seconds=1)).digest == DIGEST
    assert f"subkey {sub.subkey.fingerprint.hex()} expired on {end:%Y-%m-%d}" in refusal(signature, ring, now=end)


def test_an_error_of_the_library_is_one_line() -> None:
    """Its words, or its kind where it has none."""
    assert openpgp_error_text(RuntimeError("a\n  b\n\nStack backtrace:\n 0: x")) == "a b"
    assert openpgp_error_text(RuntimeError()) == "RuntimeError"


@pytest.mark.parametrize(
    ("ring", "said"),
    [
        pytest.param(Keyring("a", b""), "keyring a", id="empty"),
        pytest.param(Keyring("a", b"hello"), "keyring a", id="no key"),
        pytest.param(
            Keyring("a", RING.data + packet(2, b"\x04") * 45_000),
            "keyring a cannot be read: it has more than 131072 bytes",
            id="small packets without end",
        ),
    ],
)
def test_a_keyring_that_is_none_is_an_error(ring: Keyring, said: str) -> None:
    """It must not pass as a keyring that nobody has to satisfy."""
    with pytest.raises(Unverified, match=said):
        verify_signatures(DIGEST, [ring], [KEY.sign(DIGEST, NAME)], now=NOW)


def test_without_keyrings_nothing_is_verified() -> None:
    """An empty list is not the same as agreement of all."""
    with pytest.raises(Unverified, match="no keyring"):
        verify_signatures(DIGEST, [], [KEY.sign(DIGEST, NAME)], now=NOW)


@pytest.mark.parametrize(
    "pullspec",
    ["registry.example/a:5.2.0", "registry.example/a", "a@sha256:abc", f"a@{DIGEST}@{DIGEST}", "", f"{DIGEST}"],
)
def test_only_a_digest_can_be_verified(pullspec: str) -> None:
    """Upstream's words, which users search for."""
    with pytest.raises(Unverified, match="release images that are not accessed via digest cannot be verified"):
        digest_to_verify(pullspec)


def test_gpg_makes_the_same_signatures(tmp_path: Path) -> None:
    """Both directions work: signatures of other release processes are verified here, and ours there."""
    gpg = shutil.which("gpg")
    if gpg is None:
        pytest.skip("gpg is not installed")
    home = tmp_path / "gpg"
    home.mkdir(mode=0o700)
    (tmp_path / "claim.json").write_bytes(signature_claim(DIGEST, NAME))

    def run(*words: str) -> bytes:
        command = [
            gpg,
            "--homedir",
            str(home),
            "--batch",
            "--yes",
            "--pinentry-mode",
            "loopback",
            "--passphrase",
            "",
            *words,
        ]
        return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout

    try:
        run("--quick-gen-key", "release test <release@example.invalid>", "ed25519", "sign", "never")
        run("--sign", "-o", str(tmp_path / "signature"), str(tmp_path / "claim.json"))
        public = run("--armor", "--export")
        assert verify_signatures(DIGEST, [Keyring("gpg", public)], [(tmp_path / "signature").read_bytes()], now=NOW)
        (tmp_path / "ours").write_bytes(KEY.sign(DIGEST, NAME))
        (tmp_path / "key").write_bytes(KEY.public)
        run("--import", str(tmp_path / "key"))
        assert b"VALIDSIG" in run("--status-fd", "1", "--verify", str(tmp_path / "ours"))
    finally:
        subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False, timeout=60)


def _config_map(**changes: Any) -> dict[str, Any]:
    data = {"verifier-public-key-redhat": KEY.public.decode(), "store-one": "https://example.com/signatures "}
    return {"data": data} | changes


def test_the_verifier_of_a_release() -> None:
    """Keys and stores by their prefixes, in order of their names; what is neither is a warning."""
    more = base64.b64encode(bytes(pysequoia.Cert.from_bytes(OTHER_KEY.public))).decode()
    found = verifier_from_config_map(
        _config_map(binaryData={"verifier-public-key-ci": more, "other": base64.b64encode(b"x").decode()})
    )
    assert [ring.name for ring in found.keyrings] == ["verifier-public-key-ci", "verifier-public-key-redhat"]
    assert found.stores == ("https://example.com/signatures",)
    assert found.warnings == ("unexpected key other",)
    assert verify_signatures(
        DIGEST, found.keyrings, [KEY.sign(DIGEST, NAME), OTHER_KEY.sign(DIGEST, NAME)], now=NOW
    ).keyrings == ("verifier-public-key-ci", "verifier-public-key-redhat")


@pytest.mark.parametrize(
    ("config_map", "said"),
    [
        pytest.param({}, "no verifier-public-key", id="nothing"),
        pytest.param({"data": {"store-a": "https://x"}}, "no verifier-public-key", id="no key"),
        pytest.param({"data": {"verifier-public-key-a": "k"}}, "no store", id="no store"),
        pytest.param(_config_map(binaryData={"verifier-public-key-b": "?"}), "is not base64", id="a broken key"),
        pytest.param({"data": None, "binaryData": None}, "no verifier-public-key", id="null"),
    ],
)
def test_a_release_that_cannot_verify_says_so(config_map: dict[str, Any], said: str) -> None:
    """At the start, not at the first update."""
    with pytest.raises(Unverified, match=said):
        verifier_from_config_map(config_map)


def test_signatures_take_the_next_number(tmp_path: Path) -> None:
    """As stores are read: from 1, without a gap, nine at most; a tenth would never be asked for."""
    paths = [add_signature(tmp_path, DIGEST, str(number).encode()) for number in range(MAX_SIGNATURES)]
    assert [path.relative_to(tmp_path).as_posix() for path in paths] == [
        f"{DIGEST.replace(':', '=')}/signature-{number}" for number in range(1, 10)
    ]
    assert [path.read_bytes() for path in paths] == [str(number).encode() for number in range(9)]
    with pytest.raises(CannotWrite, match="has 9 signatures"):
        add_signature(tmp_path, DIGEST, b"x")
    assert len(list(paths[0].parent.iterdir())) == 9


def test_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    """A file where the folder should be: one error that names it."""
    (tmp_path / "store").write_text("")
    with pytest.raises(CannotWrite) as caught:
        add_signature(tmp_path / "store", DIGEST, b"x")
    folder = tmp_path / "store" / DIGEST.replace(":", "=")
    assert caught.value.message == f"{folder}: the signature cannot be written: Not a directory"


def test_a_signature_is_for_everybody_to_read(tmp_path: Path) -> None:
    """A web server of another user's, say; of what was written on the way nothing is left."""
    path = add_signature(tmp_path / "some" / "where", DIGEST, b"x")
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(path.parent.iterdir()) == [path]
    path.unlink()
    assert add_signature(tmp_path / "some" / "where", DIGEST, b"y").name == "signature-1"


@pytest.mark.parametrize("secret", [b"", b"hello", KEY.public], ids=["empty", "no key", "a public key"])
def test_a_key_that_cannot_sign(secret: bytes) -> None:
    """An error without the key in it."""
    with pytest.raises(BadImage, match="key"):
        SigningKey(secret).sign(DIGEST, NAME)
    assert "hello" not in repr(SigningKey(b"hello"))
