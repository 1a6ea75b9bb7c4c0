"""`python -m bench kubernetes_e2e [--server NAME] [--focus REGEX]`: Kubernetes' own end-to-end tests, on both servers.

In: which tests of sig-api-machinery and sig-auth; by default those of the released API that run no container, but for
what is slow, flaky, disruptive or about speed. Out: JSON on stdout: how many pass on kube-apiserver with
kube-controller-manager, how many of these on the sandbox's API server with its controllers, and each that differs with
the first lines of its failure. Exit code 1 if one fails on the sandbox alone. The first run builds the tests, which
takes minutes. The tests talk protobuf, as client-go does by default.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
from tests.controlplane import build as controlplane
from tests.controlplane.plane import ControlPlane
from tests.kubernetes_e2e import build

REAL, SANDBOX = "kube-apiserver", "kubesandbox"
# Tests whose containers have to run, or that need the nodes of a cloud: nothing runs them on either server.
_CONTAINERS = "|".join(
    (
        "AdmissionWebhook",
        "CustomResourceFieldSelectors",
        "ConversionWebhook",
        "Aggregator",
        "Aggregated APIServer",
        "NodeAuthenticator",
        "ServiceAccounts.*(mount|RunAsUser|OIDC)",
        "drowned out",
        "delete fast enough",
        "delete jobs and pods created by cronjob",
        "by-node",
        "all pods are removed",
        "should delete pod first",
        "should create pods, set the deletionTimestamp",
        "across all namespaces for nodes",
        "keep the rc around",
        "both valid owner and owner",
        "orphan pods created by rc if delete options",
    )
)
_NOT_RELEASED = r"\[Feature:|\[FeatureGate:|\[Disruptive\]|\[Flaky\]|\[Slow\]|\[Alpha\]|\[Beta\]"
_MOST_LINES = 6


@dataclass(frozen=True)
class Outcome:
    """How one test ended; `message` is the beginning of its failure."""

    passed: bool
    message: str
    seconds: float


@click.command()
@click.option("--server", "chosen", type=click.Choice([REAL, SANDBOX]), multiple=True, default=(REAL, SANDBOX))
@click.option("--focus", default=r"\[sig-api-machinery\]|\[sig-auth\]", help="Which tests, as ginkgo's flag has it.")
@click.option("--skip", default=f"{_CONTAINERS}|{_NOT_RELEASED}", help="Which not.")
@click.option("--keep", type=click.Path(path_type=Path), help="Keep each server's data and the tests' output here.")
def main(chosen: tuple[str, ...], focus: str, skip: str, keep: Path | None) -> None:
    """Run the tests on the chosen servers, and print what differs."""
    programs = build.build()
    outcomes: dict[str, dict[str, Outcome]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for name in chosen:
            folder = (keep or Path(temporary)) / name
            folder.mkdir(parents=True, exist_ok=True)
            with _real(folder, programs) if name == REAL else _sandbox(folder) as kubeconfig:
                outcomes[name] = _run(programs / build.TESTS, kubeconfig, folder=folder, focus=focus, skip=skip)
    report = compared(outcomes)
    print(json.dumps(report, indent=2))
    sys.exit(1 if report["fail on the sandbox alone"] else 0)


def compared(outcomes: dict[str, dict[str, Outcome]]) -> dict[str, object]:
    """Returns the report: counts, and what the real server alone passes (all, where it was not asked)."""
    judge = outcomes[REAL if REAL in outcomes else SANDBOX]
    expected = {name for name, outcome in judge.items() if outcome.passed or REAL not in outcomes}
    sandbox = outcomes.get(SANDBOX, {})
    failed = {name: outcome for name, outcome in sandbox.items() if name in expected and not outcome.passed}
    return {
        "tests": len(judge),
        **{f"pass on {name}": sum(outcome.passed for outcome in each.values()) for name, each in outcomes.items()},
        "fail on the sandbox alone": {name: outcome.message for name, outcome in sorted(failed.items())},
        "fail on kube-apiserver": sorted(
            name for name, outcome in outcomes.get(REAL, {}).items() if not outcome.passed
        ),
        "seconds": {name: round(sum(outcome.seconds for outcome in each.values())) for name, each in outcomes.items()},
    }


def _run(program: Path, kubeconfig: Path, folder: Path, focus: str, skip: str) -> dict[str, Outcome]:
    report = folder / "report.json"
    flags = (
        f"--kubeconfig={kubeconfig}",
        "--provider=skeleton",
        "--allowed-not-ready-nodes=-1",
        "--dump-logs-on-failure=false",
        f"--ginkgo.focus={focus}",
        f"--ginkgo.skip={skip}",
        "--ginkgo.seed=1",
        "--ginkgo.no-color",
        "--ginkgo.timeout=2h",
        f"--ginkgo.json-report={report}",
    )
    with (folder / "tests.log").open("wb") as log:
        subprocess.run([program, *flags], stdout=log, stderr=log, check=False, cwd=folder)
    (suite,) = json.loads(report.read_text())
    return {
        " ".join((*spec["ContainerHierarchyTexts"], spec["LeafNodeText"])): outcome_of(spec)
        for spec in suite["SpecReports"]
        if spec["LeafNodeType"] == "It" and spec["State"] not in ("skipped", "pending")
    }


def outcome_of(spec: dict[str, object]) -> Outcome:
    """Returns how a test ended, from its report by ginkgo."""
    failure = spec.get("Failure")
    text = str(failure.get("Message", "")) if isinstance(failure, dict) else ""
    lines = [line for line in text.splitlines() if line.strip()][:_MOST_LINES]
    return Outcome(spec["State"] == "passed", "\n".join(lines), int(str(spec.get("RunTime", 0))) / 1e9)


@contextmanager
def _real(folder: Path, programs: Path) -> Iterator[Path]:
    """Yields the administrator's kubeconfig of kube-apiserver, with kube-controller-manager beside it."""
    with ControlPlane(folder / "data", controlplane.build(), disabled_admission="TaintNodesByCondition") as plane:
        pki = plane.data / "pki"
        flags = (
            f"--kubeconfig={plane.kubeconfig}",
            f"--root-ca-file={pki / 'ca.crt'}",
            f"--service-account-private-key-file={pki / 'server.key'}",
            f"--cluster-signing-cert-file={pki / 'ca.crt'}",
            f"--cluster-signing-key-file={pki / 'ca.key'}",
            "--bind-address=127.0.0.1",
            "--secure-port=0",
            "--leader-elect=false",
        )
        with (folder / "controllers.log").open("wb") as log:
            process = subprocess.Popen([programs / build.CONTROLLERS, *flags], stdout=log, stderr=log)
        try:
            yield plane.kubeconfig
        finally:
            process.terminate()
            process.wait(60)


@contextmanager
def _sandbox(folder: Path) -> Iterator[Path]:
    """Yields the administrator's kubeconfig of the sandbox's API server with its controllers."""
    command = [sys.executable, "-m", "kubesandbox", "--data", str(folder / "data")]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
    try:
        yield _kubeconfig(process)
    finally:
        process.terminate()
        process.wait(60)


def _kubeconfig(process: subprocess.Popen[str]) -> Path:
    """Returns the kubeconfig that `python -m kubesandbox` names once it serves."""
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"KUBECONFIG=(\S+)", line):
            return Path(found[1])
    raise RuntimeError("the sandbox's API server did not start; server.log says why")


if __name__ == "__main__":
    main()
