"""The tables of gates and flags are what the components' sources say."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tools.removed_settings import (
    FIRST,
    LOCKED,
    Locked,
    Unavailable,
    flags_of,
    gates_of,
    locked,
    locked_text,
    lost,
    made,
)


def specification(version: str, *, default: bool = True, lock: bool = False) -> dict[str, Any]:
    return {"version": version, "default": default, "lockToDefault": lock, "preRelease": "GA"}


def test_a_gate_is_locked_from_its_first_such_version_on() -> None:
    """What is not locked is left out, and what only a version to come will lock."""
    early = {"Swap": [specification("1.30"), specification("1.33", lock=True)], "Open": [specification("1.30")]}
    later = early | {"Old": [specification("1.35"), specification("1.36", default=False, lock=True)]}
    assert locked({34: early, 35: later, 36: later}) == {"Swap": Locked(33, True), "Old": Locked(36, False)}
    text = locked_text(locked({34: early, 35: later, 36: later}), 36)
    assert '  "1.33":\n    "true": [Swap]\n  "1.34": {}\n  "1.35": {}\n  "1.36":\n    "false": [Old]\n' in text


def test_a_list_that_locks_afterwards() -> None:
    """TopologyManagerPolicyOptions: 1.36 says that 1.32 locked it, and the programs of 1.32 to 1.35 do not."""
    before = {"Options": [specification("1.32")]}
    assert locked({34: before, 35: before, 36: {"Options": [specification("1.32", lock=True)]}}) == {
        "Options": Locked(36, True)
    }


def test_a_gate_that_is_unlocked_again_is_refused() -> None:
    """The table could not say it."""
    specifications = [specification("1.34", lock=True), specification("1.35")]
    with pytest.raises(ValueError, match="Swap is unlocked"):
        locked({34: {"Swap": specifications}, 35: {"Swap": specifications}})


def test_lists_of_gates_have_identifiers(tmp_path: Path) -> None:
    """Of two gates these are no names; a folder without a list is refused."""
    with pytest.raises(Unavailable, match="no list"):
        gates_of(tmp_path)
    folder = tmp_path / "test/compatibility_lifecycle/reference"
    folder.mkdir(parents=True)
    (folder / "versioned_feature_list.yaml").write_text("- {name: CPUCFSQuotaPeriod, versionedSpecs: []}\n")
    (folder / "unversioned_feature_list.yaml").write_text("- {name: Other, versionedSpecs: []}\n")
    assert sorted(gates_of(tmp_path)) == ["CustomCPUCFSQuotaPeriod", "Other"]


def test_flags_are_those_that_calls_register(tmp_path: Path) -> None:
    """In whatever form; fields of log lines, and what tests register, are none."""
    (tmp_path / "options.go").write_text(
        'fs.StringVar(&s.Name, "plain", s.Name, "")\n'
        'fs.Var(cliflag.NewMap(&s.Gates), "of-a-map", "")\n'
        'registerDeprecated(global, local, "log_cadvisor_usage", deprecated)\n'
        'lg.Info("hello", zap.String("no-flag", name))\n'
    )
    (tmp_path / "options_test.go").write_text('fs.StringVar(&s.Name, "of-a-test", s.Name, "")\n')
    assert flags_of(iter([tmp_path])) == {"plain", "of-a-map", "log-cadvisor-usage"}


def test_what_is_lost() -> None:
    """By the version that has it no more."""
    assert lost({33: {"a", "b"}, 34: {"b", "c"}, 35: {"b", "c"}}) == {34: {"a"}, 35: set()}


@pytest.mark.slow
def test_the_tables_are_what_the_modules_say() -> None:
    """`python tools/removed_settings.py --check`, where the modules can be had."""
    try:
        text, differences = made()
    except Unavailable as error:
        if os.environ.get("RUNUP_E2E") == "required":
            raise
        pytest.skip(str(error))
    assert differences == []
    assert LOCKED.read_text() == text
    assert FIRST == 33
