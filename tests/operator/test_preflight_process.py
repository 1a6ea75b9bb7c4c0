"""`cluster-version-operator preflight --once` as it is typed: what its environment decides of the report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.servers import Server

MAIN = "import sys; from runup.cli.operator.main import main; sys.exit(main())"
CHECK = """\
apiVersion: preflight.runup.dev/v1alpha1
kind: PreflightCheck
metadata:
  name: of-{name}
  annotations: {{include.release.openshift.io/{profile}: "true"}}
spec:
  component: mine
  reads:
  - {{name: nodes, kind: Node, fields: [spec.unschedulable]}}
  for: nodes
  expression: has(object.spec.unschedulable)
  risk: {{name: Mine, message: A node is cordoned.}}
"""


def checked(server: Server, folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What one evaluation prints, of a release with a check for most clusters and one for single nodes."""
    (folder / "preflight-checks").mkdir(exist_ok=True)
    for name, profile in (("most", "self-managed-high-availability"), ("single", "single-node-developer")):
        (folder / "preflight-checks" / f"{name}.yaml").write_text(CHECK.format(name=name, profile=profile))
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PREFLIGHT_", "CLUSTER_P"))}
    command = [sys.executable, "-c", MAIN, "preflight", "--once", "--release-dir", str(folder), "--from", "5.0.0"]
    return subprocess.run(
        [*command, "--to", "5.2.0", "--kubeconfig", str(server.kubeconfig), *words],
        env=clean | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "brought"),
    [
        pytest.param({}, {"of-most"}, id="no profile is the usual one"),
        pytest.param({"CLUSTER_PROFILE": "single-node-developer"}, {"of-single"}, id="another profile"),
    ],
)
def test_the_profile_decides_which_checks_count(
    server: Server, tmp_path: Path, environment: dict[str, str], brought: set[str]
) -> None:
    """As for manifests; the report alone is on stdout."""
    done = checked(server, tmp_path, **environment)
    assert done.returncode == 0, done.stderr
    assert {each["name"] for each in json.loads(done.stdout)["checks"] if each["name"].startswith("of-")} == brought


@pytest.mark.slow
def test_what_the_operator_says_of_itself_is_in_the_report(server: Server, tmp_path: Path) -> None:
    """Whose preflight it is and of which image; with a file's name nothing is on stdout."""
    shown = {"PREFLIGHT_ID": "p7", "PREFLIGHT_TARGET_IMAGE": "registry.example/release@sha256:1"}
    done = checked(server, tmp_path, "--report", str(tmp_path / "report.json"), **shown)
    assert (done.returncode, done.stdout) == (0, "")
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["preflightID"], report["targetImage"], report["targetVersion"]) == (*shown.values(), "5.2.0")
