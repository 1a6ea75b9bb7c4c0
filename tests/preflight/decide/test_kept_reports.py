"""The ConfigMap of reports of preflights in the cluster: what is added, what is new, and what a failed run leaves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.factories import NOW

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import ObjectMeta
from runup.preflight.decide import kept_history, stored_reports
from runup.preflight.decide.kept_history import LAST_SCHEDULED_ANNOTATION, GrownRisk, LastScheduled
from runup.report.report import FORMAT, Report, encode

JSON = dict[str, Any]


def report(number: int, *risks: str, status: str = "completed", **changes: Any) -> Report:
    """A report of a target of that number with those risks."""
    document = {
        "format": FORMAT,
        "preflightID": f"run-{number}",
        "sourceVersion": "5.0.0",
        "targetVersion": f"5.1.{number}",
        "executionStatus": status,
        "observedTime": f"{NOW + timedelta(minutes=number):%Y-%m-%dT%H:%M:%SZ}",
        "risks": [{"name": name, "message": "It is so."} for name in risks],
    }
    return codec.convert(Report, document | changes)


def kept(*reports: Report, **annotations: str) -> ConfigMap:
    """The ConfigMap with those reports."""
    data = {f"{each.preflight_id}.json": encode(each).decode() for each in reports}
    metadata = ObjectMeta(name="preflight-history", resource_version="7", annotations=annotations)
    return ConfigMap(metadata=metadata, data=data)


def patched(before: ConfigMap, patch: JSON) -> ConfigMap:
    """What the server makes of a merge patch (RFC 7386)."""
    data = {key: text for key, text in (before.data | patch.get("data", {})).items() if text is not None}
    annotations = before.metadata.annotations | patch["metadata"].get("annotations", {})
    return ConfigMap(metadata=ObjectMeta(annotations=annotations), data=data)


def test_a_report_is_added_to_what_was_read() -> None:
    """With the version that it was decided on, so that another run's report is not lost."""
    before = kept(report(1))
    patch = kept_history.with_report(before, report(2))
    assert patch["metadata"] == {"resourceVersion": "7"}
    found = stored_reports.read(patched(before, patch))
    assert [each.target_version for each in found.reports] == ["5.1.2", "5.1.1"]


def test_the_sixth_report_takes_the_place_of_the_oldest() -> None:
    """A merge patch removes what it says is null."""
    before = kept(*(report(number) for number in range(1, 6)))
    patch = kept_history.with_report(before, report(6))
    assert patch["data"]["run-1.json"] is None
    assert set(patched(before, patch).data) == {f"run-{number}.json" for number in range(2, 7)}


def test_a_run_that_failed_replaces_nothing() -> None:
    """What was found before still stands."""
    assert kept_history.with_report(kept(report(1)), report(1, status="failed")) == {}


@pytest.mark.parametrize(
    ("before", "new"),
    [
        pytest.param((), ("A", "B"), id="the first report: nobody has seen any of it"),
        pytest.param((report(1, "A"),), ("B",), id="what the last one did not have"),
        pytest.param((report(1, "A", "B", "C"),), (), id="what is gone is nothing new"),
        pytest.param((report(1, "B"), report(2, "A")), ("B",), id="without one of this target the newest counts"),
        pytest.param(
            (report(0, "A", targetVersion="5.1.3"), report(2, "A", "B")),
            ("B",),
            id="a newer one of another target does not know it of this one",
        ),
        pytest.param(
            (report(1, risks=[{"name": name, "message": "?", "applies": "Unknown"} for name in "AB"]),),
            ("A", "B"),
            id="could not be told then, and applies now",
        ),
    ],
)
def test_what_is_new(before: tuple[Report, ...], new: tuple[str, ...]) -> None:
    """By name and target; the note of the scheduled run has it."""
    config_map = kept(*before)
    patch, last = kept_history.with_scheduled(config_map, report(3, "A", "B"), NOW)
    assert last == LastScheduled(id="run-3", time=NOW, target_version="5.1.3", risks=2, new=new)
    assert kept_history.last_scheduled(patched(config_map, patch)) == last


def cordoned(number: int, *nodes: str, omitted: int = 0) -> Report:
    """A report of a risk that is about these nodes."""
    resources = [{"kind": "Node", "name": name} for name in nodes]
    risk = {"name": "NodeCordoned", "message": "so", "resources": resources, "resourcesOmitted": omitted}
    return report(number, risks=[risk])


@pytest.mark.parametrize(
    ("before", "now", "grown"),
    [
        pytest.param(("a", "b"), ("a", "b"), None, id="the same nodes"),
        pytest.param(("a", "b"), ("a",), None, id="one less"),
        pytest.param(("a",), ("a", "b"), (("Node b",), 0), id="one more"),
        pytest.param(("a",), ("b",), (("Node b",), 0), id="another one"),
        pytest.param(
            ("a",),
            tuple(f"n{number:02}" for number in range(12)),
            (tuple(f"Node n{number:02}" for number in range(10)), 2),
            id="more than the note names",
        ),
    ],
)
def test_what_has_grown(before: tuple[str, ...], now: tuple[str, ...], grown: tuple[Any, int] | None) -> None:
    """By its objects; it is news, as a new risk is."""
    config_map = kept(cordoned(1, *before))
    patch, last = kept_history.with_scheduled(config_map, cordoned(2, *now), NOW)
    expected = (GrownRisk(name="NodeCordoned", objects=grown[0], more=grown[1]),) if grown else ()
    assert (last.new, last.grown) == ((), expected)
    assert last.news == (("NodeCordoned",) if grown else ())
    assert kept_history.last_scheduled(patched(config_map, patch)) == last


def test_many_grown_risks_fit_into_the_note() -> None:
    """As many as an annotation can hold."""

    def wide(number: int, *nodes: str) -> Report:
        objects = [{"kind": "Node", "namespace": "n" * 253, "name": name * 250} for name in nodes]
        risks = [{"name": f"R{index}", "message": "so", "resources": objects} for index in range(200)]
        return report(number, risks=risks)

    patch, last = kept_history.with_scheduled(kept(wide(1)), wide(2, *"abcdefghijklmnopqrstuvwxyz"), NOW)
    assert (len(last.grown), last.grown[0].more) == (50, 16)
    assert len(patch["metadata"]["annotations"][LAST_SCHEDULED_ANNOTATION]) < 256 << 10


def test_a_scheduled_run_that_failed_is_noted() -> None:
    """Its words are cut to what an annotation can hold, and nothing counts as new."""
    config_map = kept(report(1, "A"))
    failed = report(2, "B", status="failed", message="the API server did not answer" + "!" * 9000)
    patch, last = kept_history.with_scheduled(config_map, failed, NOW)
    assert "data" not in patch
    assert (last.new, last.error[:29]) == ((), "the API server did not answer")
    assert len(patch["metadata"]["annotations"][LAST_SCHEDULED_ANNOTATION]) < 4096


@pytest.mark.parametrize("note", ["", "{", "[]", '{"time": "2026-01-14T10:00:00"}', '{"new": 5}'])
def test_a_note_that_somebody_edited_is_none(note: str) -> None:
    """It is written again by the next run."""
    assert kept_history.last_scheduled(kept(**{LAST_SCHEDULED_ANNOTATION: note})) is None
    assert kept_history.last_scheduled(None) is None


def test_the_config_map_can_be_collected() -> None:
    """By a label, and without any data before the first report."""
    made = kept_history.empty_config_map()
    assert made["metadata"]["labels"]["preflight.runup.dev/reports"] == "true"
    assert stored_reports.read(codec.convert(ConfigMap, made)).reports == ()
