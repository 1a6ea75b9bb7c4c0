"""The recipes of docs/how-to/gates.md: each is the YAML that its system reads, and its shell lines do what they say.

They run here with the real command; `gh`, `curl` and `pip` are stand-ins that write down what they were given, and the
cluster in which a recipe runs is a dump.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from kubekit.lang import yaml as kyaml

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
ROOT = Path(__file__).parents[3]
GATES = ROOT / "examples" / "gates"
FILES = sorted(file.name for file in GATES.iterdir())


def document(name: str) -> Any:
    """The recipe."""
    return kyaml.load((GATES / name).read_bytes(), name=name)


def test_the_page_has_every_recipe_and_no_other() -> None:
    """A recipe without its line would not be found."""
    page = (ROOT / "docs" / "how-to" / "gates.md").read_text()
    assert sorted(set(re.findall(r"examples/gates/([\w.-]+\.yaml)", page))) == FILES


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield str(key)
            yield from _keys(each)
    elif isinstance(value, list):
        for each in value:
            yield from _keys(each)


@pytest.mark.parametrize("name", FILES)
def test_every_recipe_is_one_document(name: str) -> None:
    """`on` is a name to GitHub; nothing has an empty key, and what names another part names one that there is."""
    read = document(name)
    assert isinstance(read, dict)
    assert "" not in set(_keys(read))
    text = (GATES / name).read_text()
    for step in re.findall(r"\$\{\{ steps\.(\w+)\.", text):
        assert step in {each.get("id") for each in read["jobs"]["preflight"]["steps"]}
    for kind, param in re.findall(r"\$\((params|workspaces|results)\.([\w-]+)", text):
        assert param in {each["name"] for each in read["spec"][kind]}
    if read.get("kind") == "Workflow":
        templates = {each["name"] for each in read["spec"]["templates"]}
        called = {
            step["template"] for each in read["spec"]["templates"] for row in each.get("steps", []) for step in row
        }
        assert called | {read["spec"]["entrypoint"]} == templates


class Place:
    """A folder in which the recipes' lines are run, with the programs that they start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = folder / ".programs"
        programs.mkdir()
        for name in ("gh", "curl", "pip"):
            self._program(programs / name, f'printf "%s\\n" "{name} $*" >> "{folder}/started.txt"')
        # Without an inventory it is the cluster in which it runs.
        whose = f'case "$*" in *--inventory*) ;; *) set -- "$@" --dump "{ROOT}/examples/plain-kubernetes" ;; esac'
        self._program(programs / "runup", f'{whose}\nexec "{sys.executable}" -m runup "$@"')
        # Without harbour, whose update is refused whatever a baseline knows.
        inventory = kyaml.load((ROOT / "examples" / "fleet.yaml").read_bytes(), name="fleet.yaml")
        inventory["clusters"] = [each for each in inventory["clusters"] if each["name"] != "harbour"]
        (folder / "clusters.yaml").write_text(json.dumps(inventory))
        for name in ("skip-level", "rehearsal", "plain-kubernetes"):
            (folder / name).symlink_to(ROOT / "examples" / name)
        self.programs = programs

    def _program(self, file: Path, script: str) -> None:
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)

    def run(self, script: str, **env: str) -> int:
        """The exit code of the lines, run as CI systems do: a line that fails ends them."""
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        full = {**os.environ, "PATH": path, "WHEELS": "wheels", **env}
        return subprocess.run(
            ["/bin/sh", "-e", "-c", script], cwd=self.folder, env=full, timeout=240, check=False
        ).returncode

    def text(self, name: str) -> str:
        """What a file in the folder holds."""
        return (self.folder / name).read_text()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A checkout with clusters.yaml."""
    return Place(tmp_path)


def steps(name: str) -> dict[str, str]:
    """The lines of a GitHub workflow by the names of their steps."""
    return {each["name"]: each["run"] for each in document(name)["jobs"]["preflight"]["steps"] if "run" in each}


def test_github_actions(place: Place) -> None:
    """The main branch leaves a result; a pull request without anything new passes, and its comment says so."""
    lines = steps("github-actions.yaml")
    files = {"GITHUB_STEP_SUMMARY": str(place.folder / "summary"), "GITHUB_OUTPUT": str(place.folder / "output")}
    assert place.run(lines["Install"]) == 0
    assert place.run(lines["Preflight"], GITHUB_EVENT_NAME="push", **files) == 0
    assert place.text("output") == "code=2\n"
    assert place.run(lines["Verdict"], CODE="2") == 1
    assert place.run(lines["Preflight"], GITHUB_EVENT_NAME="pull_request", **files) == 0
    assert place.text("output") == "code=2\ncode=0\n"
    assert place.run(lines["Verdict"], CODE="0") == 0
    assert place.text("change.md").startswith("## Preflight of 1.35.0, 5.1.0: 0 new, 0 gone\n\nSince last.json, for 2 ")
    assert place.text("summary").endswith(place.text("change.md"))
    assert place.run(lines["Comment"], NUMBER="7") == 0
    assert place.text("started.txt").splitlines() == [
        "pip install --find-links wheels kube-runup",
        "gh pr comment 7 --edit-last --create-if-none --body-file change.md",
    ]


def test_gitlab(place: Place) -> None:
    """As above; the verdict is the exit code of the last lines."""
    read = document("gitlab-ci.yaml")["preflight"]
    script = read["script"][-1]
    api = {"CI_API_V4_URL": "https://gitlab.example/api/v4", "CI_PROJECT_ID": "3", "TOKEN": "secret"}
    assert place.run(script, CI_PIPELINE_SOURCE="push") == 2
    merge = {"CI_PIPELINE_SOURCE": "merge_request_event", "CI_MERGE_REQUEST_IID": "7", **api}
    assert place.run(script, **merge) == 0
    assert place.text("started.txt").endswith(" https://gitlab.example/api/v4/projects/3/merge_requests/7/notes\n")
    assert "0 new, 0 gone" in place.text("change.md")
    reports = read["artifacts"]["reports"]
    assert ElementTree.parse(place.folder / reports["junit"]).getroot().tag == "testsuites"
    # What is known from the default branch is not annotated again.
    assert json.loads(place.text(reports["codequality"])) == []


@pytest.mark.parametrize(("fail_on", "code"), [("warning", 2), ("never", 0)])
def test_tekton(place: Place, fail_on: str, code: int) -> None:
    """The verdict is a result, and stops the Pipeline."""
    script = document("tekton-task.yaml")["spec"]["steps"][0]["script"]
    env = {"INVENTORY": "clusters.yaml", "FAIL_ON": fail_on, "VERDICT": str(place.folder / "verdict")}
    assert place.run(script, **env) == code
    assert place.text("verdict") == str(code)


def test_argo_cd(place: Place) -> None:
    """A Job that fails stops the sync."""
    read = document("argocd-presync.yaml")
    assert read["metadata"]["annotations"]["argocd.argoproj.io/hook"] == "PreSync"
    pod = read["spec"]["template"]["spec"]
    assert (pod["restartPolicy"], read["spec"]["backoffLimit"]) == ("Never", 0)
    (container,) = pod["containers"]
    env = {each["name"]: each["value"] for each in container["env"]}
    assert container["command"] == ["/bin/sh", "-c"]
    assert place.run(container["args"][0], **env) == 2


def test_argo_workflows(place: Place) -> None:
    """Risks let the Workflow continue to the consent; what could not be evaluated does not."""
    templates = {each["name"]: each for each in document("argo-workflow.yaml")["spec"]["templates"]}
    script = templates["preflight"]["container"]["args"][0]
    assert place.run(script, TARGET="1.36", OUT=str(place.folder)) == 0
    assert place.text("verdict") == "2"
    assert "**PodDisruptionBudgetBlocksDrain**" in place.text("preflight.md")
    assert place.run(script, TARGET="nonsense", OUT=str(place.folder)) == 1
    assert place.text("verdict") == "1"


def test_what_a_pull_request_is_compared_with_is_of_the_main_branch_alone() -> None:
    """It is kept before the verdict ends the job, and never by the pull request."""
    jobs = document("github-actions.yaml")["jobs"]["preflight"]["steps"]
    uses = [each.get("uses", "").partition("@")[0] or each["name"] for each in jobs]
    save = jobs[uses.index("actions/cache/save")]
    assert uses.index("actions/cache/restore") < uses.index("Preflight") < uses.index("actions/cache/save")
    assert uses.index("actions/cache/save") < uses.index("Verdict")
    assert save["if"].startswith("github.event_name != 'pull_request' && ")
    job = document("gitlab-ci.yaml")["preflight"]
    assert (job["cache"]["when"], job["cache"]["unprotect"]) == ("always", True)
    assert [rule["variables"]["CACHE_POLICY"] for rule in job["rules"]] == ["pull", "pull-push"]


def test_a_version_that_is_proposed(place: Place) -> None:
    """All that is in the way of the new version counts, whatever was in the way of the old one."""
    lines = steps("version-bump.yaml")
    (place.folder / "clusters.yaml").write_text("clusters:\n- name: orchard\n  dump: plain-kubernetes\n")
    (place.folder / "target-version").write_text("1.36\n")
    assert place.run(lines["Preflight"], GITHUB_OUTPUT=str(place.folder / "output")) == 0
    assert place.text("output") == "code=2\n"
    assert place.text("change.md").startswith("# Preflight of 1 cluster: 1 with risks that apply")
    assert "**PodDisruptionBudgetBlocksDrain**" in place.text("change.md")
    assert place.run(lines["Verdict"], CODE="2") == 1
