"""A shell completes names that the cluster knows, and nothing after an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import Run
from tests.servers import Server

IMAGE = "registry.example/release@sha256:"
RISK = {"name": "SlowDisks", "message": "m", "url": "https://example.com", "matchingRules": [{"type": "Always"}]}
APPLIES = {
    "type": "Applies",
    "status": "True",
    "reason": "R",
    "message": "m",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def release(version: str) -> dict[str, str]:
    """A release of that version."""
    return {"version": version, "image": IMAGE + version.replace(".", "")[0] * 64}


@pytest.fixture
def typed(server: Server, run: Run) -> Any:
    """The candidates for the last word, with what is said about each, and what the shell is to add by itself."""
    conditional = {"release": release("5.2.0"), "risks": [RISK], "riskNames": ["SlowDisks"], "conditions": []}
    both = {**conditional, "release": release("5.0.3")}
    server.set_cluster_version(
        status={
            "desired": release("5.0.0"),
            "availableUpdates": [release("5.0.3"), release("5.0.10")],
            "conditionalUpdates": [conditional, both],
            "conditionalUpdateRisks": [
                {**RISK, "conditions": [APPLIES]},
                {**RISK, "name": "OldFirmware", "conditions": [APPLIES]},
            ],
        }
    )

    def offered(*words: str | Path, kubeconfig: str | Path | None = None) -> list[str]:
        *before, last = words
        flags = ("--kubeconfig", kubeconfig or server.kubeconfig)
        ran = run("completion", "candidates", "--", *before[:1], *flags, *before[1:], last)
        assert (ran.code, ran.err) == (0, "")
        found: list[str] = ran.out.splitlines()
        return found

    return offered


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        pytest.param(
            ("upgrade", "--to", ""),
            ["5.2.0\twith known risks", "5.0.10\trecommended", "5.0.3\trecommended"],
            id="versions, the newest first, and what speaks against them",
        ),
        pytest.param(
            ("upgrade", "--to", "5.0."), ["5.0.10\trecommended", "5.0.3\trecommended"], id="those that begin so"
        ),
        pytest.param(("upgrade", "accept", ""), ["OldFirmware", "SlowDisks"], id="risks"),
        pytest.param(("upgrade", "accept", "Sl"), ["SlowDisks"], id="a risk that begins so"),
        pytest.param(("upgrade", "accept", "OldFirmware,S"), ["OldFirmware,SlowDisks"], id="another after a comma"),
        pytest.param(("upgrade", "status", "--details", "n"), ["none", "nodes"], id="words of a flag"),
    ],
)
def test_what_is_offered(typed: Any, words: tuple[str, ...], offered: list[str]) -> None:
    """Of the cluster that the flags of that line name; the last line is for the shell."""
    assert typed(*words)[:-1] == offered


@pytest.mark.parametrize(
    ("words", "directive"),
    [
        pytest.param(("upgrade", "--to", ""), ":4", id="no file names among versions"),
        pytest.param(("upgrade", "status", "--dump", ""), ":16", id="folders where a dump is asked for"),
        pytest.param(("upgrade", "preflight", "--kubeconfig", ""), ":0", id="files where a file is"),
    ],
)
def test_what_the_shell_adds_by_itself(typed: Any, words: tuple[str, ...], directive: str) -> None:
    """As cobra's protocol has it."""
    assert typed(*words)[-1] == directive


def test_a_kubeconfig_that_is_none_offers_nothing_and_says_nothing(typed: Any, tmp_path: Path) -> None:
    """An error in the line that one types would be worse."""
    (tmp_path / "config").write_text("{")
    for words in (("upgrade", "--to", ""), ("upgrade", "accept", ""), ("upgrade", "--context", "")):
        assert typed(*words, kubeconfig=tmp_path / "config") == [":4"]


def test_contexts_are_those_of_the_kubeconfig_that_was_named(typed: Any, tmp_path: Path) -> None:
    """Not of the one that is taken where none is."""
    contexts = "".join(f"- {{name: {name}, context: {{cluster: c, user: u}}}}\n" for name in ("light", "harbour"))
    (tmp_path / "config").write_text(f"apiVersion: v1\nkind: Config\ncontexts:\n{contexts}")
    assert typed("upgrade", "--context", "", kubeconfig=tmp_path / "config") == ["harbour", "light", ":4"]


def test_scenarios_are_those_that_ship(run: Run) -> None:
    """For which no cluster is asked."""
    ran = run("completion", "candidates", "--", "sandbox", "start", "--scenario", "cle")
    assert ran.out.splitlines() == ["clean", ":4"]
