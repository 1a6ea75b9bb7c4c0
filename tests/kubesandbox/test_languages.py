"""Runs the examples of docs/how-to/kubesandbox-languages.md, and the action, with `python -m kubesandbox`."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

LONGEST_S = 240
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "kubesandbox-languages.md"
# The first line of a block names the file that it is.
FILES = dict(re.findall(r"^```\w+\n(?://|#) (\S+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))
COMMAND = (sys.executable, "-m", "kubesandbox")
NODE_MAIN = """
import { readFileSync, existsSync } from "node:fs";
import { request } from "node:https";
import { start } from "./server.mjs";

const server = await start(process.argv.slice(2), []);
const config = JSON.parse(readFileSync(server.kubeconfig));
const { cluster } = config.clusters[0], { user } = config.users[0];
const decode = (text) => Buffer.from(text, "base64");
const tls = { ca: decode(cluster["certificate-authority-data"]), cert: decode(user["client-certificate-data"]),
              key: decode(user["client-key-data"]), agent: false };
const status = await new Promise((resolve, reject) =>
  request(`${cluster.server}/api/v1/namespaces/default`, tls, (answer) => (answer.resume(), resolve(answer.statusCode)))
    .on("error", reject).end());
await server.stop();
console.log(status, existsSync(server.kubeconfig));
"""
JAVA_MAIN = """
public class Main {
    public static void main(String[] command) throws Exception {
        java.nio.file.Path kubeconfig;
        try (KubeSandbox server = new KubeSandbox(command)) {
            kubeconfig = server.kubeconfig;
            System.out.print(java.nio.file.Files.exists(kubeconfig));
        }
        System.out.println(" " + java.nio.file.Files.exists(kubeconfig));
    }
}
"""

pytestmark = [pytest.mark.slow]


def write_files(folder: Path) -> None:
    """Writes the files of the page."""
    for name, text in FILES.items():
        (folder / name).write_text(text)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_node_starts_and_stops_a_server(tmp_path: Path) -> None:
    """The server answers, and its folder is gone after `stop`."""
    write_files(tmp_path)
    (tmp_path / "main.mjs").write_text(NODE_MAIN)
    done = subprocess.run(["node", "main.mjs", *COMMAND], cwd=tmp_path, capture_output=True, text=True, check=False,
                          timeout=LONGEST_S)  # fmt: skip
    assert (done.stdout, done.returncode) == ("200 false\n", 0), done.stderr


@pytest.mark.skipif(shutil.which("javac") is None, reason="needs a JDK")
def test_java_starts_and_stops_a_server(tmp_path: Path) -> None:
    """The kubeconfig exists while the server runs, and is gone after `close`."""
    write_files(tmp_path)
    (tmp_path / "Main.java").write_text(JAVA_MAIN)
    subprocess.run(["javac", "KubeSandbox.java", "Main.java"], cwd=tmp_path, check=True, timeout=LONGEST_S)
    done = subprocess.run(["java", "Main", *COMMAND], cwd=tmp_path, capture_output=True, text=True, check=False,
                          timeout=LONGEST_S)  # fmt: skip
    assert (done.stdout, done.returncode) == ("true false\n", 0), done.stderr


@pytest.mark.parametrize("runs", ["start.sh", "the action"])
def test_ci_gets_a_server(runs: str, tmp_path: Path) -> None:
    """The later commands of a job have the KUBECONFIG of a server that runs."""
    write_files(tmp_path)
    (step,) = yaml.safe_load((ROOT / ".github/actions/kubesandbox/action.yml").read_text())["runs"]["steps"]
    words, variables = shlex.join(COMMAND), tmp_path / "variables"
    environ = {**os.environ, "KUBESANDBOX": words, "COMMAND": words, "ARGUMENTS": "--no-controllers",
               "RUNNER_TEMP": str(tmp_path), "GITHUB_ENV": str(variables), "GITHUB_OUTPUT": os.devnull}  # fmt: skip
    begins = ". ./start.sh --no-controllers" if runs == "start.sh" else f'{step["run"]}\n. "$GITHUB_ENV"'
    script = f'set -e\n{begins}\ntest -f "$KUBECONFIG"\nkill $!\nwait $!\ntest ! -e "$KUBECONFIG"'
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=environ, check=False, timeout=LONGEST_S)
    assert done.returncode == 0
