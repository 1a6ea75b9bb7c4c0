"""Foreseeable errors: one text on stderr, nothing on stdout, exit code 1, never a traceback."""

from __future__ import annotations

import socket
from pathlib import Path

import click
import pytest
from tests.cli.commands import Run, Server

from kubekit.api.codec import DecodeError
from kubekit.api.meta_v1 import Status, StatusCause, StatusDetails
from kubekit.kube.api_errors import KubeError, Unreachable, error_of_status, message_of
from kubekit.kube.request import Request
from runup.cli.errors import CommandError, Failure, describe, with_prefix

MISSING = """\
error: Missing or incomplete configuration info.  Please point to an existing, complete config file:


  1. Via the command-line flag --kubeconfig
  2. Via the KUBECONFIG environment variable
  3. In your home directory as ~/.kube/config

To view or change it, use `kubectl config`.
"""

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: me}}]
clusters: [{name: here, cluster: {server: "http://127.0.0.1:PORT"}}]
users: [{name: me, user: {}}]
"""


def _status(code: int, reason: str, message: str, details: StatusDetails | None = None) -> Exception:
    status = Status(status="Failure", code=code, reason=reason, message=message, details=details)
    return error_of_status(status, Request(method="GET", path="/"))


_ONE = StatusDetails(name="version", kind="ClusterVersion", causes=(StatusCause(field="spec.x", message="is bad"),))
_TWO = StatusDetails(
    name="version",
    kind="ClusterVersion",
    causes=(StatusCause(field="spec.x", message="is bad"), StatusCause(message="so is y")),
)

_TWICE = StatusDetails(name="version", kind="ClusterVersion", causes=_ONE.causes * 2)

ERRORS: dict[str, tuple[Exception, str]] = {
    "a command's own error gets the prefix": (CommandError("no"), "error: no\n"),
    "a newline at the end stays the only one": (CommandError("no\n"), "error: no\n"),
    "the prefix is not doubled": (CommandError("error: no"), "error: no\n"),
    "an API error names its reason": (
        _status(404, "NotFound", "clusteroperators not found"),
        "Error from server (NotFound): clusteroperators not found\n",
    ),
    "unauthorized": (
        _status(401, "Unauthorized", "Unauthorized"),
        "error: You must be logged in to the server (Unauthorized)\n",
    ),
    "invalid with one cause": (
        _status(422, "Invalid", "long text", _ONE),
        'The ClusterVersion "version" is invalid: spec.x: is bad\n',
    ),
    "invalid with two causes": (
        _status(422, "Invalid", "long text", _TWO),
        'The ClusterVersion "version" is invalid: \n* spec.x: is bad\n* so is y\n',
    ),
    "invalid without details": (_status(422, "Invalid", "long text"), "The request is invalid: long text\n"),
    "invalid with the same cause twice": (
        _status(422, "Invalid", "long text", _TWICE),
        'The ClusterVersion "version" is invalid: spec.x: is bad\n',
    ),
    "invalid without causes": (
        _status(422, "Invalid", "long text", StatusDetails(name="version", kind="ClusterVersion")),
        'The ClusterVersion "version" is invalid\n',
    ),
    "invalid with a name alone": (
        _status(422, "Invalid", "long text", StatusDetails(name="version")),
        'The  "version" is invalid\n',
    ),
    "invalid with a kind alone": (
        _status(422, "Invalid", "long text", StatusDetails(kind="ClusterVersion")),
        'The ClusterVersion "" is invalid\n',
    ),
    "invalid with nameless details": (
        _status(422, "Invalid", "long text", StatusDetails(causes=(StatusCause(message="so is y"),))),
        "The request is invalid: so is y\n",
    ),
    "an error of the layer itself": (KubeError("no way", reason="R"), "error: no way\n"),
    "an answer that is none": (DecodeError("no JSON"), "error: the server's answer could not be read: no JSON\n"),
    "a disk without a name": (OSError(28, "No space left on device"), "error: No space left on device\n"),
    "an error of click's without a context": (click.UsageError("no"), "error: no\n"),
    "a flag that is nearly two": (
        click.NoSuchOption("--to", possibilities=["--too", "--tow"]),
        "error: unknown flag: --to (did you mean --too or --tow?)\n",
    ),
    "a flag that is like none": (click.NoSuchOption("--x"), "error: unknown flag: --x\n"),
    "a flag without its value": (
        click.BadOptionUsage("--to", "Option '--to' requires an argument."),
        "error: flag needs an argument: --to\n",
    ),
    "a flag that is used badly otherwise": (click.BadOptionUsage("--to", "Too much."), "error: Too much.\n"),
    "refused": (
        Unreachable("https://a:1", "a:1", "refused", refused=True),
        "The connection to the server a:1 was refused - did you specify the right host or port?\n",
    ),
    "unreachable otherwise": (
        Unreachable("https://a:1", "a:1", "no such host"),
        "Unable to connect to the server: no such host\n",
    ),
    "a full disk": (OSError(28, "No space left on device", "/x/y"), "error: /x/y: No space left on device\n"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_error_texts(name: str) -> None:
    """Each error has kubectl's words."""
    error, text = ERRORS[name]
    assert describe(error) == Failure(text, 1)


def test_a_bug_is_not_dressed_up() -> None:
    """What nobody foresaw keeps its traceback."""
    assert describe(KeyError("x")) is None
    assert describe(OSError("without a number")) is None
    assert describe(CommandError("no", 7)) == Failure("error: no\n", 7)
    assert with_prefix("x") == "error: x\n"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (CommandError("no"), "no"),
        (KeyError("x"), "'x'"),
        (
            CommandError(' "" is invalid: patch: {} "": strict decoding error: unknown field'),
            "strict decoding error: unknown field",
        ),
        (
            CommandError('x "" is invalid: "": strict decoding error: y'),
            'x "" is invalid: "": strict decoding error: y',
        ),
        (CommandError(' "" is invalid: z'), ' "" is invalid: z'),
    ],
    ids=["a message", "none", "a refused patch", "not at its beginning", "another fault"],
)
def test_the_bare_message_of_an_error(error: Exception, message: str) -> None:
    """Of a refused patch the fault alone, without the object that precedes it."""
    assert message_of(error) == message


USAGE: dict[str, tuple[list[str], str]] = {
    "an unknown command with what followed it": (
        ["frobnicate", "x"],
        "error: unknown command \"frobnicate x\"\nSee 'runup -h' for help and examples\n",
    ),
    "an unknown command of upgrade": (
        ["upgrade", "frobnicate"],
        "error: unknown command \"frobnicate\"\nSee 'runup upgrade -h' for help and examples\n",
    ),
    "under adm the full name is shown": (
        ["adm", "upgrade", "x", "y"],
        "error: unknown command \"x y\"\nSee 'runup adm upgrade -h' for help and examples\n",
    ),
    "a typo of a command": (
        ["sandboks", "start"],
        'error: unknown command "sandboks start"; did you mean "sandbox"?\nSee \'runup -h\' for help and examples\n',
    ),
    "a typo of a sub-command": (
        ["upgrade", "acept", "A"],
        'error: unknown command "acept A"; did you mean "accept"?\nSee \'runup upgrade -h\' for help and examples\n',
    ),
    "a typo of another group's": (
        ["preflight", "explian"],
        'error: unknown command "explian"; did you mean "explain"?\nSee \'runup preflight -h\' for help and examples\n',
    ),
    "nothing like a command of another group": (
        ["release", "x", "y"],
        "error: unknown command \"x y\"\nSee 'runup release -h' for help and examples\n",
    ),
    "an unknown flag with the nearest": (
        ["upgrade", "--too", "5.1.0"],
        "error: unknown flag: --too (did you mean --to?)\nSee 'runup upgrade -h' for help and examples\n",
    ),
    "a flag of upgrade before a subcommand": (
        ["upgrade", "--to=5.1.0", "accept", "A"],
        "error: --to cannot be used with `accept`\n",
    ),
    "an unknown mode": (
        ["upgrade", "--mode=Frobnicate", "--to=5.1.0"],
        'error: --mode must be "preflight", not "Frobnicate"; leave it out to start the update itself\n',
    ),
    "a preflight of nothing": (
        ["upgrade", "--preflight"],
        "error: --mode=preflight needs the release to check: --to VERSION or --to-image IMAGE@DIGEST\n",
    ),
    "a preflight of the latest": (
        ["upgrade", "--preflight", "--to-latest"],
        "error: --mode=preflight checks one release: name it with --to or --to-image\n",
    ),
    "waiting for an update": (
        ["upgrade", "--to=5.1.0", "--wait"],
        "error: --wait needs --mode=preflight: an update is followed with `runup upgrade status --watch`\n",
    ),
    "a timeout that is none": (
        ["upgrade", "--preflight", "--to=5.1.0", "--wait", "--timeout=soon"],
        'error: --timeout must be a duration such as 90s, 15m or 1h30m, not "soon"\n',
    ),
    "clearing and asking at once": (
        ["upgrade", "--clear-preflight", "--to=5.1.0"],
        "error: --clear-preflight may not be specified with any other flags\n",
    ),
    "clearing and checking at once": (
        ["upgrade", "--preflight", "--clear"],
        "error: --clear may not be specified with any other flags\n",
    ),
}


@pytest.mark.parametrize("name", USAGE)
def test_usage_errors_come_before_any_connection(name: str, run: Run) -> None:
    """A wrong command line is refused without a kubeconfig, with one text and exit code 1."""
    words, text = USAGE[name]
    ran = run(*words)
    assert (ran.code, ran.out, ran.err) == (1, "", text)


def test_a_plugin_is_called_by_its_name(run: Run) -> None:
    """`kubectl runup upgrade x` shows where its own help is."""
    ran = run("upgrade", "x", prog="kubectl runup")
    assert ran.err.endswith("See 'kubectl runup upgrade -h' for help and examples\n")


def test_without_a_kubeconfig(run: Run) -> None:
    """Nothing to connect to is oc's text about where a config is looked for."""
    ran = run("upgrade")
    assert (ran.code, ran.out, ran.err) == (1, "", MISSING)


def test_a_kubeconfig_that_is_not_there(run: Run, tmp_path: Path) -> None:
    """The path is named."""
    ran = run("upgrade", "--kubeconfig", tmp_path / "gone")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: ") and "gone" in ran.err


def test_a_kubeconfig_that_is_no_yaml(run: Run, tmp_path: Path) -> None:
    """The file is named."""
    path = tmp_path / "config"
    path.write_text("{[")
    ran = run("--kubeconfig", path, "upgrade")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: ") and str(path) in ran.err


def test_a_context_that_is_not_there(run: Run, tmp_path: Path) -> None:
    """The context is named."""
    path = tmp_path / "config"
    path.write_text(KUBECONFIG.replace("PORT", "1"))
    ran = run("upgrade", "--kubeconfig", path, "--context", "elsewhere")
    assert (ran.code, ran.out, ran.err) == (1, "", 'error: context "elsewhere" does not exist\n')


def test_a_server_that_refuses(run: Run, tmp_path: Path) -> None:
    """Nobody listens: kubectl's question about host and port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        path = tmp_path / "config"
        path.write_text(KUBECONFIG.replace("PORT", str(port)))
        ran = run("upgrade", "--kubeconfig", path)
    refused = f"The connection to the server 127.0.0.1:{port} was refused - did you specify the right host or port?\n"
    assert (ran.code, ran.out, ran.err) == (1, "", refused)


NO_VERSION4 = "cluster version information available - you must be connected to an OpenShift version 4 server to fetch"
NO_SERVER = "cluster version information available - you must be connected to an OpenShift server to fetch"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        pytest.param(["upgrade"], f"error: No {NO_VERSION4} the current version\n", id="upgrade"),
        pytest.param(["upgrade", "--to=5.1.0"], f"error: No {NO_VERSION4} the current version\n", id="upgrade --to"),
        pytest.param(["upgrade", "accept", "A"], f"error: no {NO_SERVER} the current version\n", id="accept"),
    ],
)
def test_a_cluster_without_cluster_version(words: list[str], text: str, run: Run, server: Server) -> None:
    """Each command has oc's text for a cluster that has no ClusterVersion."""
    server.remove_cluster_version()
    ran = run(*words, "--kubeconfig", server.kubeconfig)
    assert (ran.code, ran.out, ran.err) == (1, "", text)


def test_acting_as_somebody_who_may_not(run: Run, server: Server) -> None:
    """Impersonation reaches the server, whose refusal is printed as kubectl prints it."""
    server.set_cluster_version()
    ran = run("--as=nobody", "upgrade", "--kubeconfig", server.kubeconfig)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(
        'Error from server (Forbidden): clusterversions.config.openshift.io "version" is forbidden: User "nobody"'
    )


def test_every_group_counts(run: Run, server: Server) -> None:
    """Not the last alone."""
    server.set_cluster_version()
    groups = ("--as-group=system:masters", "--as-group=visitors")
    assert run("--as=nobody", *groups, "upgrade", "--kubeconfig", server.kubeconfig).code == 0


def test_a_group_without_a_user(run: Run, server: Server) -> None:
    """Groups alone impersonate nobody."""
    ran = run("upgrade", "--as-group=system:masters", "--kubeconfig", server.kubeconfig)
    assert (ran.code, ran.err) == (1, "error: --as-group needs --as: groups are added to a user\n")
