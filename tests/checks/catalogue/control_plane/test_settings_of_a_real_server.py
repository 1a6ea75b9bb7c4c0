"""What the tables say about gates, flags and plug-ins, asked of real programs of kube-apiserver.

A server without an address of etcd ends by itself: what else it says is what it does not take. The programs are those
of `make e2e`, and of `RUNUP_KUBERNETES=newest make e2e`; a version that was not built is left out, unless it is asked
for.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.controlplane import build

from runup.checks.decide.removal_tables import table

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", params=["", build.NEWEST], ids=["pinned", "newest"])
def server(request: pytest.FixtureRequest) -> tuple[Path, int]:
    """The program, and its minor version."""
    if not os.environ.get("RUNUP_E2E"):
        pytest.skip("asked for with RUNUP_E2E")
    if os.environ.get("KUBEBUILDER_ASSETS"):
        pytest.skip("programs of a version that is not known")
    environ = {**os.environ, build.KUBERNETES: request.param}
    try:
        programs = build.find(environ)
    except build.Unavailable as error:
        pytest.skip(str(error))
    return programs / "kube-apiserver", int(build.version(environ).split(".")[1])


def error_output(program: Path, argument: str) -> str:
    """What the server says to that argument before it ends."""
    ran = subprocess.run([program, argument], capture_output=True, text=True, check=False, timeout=90)
    assert ran.returncode
    return ran.stdout + ran.stderr


def removed(name: str, minor: int, part: str = "") -> set[str]:
    """The names of the table's rows up to that version."""
    rows = [row for _, row in table(name).between(0, minor)]
    return {each for row in rows for each in (row.get(part, ()) if part else row)}


def test_removed_gates(server: tuple[Path, int]) -> None:
    """The server knows none of them."""
    program, minor = server
    gates = removed("removed-gates", minor)
    shown = {gate: error_output(program, f"--feature-gates={gate}=true") for gate in gates}
    assert [gate for gate in sorted(gates) if f"unrecognized feature gate: {gate}" not in shown[gate]] == []


def test_gates_that_go_later(server: tuple[Path, int]) -> None:
    """The server still knows those that the next versions remove; which came after it, it does not."""
    program, minor = server
    later = {gate for _, row in table("removed-gates").between(minor, 99) for gate in row}
    unknown = {gate for gate in later if "unrecognized" in error_output(program, f"--feature-gates={gate}=true")}
    # Both came with 1.35.
    assert unknown <= {"GangScheduling", "WorkloadAwarePreemption"}


@pytest.mark.parametrize("value", ["true", "false"])
def test_locked_gates(server: tuple[Path, int], value: str) -> None:
    """They take their value, and no other."""
    program, minor = server
    gates = removed("locked-gates", minor, value) - removed("removed-gates", minor)
    assert gates
    other = {"true": "false", "false": "true"}[value]
    refused = {gate: error_output(program, f"--feature-gates={gate}={other}") for gate in gates}
    taken = {gate: error_output(program, f"--feature-gates={gate}={value}") for gate in gates}
    assert [gate for gate in sorted(gates) if f"feature is locked to {value}" not in refused[gate]] == []
    assert [gate for gate in sorted(gates) if "cannot set feature gate" in taken[gate]] == []


def test_removed_flags(server: tuple[Path, int]) -> None:
    """The server does not accept these settings."""
    program, minor = server
    flags = removed("removed-flags", minor, "kube-apiserver")
    assert flags
    assert [flag for flag in flags if f"unknown flag: --{flag}" not in error_output(program, f"--{flag}=1")] == []


def test_removed_plugins(server: tuple[Path, int]) -> None:
    """Nor these, of which it takes none by either flag."""
    program, minor = server
    plugins = removed("removed-flags", minor, "admission")
    flags = ("enable-admission-plugins", "disable-admission-plugins")
    asked = {(flag, plugin): error_output(program, f"--{flag}={plugin}") for flag in flags for plugin in plugins}
    assert [key for key, text in asked.items() if f'{key[1]}\\" is unknown' not in text] == []
    assert "is unknown" not in error_output(program, "--enable-admission-plugins=NodeRestriction")


def test_removed_flags_of_etcd(server: tuple[Path, int]) -> None:
    """The etcd that kubeadm starts next to that server does not accept them either."""
    program, minor = server
    flags = removed("removed-flags", minor, "etcd")
    assert flags
    etcd = program.with_name("etcd")
    assert [
        flag for flag in flags if f"flag provided but not defined: -{flag}" not in error_output(etcd, f"--{flag}=1")
    ] == []
