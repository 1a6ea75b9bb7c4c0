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

from kubesandbox.pytest_plugin import KubeApiFactory

LONGEST_S = 240
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "kubesandbox-languages.md"
# The first line of a block names the file that it is.
FILES = dict(re.findall(r"^```\w+\n(?://|#) (\S+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))
COMMAND = (sys.executable, "-m", "kubesandbox")
JEST = "jest@30.5.2"
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

JUNIT = {
    "Test": "@interface Test {}",
    "BeforeAll": "@interface BeforeAll {}",
    "AfterAll": "@interface AfterAll {}",
    "Assertions": "final class Assertions { public static void assertTrue(boolean value) {} }",
}

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
    # Maven Central has JUnit itself; the example must compile against what it uses of it.
    stubs = tmp_path / "org" / "junit" / "jupiter" / "api"
    stubs.mkdir(parents=True)
    for name, text in JUNIT.items():
        (stubs / f"{name}.java").write_text(f"package org.junit.jupiter.api;\npublic {text}\n")
    sources = ["KubeSandbox.java", "Main.java", "ShipsTest.java"]
    subprocess.run(["javac", *sources], cwd=tmp_path, check=True, timeout=LONGEST_S)
    done = subprocess.run(["java", "Main", *COMMAND], cwd=tmp_path, capture_output=True, text=True, check=False,
                          timeout=LONGEST_S)  # fmt: skip
    assert (done.stdout, done.returncode) == ("true false\n", 0), done.stderr


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs npm")
@pytest.mark.timeout(600)
def test_jest_has_a_server(tmp_path: Path) -> None:
    """The global setup starts it for all tests, and the global teardown ends it."""
    write_files(tmp_path)
    (settings,) = re.findall(r"^```json\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "package.json").write_text(settings)
    install = ["npm", "install", "--no-audit", "--no-fund", "--save-dev", JEST]
    got = subprocess.run(install, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=2 * LONGEST_S)
    if got.returncode:
        pytest.skip(f"npm cannot install {JEST}: {got.stderr[-300:]}")
    environ = {**os.environ, "KUBESANDBOX": shlex.join(COMMAND), "NODE_OPTIONS": "--experimental-vm-modules"}
    environ["TMPDIR"] = str(tmp_path)
    done = subprocess.run(["npx", "jest"], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False,
                          timeout=LONGEST_S)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "1 passed" in done.stderr
    assert list(tmp_path.glob("kubesandbox-*")) == []


@pytest.mark.skipif(shutil.which("go") is None, reason="needs Go")
@pytest.mark.timeout(600)
@pytest.mark.xdist_group("goclient")
def test_a_suite_of_envtest_uses_an_existing_cluster(tmp_path: Path, kube_api_factory: KubeApiFactory) -> None:
    """With USE_EXISTING_CLUSTER it starts no server, and creates its objects on the one of KUBECONFIG."""
    write_files(tmp_path)
    for name in ("go.mod", "go.sum"):
        shutil.copy(ROOT / "tests" / "goclient" / name, tmp_path)
    with kube_api_factory() as api:
        environ = {**os.environ, "USE_EXISTING_CLUSTER": "true", "KUBECONFIG": str(api.kubeconfig),
                   "KUBEBUILDER_ASSETS": os.devnull}  # fmt: skip
        done = subprocess.run(["go", "test", "-count=1", "."], cwd=tmp_path, env=environ, capture_output=True,
                              text=True, check=False, timeout=2 * LONGEST_S)  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert "configmaps/log" in (api.data / "audit.log").read_text()


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
