"""The file of a fleet update: what is read, and one clear error for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubekit.error_types import InputError
from runup.rollout.control import fleet_files
from runup.rollout.decide.fleet_file import max_concurrency, max_failures, min_done

DIGEST = "5" * 64
SELECTOR = 'matchLabels: {canary: "true"}'
FILE = f"""
apiVersion: update.runup.dev/v1alpha1
kind: FleetUpdate
metadata: {{name: "5.1"}}
spec:
  target: {{version: 5.1.0, image: "example.com/release@sha256:{DIGEST}"}}
  stages:
  - name: canary
    selector: {{matchLabels: {{canary: "true"}}}}
    after: [{{type: Soak, for: 24h}}]
  - name: main
    rollout: {{type: Progressive, progressive: {{maxConcurrency: 25%}}}}
    before: [{{type: Approval, name: go}}, {{type: Calendar, name: nights}}]
    minDone: 90%
  maxFailures: 1
  mutexes: [{{label: site}}]
  policy: {{calendars: [Always], soak: 30m}}
---
apiVersion: update.runup.dev/v1alpha1
kind: UpdateCalendar
metadata: {{name: nights}}
spec:
  timeZone: Europe/Berlin
  windows: [{{opens: "0 22 * * TUE,THU", for: 6h}}]
"""


def read(text: str, folder: Path) -> fleet_files.FleetFile:
    """The file with this text."""
    path = folder / "update.yaml"
    path.write_text(text, encoding="utf-8")
    return fleet_files.read(str(path))


def test_reads_the_amounts_of_a_file(tmp_path: Path) -> None:
    """Percentages of places and of needed clusters are rounded up, those of failures down; one place by default."""
    update = read(FILE, tmp_path).update
    canary, main = update.spec.stages
    assert [max_concurrency(canary, 9), max_concurrency(main, 9), max_concurrency(main, 1)] == [1, 3, 1]
    assert [min_done(canary, 9), min_done(main, 9)] == [9, 9]
    assert max_failures(update, 2) == 1
    half = read(FILE.replace("maxFailures: 1", "maxFailures: 50%"), tmp_path).update
    assert [max_failures(half, clusters) for clusters in (1, 3, 4)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("minDone: 90%", "mindone: 90%", "unknown field `mindone`"),
        (f"@sha256:{DIGEST}", ":5.1.0", "must name the image by digest"),
        (f"@sha256:{DIGEST}", f":5.1.0@sha256:{DIGEST}", "must name the image by digest"),
        (f"@sha256:{DIGEST}", "@sha256:5", "must be a pull spec with a digest"),
        ("version: 5.1.0,", "version: five,", "must be a semantic version"),
        ("maxFailures: 1", "maxFailures: -1", "spec.maxFailures '-1' must be a number"),
        ("maxFailures: 1", "maxFailures: 101%", "spec.maxFailures '101%' must be a number"),
        ("maxFailures: 1", "maxFailures: some", "spec.maxFailures 'some' must be a number"),
        ("maxFailures: 1", "maxFailures: true", "Expected `int | str`, got `bool`"),
        ("maxConcurrency: 25%", "maxConcurrency: 0", "must be at least 1"),
        ("maxConcurrency: 25%", "maxConcurrency: many", "maxConcurrency 'many' must be a number"),
        ("maxConcurrency: 25%", "minSuccessTime: 1h", "minSuccessTime has an effect on a hub only"),
        ("type: Progressive", "type: ProgressivePerGroup", "rollout must be {type: All} or"),
        ("name: main", "name: canary", "2 stages are called canary"),
        ("label: site}", "label: site}, {label: site}", "label site is named 2 times"),
        ("for: 24h", "for: 24x", "'24x' must be a duration"),
        ("type: Soak, for: 24h", "type: Soak", "a gate of type Soak must have `for`"),
        ("type: Approval, name: go", "type: Approval, name: go, for: 1h", "a gate of type Approval has no `for`"),
        ("type: Calendar, name: nights", "type: Calendar, name: days", "the file has no UpdateCalendar days"),
        ("type: Calendar, name: nights", "type: Approval, name: go", "2 approvals are called go"),
        ("after: [", "before: [", "the first stage has no stage before it"),
        ('selector: {matchLabels: {canary: "true"}}', "placementRef: {name: a}", "placementRef needs a hub"),
        ("soak: 30m", "actuator: None", "spec.policy.actuator must be ClusterVersion"),
        ("soak: 30m", "gates: {approvals: [{name: cab}]}", "spec.policy.gates.approvals needs an UpdateRun"),
        ("maxFailures: 1", "control: Hold", "spec.control Hold has an effect on a hub only"),
        ("kind: FleetUpdate", "kind: FleetUpdates", "must be one of UpdateCalendar and FleetUpdate"),
        ("timeZone: Europe/Berlin", "timeZone: Europe/Berln", "is not a known time zone"),
        ('name: "5.1"', 'name: "a/b"', "metadata.name 'a/b' must"),
        ("matchLabels: {", "matchLabel: {", "unknown field `matchLabel`"),
        ('{canary: "true"}', "{canary: }", "spec.stages[canary].selector: label canary has no value"),
        (
            SELECTOR,
            "matchExpressions: [{key: canary, operator: Equals}]",
            "'Equals' of label canary must be one of In,",
        ),
        (SELECTOR, "matchExpressions: [{key: canary, operator: NotIn}]", "NotIn must have at least one value"),
        (SELECTOR, "matchExpressions: [{key: canary, operator: In, values: []}]", "In must have at least one value"),
        (SELECTOR, "matchExpressions: [{key: canary, operator: Exists, values: [a]}]", "Exists must not have values"),
        (SELECTOR, 'matchExpressions: [{key: "", operator: Exists}]', "every requirement must have a key"),
        (SELECTOR, "matchExpressions: [{key: a, operator: In, value: b}]", "unknown field `value`"),
    ],
)
def test_refuses_a_mistake(old: str, new: str, error: str, tmp_path: Path) -> None:
    """The error names the file and the field."""
    assert old in FILE
    with pytest.raises(InputError) as raised:
        read(FILE.replace(old, new), tmp_path)
    assert error in raised.value.message
    assert "\n" not in raised.value.message.strip()


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (FILE.partition("  stages:")[0] + "  stages: []\n", "must have at least one stage"),
        (FILE.partition("---")[2], "must have one FleetUpdate; it has 0"),
        (f"{FILE}---{FILE.partition('---')[0]}", "must have one FleetUpdate; it has 2"),
        (f"{FILE}---{FILE.partition('---')[2]}", "two UpdateCalendars are called nights"),
    ],
)
def test_refuses_a_file_that_is_not_whole(text: str, error: str, tmp_path: Path) -> None:
    """A file has one FleetUpdate, with stages."""
    with pytest.raises(InputError) as raised:
        read(text, tmp_path)
    assert error in raised.value.message


@pytest.mark.parametrize(
    ("data", "error"),
    [
        pytest.param(None, "update.yaml: cannot be read: No such file or directory", id="it does not exist"),
        pytest.param(b"kind: caf\xe9", "update.yaml: line 1: is not UTF-8 text (byte 0xe9)", id="it is not UTF-8"),
    ],
)
def test_refuses_a_file_that_cannot_be_read(data: bytes | None, error: str, tmp_path: Path) -> None:
    """The error has the cause in words, not that of Python."""
    if data is not None:
        (tmp_path / "update.yaml").write_bytes(data)
    with pytest.raises(InputError) as raised:
        fleet_files.read(str(tmp_path / "update.yaml"))
    assert raised.value.message == f"{tmp_path}/{error}"


def test_reads_no_endless_file() -> None:
    """No more is read than the limit of a file."""
    with pytest.raises(InputError) as raised:
        fleet_files.read("/dev/zero")
    assert raised.value.message == "/dev/zero: cannot be read: it holds more than 64 MiB"


@pytest.mark.parametrize("text", ["a: [", "\x00"])
def test_refuses_a_file_that_is_not_yaml(text: str, tmp_path: Path) -> None:
    """The error names the file."""
    with pytest.raises(InputError, match="update"):
        read(text, tmp_path)


def test_refuses_more_failures_than_clusters(tmp_path: Path) -> None:
    """A maximum that could never be exceeded is a mistake."""
    update = read(FILE.replace("maxFailures: 1", "maxFailures: 3"), tmp_path).update
    with pytest.raises(InputError) as raised:
        max_failures(update, 3)
    assert "would let all 3 clusters fail; it must be at most 2" in raised.value.message
