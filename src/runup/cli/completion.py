"""`runup completion SHELL`: the script that completes commands, flags, versions and risk names.

The script asks `runup` itself; what a cluster must answer is asked with a short time limit, and no answer is no
completion rather than an error (`runup.cli.upgrade.names`).
"""

from __future__ import annotations

import click

HOW = {
    "bash": "source <(runup completion bash)",
    "zsh": "source <(runup completion zsh)",
    "fish": "runup completion fish | source",
}
# kubectl and oc look for an executable of this name when `kubectl runup <Tab>` is typed, and call it with what was
# typed so far; it answers one candidate a line (cobra's protocol), ":4" meaning "no file names".
PLUGIN = """\
#!/bin/sh
# Save as kubectl_complete-runup (and oc_complete-runup), executable, in a folder of PATH.
exec runup completion candidates -- "$@"
"""


@click.command("completion", context_settings={"ignore_unknown_options": True})
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish", "kubectl", "candidates"]), metavar="SHELL")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def completion(ctx: click.Context, shell: str, words: tuple[str, ...]) -> None:
    """Print a completion script for bash, zsh or fish, or (kubectl) the one for `kubectl runup`.

    \b
      bash      source <(runup completion bash)
      zsh       source <(runup completion zsh)
      fish      runup completion fish | source
      kubectl   runup completion kubectl > ~/bin/kubectl_complete-runup && chmod +x ~/bin/kubectl_complete-runup
    """
    if shell == "kubectl":
        click.echo(PLUGIN, nl=False)
    elif shell == "candidates":
        click.echo(_candidates(ctx.find_root().command, list(words)), nl=False)
    else:
        click.echo(_script(shell, ctx.find_root().command))


def _script(shell: str, root: click.Command) -> str:
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    # click asks bash for its version here; the script itself does not depend on it.
    return "\n".join(
        found(root, {}, program, f"_{program.upper().replace('-', '_')}_COMPLETE").source()
        for program in ("runup", "kubectl-runup", "oc-runup")
    )


def _candidates(root: click.Command, words: list[str]) -> str:
    from click.shell_completion import ShellComplete

    incomplete = words.pop() if words else ""
    found = ShellComplete(root, {}, "runup", "_RUNUP_COMPLETE").get_completions(words, incomplete)
    lines = [f"{item.value}\t{item.help}" if item.help else str(item.value) for item in found if item.type == "plain"]
    return "\n".join([*lines, ":4"]) + "\n"
