"""`runup completion SHELL`: prints the script that completes commands, flags, versions and risk names.

The script calls `runup` itself. Completion that needs a request to the cluster has a short time limit, and no answer
results in no completion rather than an error (`runup.cli.cluster_completion`).
"""

from __future__ import annotations

import click

from runup.cli.lazy import Command

# kubectl and oc look for an executable of this name when `kubectl runup <Tab>` is typed, and call it with what was
# typed so far; it answers one candidate a line (cobra's protocol), then a directive: ":4" is "no file names", ":16"
# "names of folders", ":0" "names of files".
PLUGIN = """\
#!/bin/sh
# Save as kubectl_complete-runup (and oc_complete-runup), executable, in a folder of PATH.
exec runup completion candidates -- "$@"
"""
# Fixes to click's scripts: bash splits `--to=5` into three words, zsh replaces all of it, fish expects all of it back,
# and a zsh that has never run `compinit` has no `compdef`. Each row: a first line, the text replaced, its replacement.
_CHANGES = {
    "bash": (
        "",
        """    response=$(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD""",
        """    local words=() word
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if [[ ${#words[@]} -gt 0 && ( $word == = && ${words[-1]} == --* || ${words[-1]} == --*= ) ]]; then
            words[-1]+=$word
        else
            words+=("$word")
        fi
    done

    response=$(env COMP_WORDS="${words[*]}" COMP_CWORD=$((${#words[@]} - 1))""",
    ),
    "zsh": (
        "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }\n",
        "    for type key descr in ${response}; do",
        "    [[ ${words[CURRENT]} == --*=* ]] && compset -P '*='\n\n    for type key descr in ${response}; do",
    ),
    "fish": (
        "",
        "            echo $metadata[2];",
        "            set -l flag (string match --regex -- '^--[^=]*=' (commandline -t)); echo \"$flag$metadata[2]\";",
    ),
}


@click.command("completion", cls=Command, context_settings={"ignore_unknown_options": True})
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
        # Click's completion script for `shell`, for all names of the program, with the fixes of `_CHANGES`.
        root = ctx.find_root().command
        from click.shell_completion import get_completion_class

        completion_class = get_completion_class(shell)
        assert completion_class is not None
        # click asks bash for its version here; the script itself does not depend on it.
        scripts = [
            completion_class(root, {}, program, f"_{program.upper().replace('-', '_')}_COMPLETE").source()
            for program in ("runup", "kubectl-runup", "oc-runup")
        ]
        first, old, new = _CHANGES[shell]
        # A new version of click may print other scripts, and the fixes would silently do nothing.
        assert all(old in script for script in scripts), "click's script is another one now"
        click.echo("\n".join([first, *(script.replace(old, new) for script in scripts)]))


def _candidates(root: click.Command, words: list[str]) -> str:
    """Returns the completions of the last word, a line each, and the directive that cobra's scripts end with."""
    from click.shell_completion import ShellComplete

    incomplete = words.pop() if words else ""
    items = ShellComplete(root, {}, "runup", "_RUNUP_COMPLETE").get_completions(words, incomplete)
    lines = [f"{item.value}\t{item.help}" if item.help else str(item.value) for item in items if item.type == "plain"]
    kinds = {item.type for item in items}
    directive = ":16" if "dir" in kinds else ":0" if "file" in kinds else ":4"
    return "\n".join([*lines, directive]) + "\n"
