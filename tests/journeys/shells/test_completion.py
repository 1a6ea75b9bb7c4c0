"""Completion as it is typed: the scripts in real shells at a terminal, Tab and all."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

PROMPT = "ready> "
# What each shell reads when it starts: our completion as its documentation says, and a prompt that can be waited for.
SETTINGS = {
    "bash": f"bind 'set enable-bracketed-paste off'; source <(runup completion bash); PS1='{PROMPT}'",
    "zsh": f"unsetopt zle_bracketed_paste; source <(runup completion zsh); PROMPT='{PROMPT}'; RPROMPT=",
    "fish": f"runup completion fish | source; function fish_prompt; echo -n '{PROMPT}'; end; set fish_greeting",
}
START = {
    "bash": ["--noprofile", "--rcfile", "settings", "-i"],
    "zsh": ["-i"],
    "fish": ["--no-config", "-C", "source settings", "-i"],
}
KUBECONFIG = """\
apiVersion: v1
kind: Config
contexts:
- {name: harbour, context: {cluster: c, user: u}}
- {name: lighthouse, context: {cluster: c, user: u}}
"""


@pytest.fixture(params=sorted(SETTINGS))
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[pexpect.spawn[str]]:
    """A shell with our completion, nobody's settings, in a folder with a dump and a kubeconfig."""
    name = request.param
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    (tmp_path / "must-gather.local").mkdir()
    (tmp_path / "config").write_text(KUBECONFIG)
    env = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "KUBECONFIG": str(tmp_path / "config"),
        "TERM": "xterm" if name == "fish" else "dumb",
        "LC_ALL": "C.UTF-8",
    }
    for file in ("settings", ".zshrc"):
        (tmp_path / file).write_text(SETTINGS[name] + "\n")
    child = pexpect.spawn(
        name, START[name], cwd=str(tmp_path), env=env, encoding="utf-8", timeout=60, dimensions=(40, 200)
    )
    try:
        child.expect_exact(PROMPT)
        yield child
    finally:
        child.close(force=True)


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        pytest.param("runup upg", "upgrade", id="a command"),
        pytest.param("runup upgrade --mode ", "preflight", id="a flag's only word"),
        pytest.param("runup upgrade --mode=pre", "--mode=preflight", id="a word after an equals sign"),
        pytest.param("runup sandbox start --scenario mis", "misbehaving", id="a scenario"),
        pytest.param("runup upgrade --context light", "lighthouse", id="a context of the kubeconfig"),
        pytest.param("runup upgrade status --dump must", "must-gather.local", id="a folder with a dump"),
    ],
)
def test_a_word_is_completed(shell: pexpect.spawn[str], typed: str, completed: str) -> None:
    """One Tab finishes the only candidate: the rest of it appears."""
    shell.send(typed + "\t")
    shell.expect_exact(completed.removeprefix(typed.rpartition(" ")[2]))


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_descriptions_are_whole(shell: pexpect.spawn[str]) -> None:
    """click cuts a command's help at 45 characters."""
    if "bash" in str(shell.command):
        pytest.skip("bash shows no descriptions")
    shell.send("runup sandbox st\t\t")
    shell.expect_exact("Stop the sandbox; its content stays for the next start.")
