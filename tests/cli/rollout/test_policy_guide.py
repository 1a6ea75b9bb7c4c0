"""The commands of the guide about calendars and gates, as typed, and what they print."""

from __future__ import annotations

import json
import re
import shlex
from datetime import timedelta
from pathlib import Path

import pytest
from tests.cli.commands import Run
from tests.rollout.observed_cluster import NOW, observed

from runup.cli.rollout.policy_command import explanation_data, explanation_text
from runup.rollout.control import policy_files
from runup.rollout.decide.explain import StartPreview, explain
from runup.rollout.decide.gates.observed import Holds

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs/how-to/update-policy.md").read_text(encoding="utf-8")
POLICY = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)[0]
SCREENS = re.findall(r"^```console\n(runup [^\n]*)\n```\n\n```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    """The guide's policy and calendar."""
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY, encoding="utf-8")
    return path


@pytest.mark.parametrize(("line", "screen"), SCREENS, ids=[line for line, _ in SCREENS])
def test_the_guide_shows_what_is_printed(
    line: str, screen: str, policy: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command that has a screen prints it."""
    monkeypatch.chdir(ROOT)
    ran = run(*shlex.split(line.replace("policy.yaml", str(policy)))[1:])
    assert ran.out == screen, ran.err


def test_the_policies_of_the_guide_are_valid(tmp_path: Path) -> None:
    """Every YAML block of the page is read without an error."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 10
    for block in blocks:
        path = tmp_path / "block.yaml"
        path.write_text(block, encoding="utf-8")
        assert len(policy_files.read(str(path)).policies) == 1


def test_46_a_pause_that_ends_in_a_window_is_explained() -> None:
    """The opening in which the pause ends says from when on the update may start; later ones begin open."""
    explanation = explain(observed(holds=Holds(paused_until=NOW + timedelta(hours=2))), NOW)
    shown = StartPreview(version="5.1.0", stopped="", explanation=explanation)
    lines = explanation_text(shown).splitlines()
    assert lines[0] == "The update to 5.1.0 starts at 2027-02-03T00:00:00Z if all other gates are open then."
    assert [line.partition("  ")[2].strip().split("  ")[-1] for line in lines[2:4]] == [
        "may start from 2027-02-03T00:00:00Z",
        "may start",
    ]
    data = explanation_data(shown, 0)
    assert [each["startsFrom"] for each in data["openings"][:2]] == ["2027-02-03T00:00:00Z", "2027-02-04T21:00:00Z"]
    assert data["firstStart"] == "2027-02-03T00:00:00Z"


def test_37_gate_of_a_dump(policy: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed gate is exit code 2; without a window, what is unknown is exit code 3."""
    monkeypatch.chdir(ROOT)
    words = ("upgrade", "gate", "--to", "5.2.0", "--dump", "examples/skip-level", "-o", "json", "--policy")
    ran = run(*words, policy)
    closed = {gate["name"]: gate["state"] for gate in json.loads(ran.out)["gates"]}
    assert (ran.code, closed["window"], closed["preflight"]) == (2, "Closed", "Unknown")
    policy.write_text(POLICY.replace("[nights]", "[Always]"), encoding="utf-8")
    assert run(*words, policy).code == 3


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("failOn: warning", "failon: warning", "unknown field `failon`"),
        ("failOn: warning", "failOn: unknown", "Invalid enum value 'unknown'"),
        (
            "    preflight: {",
            "    health: {expressions: [{name: a, reads: [{name: p, kind: Pod, fields: [spec]}], expression: p ==}]}\n"
            "    preflight: {",
            "UpdatePolicy cluster: spec.gates.health.expressions[a]: spec.expression:",
        ),
        ("Europe/Berlin", "Europe/Berln", "spec.timeZone 'Europe/Berln' is not a known time zone"),
        ("kind: UpdatePolicy", "kind: UpdatePolicie", "must be one of UpdateCalendar and UpdatePolicy"),
        ("for: 6h", "for: 6x", "spec.windows[0].for '6x' must be a duration"),
        ("timeZone: Europe/Berlin", "timezone: Europe/Berlin", "unknown field `timezone`"),
    ],
)
def test_15_a_typo_is_an_error(old: str, new: str, error: str, policy: Path, run: Run) -> None:
    """The error names the file and the field; nothing is evaluated."""
    policy.write_text(POLICY.replace(old, new), encoding="utf-8")
    for words in (("calendar", "-f", policy), ("gate", "--to", "5.2.0", "--dump", ROOT / "examples/skip-level")):
        ran = run("upgrade", *words, *(() if "-f" in words else ("--policy", policy)))
        assert (ran.code, ran.out) == (1, "")
        assert error in ran.err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("gate", "--to", "5.2.0", "--dump", "d"), "--dump needs --policy"),
        (("gate", "--to", "5.2.0", "--at", "2026-01-01T00:00:00Z"), "--at needs --dump"),
        (("gate", "--to", "5.2.0", "--wait", "soon"), "--wait 'soon' must be a duration"),
        (("gate",), "give either the name of an UpdateRun or --to VERSION"),
        (("gate", "5.1.0-abc", "--to", "5.1.0"), "give either the name of an UpdateRun or --to VERSION"),
        (("gate", "5.1.0-abc", "--policy", "FILE"), "--policy and --dump need --to"),
        (("gate", "--to", "five"), "is not a semantic version"),
        (("calendar", "-f", "/nonexistent"), "/nonexistent: cannot be read"),
        (("calendar", "-f", "FILE", "other"), "has no UpdateCalendar other"),
        (("calendar", "-f", "FILE", "--at", "2026-01-01T00:00:00"), "must be a time with an offset"),
    ],
)
def test_refused_words(words: tuple[str, ...], error: str, policy: Path, run: Run) -> None:
    """Each mistake has one error."""
    ran = run("upgrade", *(policy if word == "FILE" else word for word in words))
    assert ran.code == 1
    assert error in ran.err


def test_a_policy_file_without_a_policy(policy: Path, run: Run) -> None:
    """The error says what the file must have."""
    policy.write_text(POLICY.partition("---\n")[2], encoding="utf-8")
    ran = run("upgrade", "gate", "--to", "5.2.0", "--dump", ROOT / "examples/skip-level", "--policy", policy)
    assert ran.code == 1
    assert f"--policy {policy} must have one UpdatePolicy, named cluster; it has 0" in ran.err
