"""Tests the help: examples that can be typed, under the called name, flags by purpose."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest
from tests.cli.commands import Run

from runup.cli.main import root


def walk(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command that help lists."""
    yield words
    if isinstance(command, click.Group):
        ctx = click.Context(command)
        for name in command.list_commands(ctx):
            found = command.get_command(ctx, name)
            assert found is not None
            yield from walk(found, (*words, name))


COMMANDS = sorted(walk(root))
# Shells spell theirs in their own way.
EXAMPLE = re.compile(r"^    (?:\w+ +(?:source <\()?)?((?:kubectl )?runup(?: [^\n]*)?)$", re.MULTILINE)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words) or "runup")
def test_every_command_has_two_examples(words: tuple[str, ...], run: Run) -> None:
    """The hint of an error promises them; they are of commands that there are."""
    ran = run(*words, "-h")
    examples = EXAMPLE.findall(ran.out)
    assert ran.code == 0
    assert len(examples) >= 2, ran.out
    for example in examples:
        named = tuple(re.findall(r"[a-z]+", re.match(r"runup((?: [a-z]+)*)", example)[1]))  # type: ignore[index]
        assert any(named[: len(known)] == known for known in COMMANDS if known), example


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words) or "runup")
def test_help_as_a_word_prints_the_help(words: tuple[str, ...], run: Run) -> None:
    """Both orders are common: `git help commit`, `kubectl help get`, `docker image help`."""
    helped = run(*words, "-h")
    assert run(*words, "help") == helped
    assert run("help", *words) == helped


GROUPS = [words for words in COMMANDS if len(words) == 1 and any(more[:-1] == words for more in COMMANDS)]


@pytest.mark.parametrize("words", [words for words in GROUPS if words != ("upgrade",)], ids=" ".join)
def test_a_group_without_a_command_prints_its_help(words: tuple[str, ...], run: Run) -> None:
    """Only `upgrade` does something without a command: it shows the cluster, as `oc adm upgrade` does."""
    assert run(*words) == run(*words, "-h")


def test_help_about_an_unknown_command_is_an_error(run: Run) -> None:
    """It names what was typed."""
    ran = run("help", "nothing")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith('error: unknown command "help nothing"')


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words) or "runup")
def test_a_plugin_s_help_is_by_its_name(words: tuple[str, ...], run: Run) -> None:
    """A user of `kubectl runup` may not have `runup` on the path."""
    shown = run(*words, "-h", prog="kubectl runup").out
    assert re.findall(r"(?<!kubectl )\brunup [a-z][^\n]*", shown) == []
    assert f"Usage: {' '.join(('kubectl runup', *words))} " in shown


def test_flags_of_upgrade_are_grouped_by_what_they_do(run: Run) -> None:
    """Checks come before updates, dangerous flags are together, and cluster flags come last."""
    shown = run("upgrade", "-h").out
    titles = re.findall(r"^([A-Z][a-z ]+):$", shown, re.MULTILINE)
    assert titles == ["Check first", "Update", "Continue despite", "Show", "Options", "Cluster", "Commands"]
    parts = dict(zip(titles, re.split(r"^[A-Z][a-z ]+:$", shown, flags=re.MULTILINE)[1:], strict=True))
    where = {
        flag: title
        for title, part in parts.items()
        for flag in re.findall(r"^  (?:-\w, )?(--[a-z-]+)", part, re.MULTILINE)
    }
    assert where["--mode"] == where["--clear-preflight"] == "Check first"
    assert where["--to"] == where["--clear"] == "Update"
    assert where["--force"] == where["--allow-not-recommended"] == "Continue despite"
    assert where["--kubeconfig"] == "Cluster"
    flags = {
        flag for param in root.commands.get("upgrade", _upgrade()).params for flag in param.opts if flag[:2] == "--"
    }
    assert flags - {"--help"} <= set(where)


def _upgrade() -> click.Command:
    found = root.get_command(click.Context(root), "upgrade")
    assert found is not None
    return found
