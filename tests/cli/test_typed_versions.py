"""Versions as users type them: `v5.1.0` is 5.1.0 everywhere, and `5.1` is refused before anything is requested."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest
from tests.cli.commands import Run

from runup.cli.main import root

# Versions that are written into a new release or check, and those of the sandbox and of kernels: taken as they are.
NOT_OF_AN_UPDATE = {"release new", "checks test", "checks preview", "kmod check"}


def _versions(command: click.Command, words: str = "") -> Iterator[tuple[str, click.Parameter]]:
    """Yields each parameter that is the version of an update, with the words of its command."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _versions(found, f"{words} {name}".strip())
    for param in command.params:
        of_option = param.metavar == "VERSION" and {"--to", "--from", "--version"} & set(param.opts)
        of_argument = param.name == "version" and isinstance(param, click.Argument)
        if (of_option or of_argument) and words not in NOT_OF_AN_UPDATE:
            yield words, param


FOUND = list(_versions(root))


def test_the_versions_are_found() -> None:
    """The commands that the rows below are about."""
    commands = {words for words, _ in FOUND}
    assert {"upgrade", "upgrade recommend", "preflight run", "preflight schedule", "fleet preflight"} <= commands
    assert {"preflight show", "fleet recommend", "fleet addon", "rehearse", "serve", "graph show"} <= commands


@pytest.mark.parametrize(("words", "param"), FOUND, ids=[f"{words} {param.opts[0]}" for words, param in FOUND])
@pytest.mark.parametrize(
    ("typed", "version"),
    [
        ("v5.1.0", "5.1.0"),
        ("V5.1.0-rc.1", "5.1.0-rc.1"),
        (" 5.1.0 ", "5.1.0"),
        ("v1.36", "1.36"),
        ("1.36", "1.36"),
        ("5.1.0", "5.1.0"),
        ("", ""),
    ],
)
def test_a_version_is_taken_without_a_v(words: str, param: click.Parameter, typed: str, version: str) -> None:
    """Every command that takes the version of an update understands it in the same forms."""
    context = click.Context(click.Command(words))
    assert param.callback is not None
    assert param.callback(context, param, typed) == version


@pytest.mark.parametrize(
    ("words", "text"),
    [
        pytest.param(("upgrade", "--to"), "--to must be a semantic version", id="an update, in oc's words"),
        pytest.param(("upgrade", "--mode=preflight", "--to"), "--to must be a semantic version", id="a preflight"),
        pytest.param(("fleet", "recommend", "--dumps=.", "--version"), "cannot parse SemVer target", id="of a fleet"),
        pytest.param(("preflight", "run", "--to"), "--to: '5.1' is not a semantic version", id="preflight run"),
        pytest.param(
            ("preflight", "run", "--in-cluster", "--to"), "--to: '5.1' is not a semantic version", id="as a Job"
        ),
        pytest.param(
            ("preflight", "schedule", "--every=24h", "--to"), "--to: '5.1' is not a semantic version", id="a schedule"
        ),
        pytest.param(
            ("fleet", "preflight", "--dumps=.", "--to"), "--to: '5.1' is not a semantic version", id="of a fleet's"
        ),
        pytest.param(("rehearse", "--to"), "--to: '5.1' is not a semantic version", id="rehearse"),
        pytest.param(("serve", "--dumps=.", "--to"), "--to: '5.1' is not a semantic version", id="the console"),
        pytest.param(
            ("graph", "show", "g.json", "--channel=a", "--from=5.0.0", "--to"), "--to: '5.1' is not", id="a graph"
        ),
    ],
)
def test_a_minor_version_is_refused_at_once(words: tuple[str, ...], text: str, run: Run) -> None:
    """Prints one sentence, and queries no cluster."""
    ran = run(*words, "5.1")
    assert (ran.code, ran.err.startswith(f"error: {text}"), ran.err.count("\n")) == (1, True, 1), ran.err
