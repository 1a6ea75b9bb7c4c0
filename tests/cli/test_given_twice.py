"""A command about one cluster that is given two: refused by name, wherever they stand, before anything is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.commands import Run

TWICE: dict[str, tuple[tuple[str, ...], str]] = {
    "two contexts": (
        ("upgrade", "--context", "a", "--context", "b"),
        "--context is given twice, a and b: give one of them; of several clusters: runup fleet, with --contexts",
    ),
    "one before the command and one after it": (
        ("--context", "a", "upgrade", "recommend", "--context", "b"),
        "--context is given twice, a and b: give one of them; of several clusters: runup fleet, with --contexts",
    ),
    "two kubeconfigs": (
        ("preflight", "run", "--kubeconfig", "x", "--kubeconfig", "y"),
        "--kubeconfig is given twice, x and y: give one of them",
    ),
    "two users": (("check", "--as", "me", "--as", "you"), "--as is given twice, me and you: give one of them"),
}


@pytest.mark.parametrize(("words", "said"), TWICE.values(), ids=list(TWICE))
def test_what_is_given_twice_is_refused(words: tuple[str, ...], said: str, run: Run) -> None:
    """Two clusters on the command line are an error; the last one does not win."""
    assert (run(*words).code, run(*words).err) == (1, f"error: {said}\n")


def test_the_same_context_twice_is_one(run: Run, tmp_path: Path) -> None:
    """As an alias of a shell may have it before the command, and its user after it."""
    (tmp_path / "config").write_text('{"contexts": []}')
    shown = run("--context", "a", "--kubeconfig", tmp_path / "config", "upgrade", "--context", "a").err
    assert shown == 'error: context "a" does not exist\n'
