"""Groups, commands and options of this project: made here, listed out of a table, and helped in sections."""

from __future__ import annotations

from typing import Any

import click
import pytest
from click.testing import CliRunner

from runup.cli import static_completion
from runup.cli.connection import connection_of, connection_options
from runup.cli.errors import UsageProblem
from runup.cli.lazy import Command, Group, LazyGroup
from runup.cli.operator.command_process import add_serving_options, leadership
from runup.cli.options import HelpOption, Option, option, with_options
from runup.process.connection import Connection


def group(**more: Any) -> LazyGroup:
    """A group over two commands that are elsewhere, and one that is its own."""
    places = {"version": "runup.cli.version_command:version", "adm": "runup.cli.adm:adm"}
    made = LazyGroup("top", places=places, summaries={"version": "Say which."}, help="A group.", **more)

    @made.command("own")
    def own() -> None:
        """Do it. And more."""

    return made


def helped(command: click.Command, *words: str, name: str = "top") -> str:
    """What `-h` says, without a width that anybody set."""
    settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "terminal_width": 100}
    done = CliRunner().invoke(command, [*words, "-h"], prog_name=name, **settings)
    assert done.exit_code == 0
    return done.output


def test_a_group_lists_its_table_and_its_own() -> None:
    """In their order; summaries of the table are read without any import, its own commands say theirs."""
    made = group()
    ctx = made.context_class(made, info_name="top")
    assert made.list_commands(ctx) == ["version", "adm", "own"]
    assert [made.summary(ctx, name) for name in made.list_commands(ctx)] == ["Say which.", None, "Do it."]
    version = made.get_command(ctx, "version")
    assert version is not None
    assert version.name == "version"
    own = made.get_command(ctx, "own")
    assert isinstance(own, Command)
    assert made.get_command(ctx, "nothing") is None
    assert "Commands:\n  version  Say which.\n  adm\n  own      Do it.\n" in helped(made)
    assert LazyGroup("bare").list_commands(ctx) == []


def test_a_plain_group_says_what_its_commands_do() -> None:
    """In their whole first sentence."""
    long = "word " * 30
    one = Command("one", help=f"{long.strip()}. And more.")
    made = Group("plain", commands=[one])
    ctx = made.context_class(made)
    assert made.summary(ctx, "one") == f"{long.strip()}."
    assert made.summary(ctx, "two") is None
    assert [(each.value, each.help) for each in made.shell_complete(ctx, "o")] == [("one", f"{long.strip()}.")]
    assert made.shell_complete(ctx, "x") == []
    assert [each.value for each in made.shell_complete(ctx, "--")] == ["--help"]
    assert "Commands:\n  one " in helped(Group("plain", commands=[one]))


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["versoin", "x"], 'unknown command "versoin x"; did you mean "version"?'),
        (["VERSION"], 'unknown command "VERSION"; did you mean "version"?'),
        (["vers"], 'unknown command "vers"; did you mean "version"?'),
        (["ver"], 'unknown command "ver"'),
        (["xyz"], 'unknown command "xyz"'),
    ],
)
def test_an_unknown_command(typed: list[str], said: str) -> None:
    """All that was typed is reported, and what is nearly seven tenths of it: 8 of 11 letters are, 6 of 10 are not."""
    made = group()
    with pytest.raises(UsageProblem) as caught:
        made.resolve_command(made.context_class(made, info_name="top"), typed)
    assert caught.value.message == said


def test_a_known_command_is_taken_as_it_is() -> None:
    """With what follows it; while a line is completed nothing is an error."""
    made = group()
    name, command, rest = made.resolve_command(made.context_class(made, info_name="top"), ["own", "x"])
    assert (name, command, rest) == ("own", made.commands["own"], ["x"])
    completing = made.context_class(made, info_name="top", resilient_parsing=True)
    assert made.resolve_command(completing, ["nothing"])[1] is None


ROWS = (
    option("--alpha", help="First (runup does it)."),
    option("--beta", help="Second."),
    option("--gamma", hidden=True, help="Never."),
)


def sectioned(kind: type[Command | Group]) -> Any:
    """A command with a section for `--beta`, and which cluster is meant."""

    @click.command("top", cls=kind, sections=(("Dangerous", ("beta",)), ("Empty", ("delta",))))
    @with_options(ROWS)
    @connection_options
    @click.argument("word", required=False)
    def made(**_: Any) -> None:
        """Do it.

        \b
          runup adm
        """

    return made


@pytest.mark.parametrize("kind", [Command, Group])
def test_help_in_sections(kind: type[Command | Group]) -> None:
    """Ungrouped options are under Options, the cluster's come last, hidden ones nowhere, and no section is empty."""
    shown = helped(sectioned(kind), name="runup")
    titles = [line.rstrip(":") for line in shown.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert titles == ["Dangerous", "Options", "Cluster"]
    parts = shown.partition("Dangerous:")[2]
    dangerous, _, rest = parts.partition("Options:")
    usual, _, where = rest.partition("Cluster:")
    assert dangerous.split() == ["--beta", "TEXT", "Second."]
    assert usual.split()[:6] == ["--alpha", "TEXT", "First", "(runup", "does", "it)."]
    assert "Show this message and exit." in usual
    flags = [word for word in where.split() if word.startswith("--")]
    assert flags == ["--kubeconfig", "--context", "--as", "--as-group"]
    assert "--gamma" not in shown


def test_examples_are_by_the_name_that_was_called() -> None:
    """Where `runup` begins one; not within another word."""
    assert "    kubectl runup adm\n" in helped(sectioned(Command), name="kubectl runup")
    assert "(kubectl runup does it)" in helped(sectioned(Command), name="kubectl runup")
    assert "  runup adm\n" in helped(sectioned(Command), name="runup")


def test_help_is_one_option_by_all_its_names() -> None:
    """The same each time it is asked for; none where a command has no name for it."""
    made = sectioned(Command)
    ctx = made.context_class(made, info_name="top", help_option_names=["-h", "--help"])
    assert isinstance(made.get_help_option(ctx), HelpOption)
    assert made.get_help_option(ctx) is made.get_help_option(ctx)
    assert made.get_help_option(ctx).opts == ["-h", "--help"]
    bare = Command("bare")
    assert bare.get_help_option(bare.context_class(bare, help_option_names=[])) is None


def test_help_ends_the_command_and_is_left_alone_while_a_line_is_completed() -> None:
    """It prints it once."""
    made = sectioned(Command)
    assert helped(made).count("Usage: top") == 1
    ctx = made.make_context("top", ["-h"], resilient_parsing=True, help_option_names=["-h"])
    assert ctx.params["alpha"] is None


def test_options_in_the_order_of_their_table() -> None:
    """Their help is taken as it is written."""
    params = sectioned(Command).params
    assert [param.name for param in params][:3] == ["alpha", "beta", "gamma"]
    assert isinstance(params[0], Option)
    assert params[0].help == "First (runup does it)."
    assert Option(["--x"]).help is None


@pytest.mark.parametrize("place", ["before", "after"])
def test_the_cluster_may_be_named_before_or_after_the_command(place: str) -> None:
    """One name in both places is one, an empty name names nothing; groups add up."""
    seen: list[Connection] = []

    @click.group(cls=Group)
    @connection_options
    def top() -> None:
        pass

    @top.command("do")
    @connection_options
    @click.pass_context
    def do(ctx: click.Context) -> None:
        seen.append(connection_of(ctx))

    words = ["--kubeconfig=k", "--context=c", "--as=me", "--as-group=a", "--as-group=b"]
    typed = [*words, "do"] if place == "before" else ["do", *words]
    assert CliRunner().invoke(top, typed).exit_code == 0
    (shown,) = seen
    assert (shown.kubeconfig, shown.context, shown.as_user, shown.as_group) == ("k", "c", "me", ("a", "b"))
    seen.clear()
    CliRunner().invoke(top, ["--kubeconfig=k", "--context=c", "do", "--kubeconfig=k", "--context="])
    assert (seen[0].kubeconfig, seen[0].context, seen[0].as_user, seen[0].as_group) == ("k", "c", None, ())


def test_what_every_process_of_the_operator_takes() -> None:
    """In the order of the table; what is left out is the default that was given."""
    bare: Any = click.command("process")(add_serving_options("127.0.0.1:1")(leadership(lambda **flags: flags)))
    assert [param.name for param in bare.params] == [
        "listen",
        "health_listen",
        "serving_cert_file",
        "serving_key_file",
        "tls_min_version",
        "tls_cipher_suites",
        "metrics_auth",
        "leader_elect",
        "lease",
    ]
    assert bare.make_context("process", []).params == {
        "listen": "127.0.0.1:1",
        "health_listen": "",
        "serving_cert_file": "",
        "serving_key_file": "",
        "tls_min_version": "",
        "tls_cipher_suites": "",
        "metrics_auth": "token",
        "leader_elect": True,
        "lease": None,
    }
    shown = " ".join(bare.get_help(click.Context(bare, info_name="process", terminal_width=200)).split())
    for default in ("127.0.0.1:1", "token", "leader-elect"):
        assert f"[default: {default}]" in shown
    words = [
        "--listen=l",
        "--health-listen=h",
        "--serving-cert-file=c",
        "--serving-key-file=k",
        "--tls-min-version=v",
        "--lease=1,2,3",
    ]
    given = bare.make_context("process", [*words, "--tls-cipher-suites=s", "--metrics-auth=none", "--no-leader-elect"])
    assert set(given.params.values()) == {"l", "h", "c", "k", "v", "s", "none", False, "1,2,3"}
    assert given.params["leader_elect"] is False
    with pytest.raises(click.BadParameter):
        bare.make_context("process", ["--metrics-auth=x"])


def test_a_completer_is_asked_when_somebody_completes() -> None:
    """Not when it is made."""
    asked: list[str] = []

    def names(_: click.Context) -> list[str]:
        asked.append("asked")
        return ["a"]

    completer = static_completion.complete_from(names)
    assert asked == []
    ctx = click.Context(click.Command("x"))
    assert [each.value for each in completer(ctx, click.Option(["--x"]), "")] == ["a"]
