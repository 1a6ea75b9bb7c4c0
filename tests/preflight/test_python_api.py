"""Tests the public Python API: the examples of docs/reference/python-api.md, their types, and the errors."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import Server

import runup.checks.api
import runup.python_api
from runup.python_api import PreflightError, evaluate

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "python-api.md"
# The first line of a block names the file that it is.
FILES = dict(re.findall(r"^```python\n# (\S+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))
SINCE = "2026-01-14T09:30:00Z"


def named(api_version: str, kind: str, name: str, **more: Any) -> dict[str, Any]:
    """An object."""
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **more}


def held(**statuses: str) -> list[dict[str, str]]:
    """Conditions since some hours."""
    return [{"type": type_, "status": status, "lastTransitionTime": SINCE} for type_, status in statuses.items()]


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """A cluster at 4.15.3, one of whose operators is degraded."""
    desired = {"version": "4.15.3", "image": "quay.io/x@sha256:1"}
    cluster = {"desired": desired, "conditions": held(Available="True", Failing="False", Progressing="False")}
    operator = {"conditions": held(Available="True", Degraded="True")}
    folder = tmp_path / "dump"
    folder.mkdir()
    for obj in (
        named("config.openshift.io/v1", "ClusterVersion", "version", spec={"clusterID": "a"}, status=cluster),
        named("config.openshift.io/v1", "ClusterOperator", "dns", status=operator),
    ):
        (folder / f"{obj['kind']}.json").write_text(json.dumps(obj))
    return folder


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """The page's files in a folder."""
    folder = tmp_path / "examples"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return folder


def started(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """An example, as a reader would start it."""
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=110)


@pytest.mark.slow
def test_a_gate(examples: Path, dump: Path) -> None:
    """What is in the way, the gravest first, and the exit code of the command; an error has its own."""
    done = started(examples, "gate.py", dump, "4.16.0")
    assert (done.returncode, done.stderr) == (2, "")
    assert re.match(r"True \w+ ClusterOperatorDegraded-dns: ", done.stdout)
    assert "\nUnknown " in done.stdout
    wrong = started(examples, "gate.py", dump, "4.14.9")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert wrong.stderr == "4.14.9 is older than 4.15.3, and no downgrade is supported; choose a newer target\n"


@pytest.mark.slow
def test_clusters_are_counted(examples: Path, server: Server) -> None:
    """A line for each."""
    server.set_cluster_version(status={"desired": {"version": "5.0.0", "image": "quay.io/x@sha256:1"}})
    done = started(examples, "clusters.py", "5.2.0", server.kubeconfig, server.kubeconfig)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"(5\.0\.0 -> 5\.2\.0: [1-9]\d* of [1-9]\d* checks are clear\n){2}", done.stdout)


@pytest.mark.slow
def test_a_check_and_its_tests(examples: Path) -> None:
    """All of the page's."""
    done = started(examples, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_cordoned.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("3 passed")


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_examples_are_typed(examples: Path) -> None:
    """For mypy --strict, which finds a name that is not exported and a type that is wrong."""
    env = {**os.environ, "MYPYPATH": ":".join(map(str, ROOT.glob("packages/*/src")))}
    (examples / "wrong.py").write_text(
        "from runup.python_api import CommandError, evaluate\n\nexit_code: str = evaluate(dump='x').exit_code\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(examples / "cache"), *FILES, "wrong.py"]
    done = subprocess.run(command, cwd=examples, env=env, capture_output=True, text=True, check=False, timeout=380)
    faults = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert [re.sub(r":.*\[", " [", fault) for fault in faults] == ["wrong.py [attr-defined]", "wrong.py [assignment]"]


@pytest.mark.parametrize("package", ["kubekit", "kubesandbox", "runup"])
def test_the_packages_are_typed(package: str) -> None:
    """Type checkers read annotations of an installed package only where this file is (PEP 561)."""
    assert (ROOT / "packages" / package / "src" / package / "py.typed").read_bytes() == b""


@pytest.mark.parametrize("module", [runup.python_api, runup.checks.api], ids=["preflight", "checks"])
def test_every_public_name_is_on_the_page(module: Any) -> None:
    """In its module's row, and the row has no other."""
    [row] = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| `{module.__name__}`")]
    assert sorted(re.findall(r"`(\w+)`", row.split("|")[3])) == sorted(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "two clusters": ({"dump": "x", "context": "y"}, "dump, and kubeconfig or context, name two clusters"),
    "two releases": ({"release_image": "x", "release_folder": "y"}, "both name the release"),
    "no folder": ({"release_folder": "/nonexistent"}, "release_folder /nonexistent: there is no such folder"),
    "no dump": ({"dump": "/nonexistent"}, "nonexistent"),
    "no kubeconfig": ({"kubeconfig": "/nonexistent"}, "/nonexistent"),
    "no image": ({"release_image": "oci:/nonexistent"}, "/nonexistent"),
    "no pull spec": ({"release_image": "X Y"}, "X Y"),
}


@pytest.mark.parametrize(("arguments", "said"), REFUSED.values(), ids=list(REFUSED))
def test_every_error_is_one(arguments: dict[str, Any], said: str) -> None:
    """It names the argument or the file."""
    with pytest.raises(PreflightError) as raised:
        evaluate(**arguments)
    assert said in raised.value.message


def test_a_cluster_that_does_not_answer(tmp_path: Path) -> None:
    """It is named by its URL."""
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
                "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
                "users": [{"name": "a", "user": {}}],
                "current-context": "a",
            }
        )
    )
    with pytest.raises(PreflightError, match=r"could not reach http://127\.0\.0\.1:1"):
        evaluate(kubeconfig=kubeconfig, target="5.2.0")


async def test_a_coroutine_needs_a_thread(server: Server) -> None:
    """Told before anything is asked; in a thread it works."""
    server.set_cluster_version(status={"desired": {"version": "5.0.0", "image": "quay.io/x@sha256:1"}})
    with pytest.raises(PreflightError, match=r"asyncio\.to_thread"):
        evaluate(kubeconfig=server.kubeconfig, target="5.2.0")
    findings = await asyncio.to_thread(evaluate, kubeconfig=server.kubeconfig, target="5.2.0")
    assert (findings.source, findings.target) == ("5.0.0", "5.2.0")


def test_a_release_in_a_folder_brings_its_checks(dump: Path, tmp_path: Path) -> None:
    """Next to the built-in ones; a file that cannot be used is a finding, too."""
    checks = tmp_path / "release" / "preflight-checks"
    checks.mkdir(parents=True)
    (checks / "mine.yaml").write_text("kind: [")
    findings = evaluate(dump=dump, target="4.16.0", release_folder=tmp_path / "release")
    assert [risk.name for risk in findings.risks if risk.name.startswith("PreflightCheckUnusable-")]
