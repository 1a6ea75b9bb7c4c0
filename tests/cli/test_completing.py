"""What completes a command line, for kubectl's way of asking, and the scripts for shells."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from tests.cli.commands import Run

from runup.cli import static_completion
from runup.cli.completion import PLUGIN


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        pytest.param(("ver",), ["version\tPrint the version.", ":4"], id="a command, with what it does"),
        pytest.param(("nothing",), [":4"], id="no command"),
        pytest.param(("version", "--ser"), ["--server\tAsk the cluster for its versions too.", ":4"], id="a flag"),
        pytest.param(("version", "-o", "j"), ["json", ":4"], id="a word of a flag"),
        pytest.param(("version", "--kubeconfig", "x"), [":0"], id="a file"),
        pytest.param(("sandbox", "start", "--data", "x"), [":16"], id="a folder"),
        pytest.param(("sandbox", "start", "--scenario", "skip"), ["skip-level", ":4"], id="a scenario"),
        pytest.param(
            ("sandbox", "sto"), ["stop\tStop the sandbox; its content stays for the next start.", ":4"], id="a group's"
        ),
    ],
)
def test_candidates(words: tuple[str, ...], lines: list[str], run: Run) -> None:
    """One a line, then whether the shell may add files (0), folders (16) or nothing (4)."""
    ran = run("completion", "candidates", "--", *words)
    assert (ran.code, ran.out.splitlines(), ran.err) == (0, lines, "")


def test_every_command_is_a_candidate(run: Run) -> None:
    """Where nothing was typed yet."""
    from runup.cli.main import SUMMARIES

    listed = [f"{name}\t{summary}" for name, summary in SUMMARIES.items()]
    assert run("completion", "candidates").out.splitlines() == [*listed, ":4"]


def test_contexts_are_those_of_the_kubeconfig_that_was_named(run: Run, tmp_path: Path) -> None:
    """Completes at any position; without a cluster it offers nothing, and no error."""
    config = tmp_path / "config"
    config.write_text('{"contexts": [{"name": "here"}, {"name": "there"}, {"name": "home"}]}')
    words = ("completion", "candidates", "--", "--kubeconfig", config, "--context", "h")
    assert run(*words).out.splitlines() == ["here", "home", ":4"]
    gone = ("completion", "candidates", "--", "--kubeconfig", tmp_path / "gone", "--context", "")
    assert run(*gone).out.splitlines() == [":4"]


def test_a_completer_that_fails_offers_nothing() -> None:
    """An error in a line that is being typed helps nobody."""

    def broken(_: click.Context) -> list[str]:
        raise KeyError("x")

    ctx, param = click.Context(click.Command("x")), click.Option(["--x"])
    assert static_completion.complete_from(broken)(ctx, param, "") == []
    offered = static_completion.complete_from(lambda _: ["ab", "ac", "b"])(ctx, param, "a")
    assert [(each.value, each.type, each.help) for each in offered] == [("ab", "plain", None), ("ac", "plain", None)]
    assert [(each.value, each.type) for each in static_completion.folders(ctx, param, "x")] == [("x", "dir")]
    assert [(each.value, each.type) for each in static_completion.files(ctx, param, "x")] == [("x", "file")]
    assert static_completion.item("x", help="y").help == "y"


CHANGED = {
    "bash": (
        "\n",
        "local words=() word",
        "words[-1]+=$word",
        'COMP_WORDS="${words[*]}"',
        'COMP_WORDS="${COMP_WORDS[*]}"',
    ),
    "zsh": ("(( $+functions[compdef] )) ||", "compset -P '*='", "autoload -Uz compinit", "for type key descr", ""),
    "fish": (
        "\n",
        "set -l flag (string match --regex",
        'echo "$flag$metadata[2]"',
        "commandline -t",
        "echo $metadata[2];",
    ),
}


@pytest.mark.parametrize("shell", CHANGED)
def test_scripts_have_what_clicks_lack(shell: str, run: Run) -> None:
    """Once for each of the three programs, and the old line is gone."""
    script = run("completion", shell).out
    first, *added, gone = CHANGED[shell]
    assert script.startswith(first)
    for words in added:
        assert script.count(words) in (3, 6) or words == "autoload -Uz compinit"
    assert not gone or gone not in script
    for program in ("_RUNUP_COMPLETE", "_KUBECTL_RUNUP_COMPLETE", "_OC_RUNUP_COMPLETE"):
        assert f"{program}={shell}_complete" in script


def test_the_plugins_own_completion(run: Run) -> None:
    """It asks as kubectl does."""
    assert run("completion", "kubectl").out == PLUGIN
    assert PLUGIN.endswith('exec runup completion candidates -- "$@"\n')
    ran = run("completion", "tcsh")
    assert (ran.code, ran.out) == (1, "")
