"""Checks that wait a while before they say anything: at the moment that their page names, and a second off it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec.structs import replace
from tests.checks.catalogue.asking import BY_NAME
from tests.factories import NOW, config_map_json, context

from runup.checks.catalogue import CHECKS
from runup.checks.decide import check_page
from runup.checks.decide.engine import run_check
from runup.checks.decide.snapshots import snapshot_of

SECOND, HOUR, MONTH = timedelta(seconds=1), timedelta(hours=1), timedelta(days=30)
TEN_MINUTES = timedelta(minutes=10)
TODAY = "2026-01-14T08:00:00Z"


@pytest.mark.parametrize(
    ("name", "moment", "applies", "clear"),
    [
        ("NodeUninitialized", "2026-01-10T08:00:00Z", HOUR, HOUR - SECOND),
        ("StuckTerminating", "2026-01-10T12:00:00Z", HOUR, HOUR - SECOND),
        ("CertificateRequestsPending", TODAY, TEN_MINUTES, TEN_MINUTES - SECOND),
        ("VolumeAttachmentStuck", TODAY, TEN_MINUTES, TEN_MINUTES - SECOND),
    ],
    ids=lambda value: value if isinstance(value, str) and not value[0].isdigit() else "",
)
def test_how_long_a_check_waits(name: str, moment: str, applies: timedelta, clear: timedelta) -> None:
    """No second more or less than its page says."""
    (check,) = (each for each in CHECKS if each.name == name)
    assert check.example.count(moment) == 1

    def finds(age: timedelta) -> bool:
        aged = replace(check, example=check.example.replace(moment, f"{NOW - age:%Y-%m-%dT%H:%M:%SZ}"))
        return bool(run_check(aged, *check_page.example(aged)).findings)

    assert (finds(applies), finds(clear)) == (True, False)


def ends_in(life: timedelta, left: timedelta) -> str:
    """A bundle with one authority of that life, of which so much is left."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "signer")])
    begin = NOW + left - life
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, begin + life).sign(key, hashes.SHA256())
    return made.public_bytes(serialization.Encoding.PEM).decode()


DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("life", "left", "applies"),
    [
        pytest.param(DAY, DAY - SECOND, False, id="the first signer of a new cluster"),
        pytest.param(DAY, DAY / 5, False, id="it is being renewed"),
        pytest.param(DAY, DAY / 5 - HOUR, True, id="nobody renewed it"),
        pytest.param(MONTH, 6 * DAY, False, id="a month's with a fifth left"),
        pytest.param(MONTH, 6 * DAY - HOUR, True, id="a month's that nobody renewed"),
        pytest.param(365 * DAY, 7 * DAY, True, id="a year's with a week left"),
        pytest.param(365 * DAY, 7 * DAY + SECOND, False, id="a year's with more than a week left"),
        pytest.param(DAY, -SECOND, True, id="it has ended"),
    ],
)
def test_how_early_an_end_is_told(life: timedelta, left: timedelta, applies: bool) -> None:
    """A week before, if it should have been renewed by then: with a fifth of its life left."""
    check = BY_NAME["CertificateAuthorityExpires"]
    bundle = {"ca-bundle.crt": ends_in(life, left)}
    map_ = {**config_map_json("signer", "openshift-config-managed"), "data": bundle}
    outcome = run_check(check, snapshot_of(check.reads, [map_]), context())
    assert [finding.severity for finding in outcome.findings] == ["critical"] * applies
    assert all(("ended" if left < timedelta() else "ends") in finding.message for finding in outcome.findings)
