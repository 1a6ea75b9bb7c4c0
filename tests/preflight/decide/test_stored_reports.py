"""ConfigMap `preflight-history`: which reports it keeps, in which order, and what of them where there is no room."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.factories import NOW

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import ObjectMeta
from runup.preflight.decide import stored_reports
from runup.preflight.decide.attempt import Attempt
from runup.preflight.decide.stored_reports import ATTEMPT_ANNOTATION, MAX_BYTES, History, config_map, with_report
from runup.report.report import FORMAT, Report, ReportedCheck, ReportedResource, ReportedRisk, encode


def report(number: int = 1, **changes: Any) -> Report:
    """A complete report of a target of that number, found so many minutes after noon."""
    base = {
        "format": FORMAT,
        "preflight_id": f"preflight-{number}-0123456789",
        "source_version": "5.0.0",
        "target_version": f"5.1.{number}",
        "target_image": f"i@sha256:{number}",
        "execution_status": "completed",
        "observed_time": NOW + timedelta(minutes=number),
    }
    return Report(**base | changes)


def ids(found: History) -> list[int]:
    """The numbers of the reports, in their order."""
    return [int(each.preflight_id.split("-")[1]) for each in found.reports]


def stored(*reports: Report, **annotations: str) -> ConfigMap:
    """The ConfigMap with those reports."""
    data = {f"{each.preflight_id}.json": encode(each).decode() for each in reports}
    return ConfigMap(metadata=ObjectMeta(name=stored_reports.NAME, annotations=annotations), data=data)


def test_the_newest_five_are_kept() -> None:
    """In the order in which they were found, however they were stored."""
    found = stored_reports.read(stored(*(report(number) for number in (3, 1, 6, 2, 5, 4))))
    assert ids(found) == [6, 5, 4, 3, 2]
    assert ids(with_report(found, report(7))) == [7, 6, 5, 4, 3]
    assert ids(with_report(found, report(0))) == [6, 5, 4, 3, 2]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        pytest.param({"observed_time": NOW}, {"observed_time": NOW + timedelta(seconds=1)}, id="by when it was found"),
        pytest.param(
            {"observed_time": NOW, "completion_time": NOW + timedelta(hours=9)},
            {"observed_time": NOW + timedelta(seconds=1)},
            id="whenever it was complete",
        ),
        pytest.param(
            {"observed_time": None, "completion_time": NOW},
            {"observed_time": None, "started_time": NOW + timedelta(seconds=1)},
            id="by its end or its beginning where nothing else is told",
        ),
        pytest.param({"observed_time": None}, {"observed_time": NOW - timedelta(days=9)}, id="one without any time"),
        pytest.param({"observed_time": NOW}, {"observed_time": NOW}, id="by their IDs at one moment"),
    ],
)
def test_which_report_is_newer(older: dict[str, Any], newer: dict[str, Any]) -> None:
    """Whichever was stored first."""
    one, two = report(1, **older), report(2, **newer)
    assert ids(stored_reports.read(stored(one, two))) == ids(stored_reports.read(stored(two, one))) == [2, 1]


@pytest.mark.parametrize(
    ("changes", "key", "kept"),
    [
        pytest.param({}, "preflight-1-0123456789.json", True, id="under its own key"),
        pytest.param({}, "preflight-2-0123456789.json", False, id="under another's"),
        pytest.param({}, "preflight-0-0123456789.json", False, id="under an earlier one's"),
        pytest.param({}, "preflight-1-0123456789", False, id="without an ending"),
        pytest.param({"preflight_id": ""}, ".json", False, id="of no preflight"),
        pytest.param({"source_version": "five"}, "preflight-1-0123456789.json", False, id="from no version"),
        pytest.param({"target_version": "five"}, "preflight-1-0123456789.json", False, id="to no version"),
    ],
)
def test_what_is_stored_as_a_report(changes: dict[str, Any], key: str, kept: bool) -> None:
    """Under its own key, from one version to another; others are left out."""
    data = {key: encode(report(**changes)).decode(), "preflight-9-0123456789.json": "{"}
    found = stored_reports.read(ConfigMap(metadata=ObjectMeta(name=stored_reports.NAME), data=data))
    assert ids(found) == ([1] if kept else [])


def test_what_is_written_is_what_is_read() -> None:
    """Each report under its ID; annotations where there is something to say, and none where not."""
    attempt = Attempt(
        id="preflight-2-0123456789",
        source_version="5.0.0",
        target_version="5.2.0",
        target_image="i@sha256:2",
        started_time=NOW,
        unfinished_since=NOW,
    )
    whole = History(attempt, (report(2), report(1)))
    made = config_map(whole, "ns")
    metadata = ObjectMeta(name=stored_reports.NAME, annotations=made["metadata"]["annotations"])
    assert stored_reports.read(ConfigMap(metadata=metadata, data=made["data"])) == whole
    assert set(made["data"]) == {"preflight-2-0123456789.json", "preflight-1-0123456789.json"}
    assert set(config_map(History(attempt), "ns")["metadata"]["annotations"]) == {ATTEMPT_ANNOTATION}
    assert "annotations" not in config_map(History(), "ns")["metadata"]


CHECKED = (ReportedCheck(name="A", result="Clear", duration_seconds=1.0),)
SAME = report(1, checks=CHECKED)
LATER = {"preflight_id": "preflight-9-0123456789", "observed_time": NOW + timedelta(hours=1)}


@pytest.mark.parametrize(
    ("changes", "news"),
    [
        pytest.param({"observed_time": NOW + timedelta(hours=1)}, False, id="seen again"),
        pytest.param({"heartbeat_time": NOW}, False, id="heard again"),
        pytest.param({"started_time": NOW, "completion_time": NOW}, False, id="begun and ended again"),
        pytest.param({"checks": (replace(CHECKED[0], duration_seconds=2.0),)}, False, id="it took longer"),
        pytest.param({"checks": (replace(CHECKED[0], result="Unknown"),)}, True, id="another result"),
        pytest.param({"message": "x"}, True, id="other words"),
    ],
)
def test_what_is_worth_a_write(changes: dict[str, Any], news: bool) -> None:
    """Anything but times; and times as well, where they are the last of a preflight."""
    before = History(reports=(SAME,))
    after = with_report(before, replace(SAME, **changes))
    assert (after != before) is news
    assert with_report(before, replace(SAME, **changes), even_if_only_newer=True) != before


@pytest.mark.parametrize(
    ("changes", "kept"),
    [
        pytest.param({}, [9], id="the same target"),
        pytest.param({"target_version": "5.1.2"}, [9, 1], id="another version"),
        pytest.param({"target_image": "i@sha256:2"}, [9, 1], id="another image"),
        pytest.param({"source_version": "5.0.1"}, [9, 1], id="from another version"),
        pytest.param({"source_version": "4.9.0"}, [9, 1], id="from an older version"),
    ],
)
def test_whose_place_a_report_takes(changes: dict[str, Any], kept: list[int]) -> None:
    """That of what was known about the same target, from the same version."""
    new = replace(SAME, message="x", **LATER, **changes)
    assert ids(with_report(History(reports=(SAME,)), new)) == kept


def heavy(number: int, risks: int, characters: int, checks: int = 0) -> Report:
    """A report of so many risks with messages as long."""
    thing = ReportedResource(kind="Node", name="n")
    text = "m" * characters
    return report(
        number,
        message=text,
        checks=tuple(ReportedCheck(name=f"C{index}", result="Clear", message=text) for index in range(checks)),
        risks=tuple(
            ReportedRisk(name=f"R{index}", message=text, remediation="r", resources=(thing,)) for index in range(risks)
        ),
    )


def size(found: History) -> int:
    """Bytes of the stored reports."""
    return sum(len(encode(each)) for each in found.reports)


@pytest.mark.parametrize(
    ("characters", "longest"),
    [
        pytest.param(800, 800, id="all of it fits"),
        pytest.param(4500, 4000, id="the longest go first"),
        pytest.param(6000, 1000, id="then more"),
    ],
)
def test_details_go_where_there_is_no_room(characters: int, longest: int) -> None:
    """Texts as long as all five have room for; what stood next to them goes with the first cut."""
    # 900 KiB: 44 risks of 4000 characters, five times, fit; of 4500 they do not, nor do 60 of 4000.
    risks = 60 if longest == 1000 else 44
    before = History(reports=tuple(heavy(number, risks, characters) for number in (4, 3, 2, 1)))
    found = with_report(before, heavy(5, risks, characters))
    assert ids(found) == [5, 4, 3, 2, 1]
    assert size(found) <= MAX_BYTES
    lengths = {len(risk.message) for each in found.reports for risk in each.risks}
    assert max(lengths) <= longest
    assert max(lengths) > longest // 2
    cut = longest != characters
    # What goes is counted, so that a later report is not compared with nothing.
    assert len({len(risk.resources) + risk.resources_omitted for each in found.reports for risk in each.risks}) == 1
    assert {(risk.resources == (), risk.remediation == "") for each in found.reports for risk in each.risks} == {
        (cut, cut)
    }


def test_where_that_is_not_enough_the_oldest_reports_go() -> None:
    """Risks stay, each with its name."""
    found = History()
    for number in range(1, 6):
        found = with_report(found, heavy(number, 900, 300))
    assert ids(found) == [5, 4, 3]
    assert size(found) <= MAX_BYTES
    assert {len(each.risks) for each in found.reports} == {900}


def test_at_last_checks_go() -> None:
    """Of the one report that is left."""
    found = with_report(History(reports=(report(1),)), heavy(2, 1, 300, checks=4000))
    assert ids(found) == [2]
    assert len(found.reports[0].checks) == 200
    small = with_report(History(), heavy(2, 1, 100, checks=201))
    assert len(small.reports[0].checks) == 201


@pytest.mark.parametrize(
    ("length", "whole"), [pytest.param(8192, True, id="as long as it may be"), pytest.param(8193, False, id="longer")]
)
def test_why_an_attempt_failed_fits_an_annotation(length: int, whole: bool) -> None:
    """What is longer is cut, and says so."""
    failed = Attempt(
        id="preflight-2-0123456789",
        source_version="5.0.0",
        target_version="5.2.0",
        target_image="i",
        failed="X",
        failure="f" * length,
    )
    found = stored_reports.with_attempt(History(), failed).attempt
    assert found is not None
    assert (found.failure == failed.failure) is whole
    assert len(found.failure) <= 8192
    assert stored_reports.with_attempt(History(failed), None).attempt is None
