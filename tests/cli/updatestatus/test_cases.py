"""oc's own example cases through every path: from the files, as a dump, and through the object's JSON."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.cli.commands import Run

from kubekit.api import codec
from kubekit.lang.gotext import nanoseconds
from runup.cli.updatestatus.render import status_text as rendered
from runup.updatestatus.control.status_files import mock
from runup.updatestatus.control.status_reading import parse_moment
from runup.updatestatus.decide import read_status

CORPUS = Path(__file__).parents[4] / "shared" / "corpus" / "oc-status"
CASES = sorted(file.name.removesuffix("-cv.yaml") for file in CORPUS.glob("*-cv.yaml"))
DETAILS = [("none", "output"), ("all", "detailed-output")]
REAL_NOW = datetime(2026, 1, 1, tzinfo=UTC)

pytestmark = pytest.mark.skipif(not CASES, reason="the corpus of oc's cases is not beside this checkout")


@pytest.mark.parametrize(("details", "suffix"), DETAILS)
@pytest.mark.parametrize("case", CASES)
def test_from_the_files(case: str, details: str, suffix: str, run: Run) -> None:
    """What oc's command prints, byte for byte; what it says about alerts goes to stderr."""
    ran = run("upgrade", "status", "--mock-clusterversion", CORPUS / f"{case}-cv.yaml", f"--details={details}")
    assert ran.out == (CORPUS / f"{case}.{suffix}").read_text()
    assert ran.code == 0
    updating = ran.out != rendered.NOT_UPDATING
    assert ran.err.startswith("Unable to fetch alerts, ignoring alerts in 'Update Health':  open ") is updating


@pytest.mark.parametrize(("details", "suffix"), DETAILS)
@pytest.mark.parametrize("case", CASES)
def test_as_a_dump(case: str, details: str, suffix: str, run: Run) -> None:
    """The same by the folder and the case's prefix."""
    ran = run("adm", "upgrade", "status", "--dump", CORPUS / case, "--details", details)
    assert (ran.code, ran.out) == (0, (CORPUS / f"{case}.{suffix}").read_text())


@pytest.mark.parametrize("case", CASES)
def test_the_object_carries_everything_that_is_printed(case: str) -> None:
    """As JSON and back, at its own time; a controller's clock cuts fractions off, which must not show."""
    found = mock(str(CORPUS / f"{case}-cv.yaml"), REAL_NOW)
    report = read_status.report(codec.decode(dict, codec.encode(found.obj)))
    for details, suffix in DETAILS:
        text = rendered.render(report, found.now_ns, rendered.details(details))
        assert text == (CORPUS / f"{case}.{suffix}").read_text()


def test_the_time_of_files_is_ocs() -> None:
    """368975 ns after the newest transition, so that no text rounds differently."""
    found = mock(str(CORPUS / "4.14.1-degraded-cv.yaml"), REAL_NOW)
    assert found.now_ns == parse_moment("2023-11-03T17:26:54.000368975Z")


def test_ages_grow_with_the_time_of_reading() -> None:
    """The object holds moments and no ages: ten minutes later it reads ten minutes later."""
    found = mock(str(CORPUS / "4.14.1-degraded-cv.yaml"), REAL_NOW)
    later = found.now_ns + nanoseconds(timedelta(minutes=10))
    text = rendered.render(read_status.report(found.obj), later)
    assert "Duration:        2h9m (Est. Time Remaining: N/A; estimate duration was 1h24m)" in text
    assert "\n1h8m18s    Error     API Availability   Cluster Operator kube-apiserver is degraded" in text
