"""Runs a suite and reads what became of each test: reports of ginkgo, of `go test -json`, and of JUnit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.suites import obtain
from bench.suites.table import GoSuite, PythonSuite

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
_GINKGO_FAILURES = frozenset({"failed", "panicked", "timedout", "aborted", "interrupted"})
_REASON_LINES = 4
_REASON_LENGTH = 600


@dataclass(frozen=True)
class Outcome:
    """How one test ended; `reason` is the beginning of its failure."""

    name: str
    state: str
    reason: str = ""


def of_go(name: str, suite: GoSuite, base: Path, assets: Path, *, timeout_s: float) -> list[Outcome]:
    """Runs the tests of each package of a Go module, one package at a time. Raises Unavailable."""
    folder = obtain.go_module(name, suite, base)
    listed = subprocess.run(
        ("go", "list", "-json=ImportPath,TestImports,XTestImports", *suite.packages),
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        raise obtain.Unavailable(listed.stderr.strip()[-_REASON_LENGTH:])
    environment = {**os.environ, "KUBEBUILDER_ASSETS": str(assets), "GOFLAGS": "-buildvcs=false"}
    outcomes: list[Outcome] = []
    for package in _json_values(listed.stdout):
        imports = [*package.get("TestImports", ()), *package.get("XTestImports", ())]
        if imports:
            ginkgo = any(path.startswith("github.com/onsi/ginkgo") for path in imports)
            outcomes += _of_package(package["ImportPath"], folder, environment, ginkgo=ginkgo, timeout_s=timeout_s)
    return outcomes


def _of_package(
    package: str, folder: Path, environment: Mapping[str, str], *, ginkgo: bool, timeout_s: float
) -> list[Outcome]:
    report = folder / "ginkgo-report.json"
    report.unlink(missing_ok=True)
    command = ["go", "test", "-json", "-vet=off", "-p=1", f"-timeout={int(timeout_s)}s", package]
    command += ["-args", f"-ginkgo.json-report={report}", "-ginkgo.seed=1"] if ginkgo else []
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout_s + 600, check=False
        )
    except subprocess.TimeoutExpired:
        return [Outcome(package, FAILED, f"did not end within {timeout_s:.0f} s")]
    short = package.rsplit("/", 2)[-1]
    if report.exists():
        specs = list(ginkgo_outcomes(json.loads(report.read_text()), short))
        if specs:
            return specs
    tests = list(go_outcomes(_json_values(done.stdout), short))
    if not tests and done.returncode:
        return [Outcome(package, FAILED, _shortened(done.stderr or done.stdout))]
    return tests


def _json_values(text: str) -> Iterator[dict[str, object]]:
    """Yields the JSON values in a text, one after the other; lines between them are left out."""
    decoder, at = json.JSONDecoder(), text.find("{")
    while at >= 0:
        try:
            value, at = decoder.raw_decode(text, at)
        except ValueError:
            at = text.find("\n{", at + 1)
            at = at + 1 if at >= 0 else at
            continue
        yield value
        at = text.find("{", at)


def ginkgo_outcomes(report: list[dict[str, object]], package: str) -> Iterator[Outcome]:
    """Yields the specs of ginkgo's JSON report, and failures of the nodes around them."""
    for suite in report:
        specs = suite.get("SpecReports")
        for spec in specs if isinstance(specs, list) else ():
            state = spec["State"]
            failure = (spec.get("Failure") or {}).get("Message", "")
            name = " ".join((package, *(spec["ContainerHierarchyTexts"] or ()), spec["LeafNodeText"])).strip()
            if state in _GINKGO_FAILURES:
                yield Outcome(name or f"{package} {spec['LeafNodeType']}", FAILED, _shortened(failure))
            elif spec["LeafNodeType"] == "It":
                yield Outcome(name, PASSED if state == "passed" else SKIPPED)


def go_outcomes(events: Iterable[Mapping[str, object]], package: str) -> Iterator[Outcome]:
    """Yields the tests in the events of `go test -json`, without those that only hold subtests."""
    output: dict[str, list[str]] = {}
    ended: dict[str, str] = {}
    for event in events:
        test = str(event.get("Test", ""))
        if event.get("Action") == "output":
            output.setdefault(test, []).append(str(event.get("Output", "")))
        elif test and event.get("Action") in ("pass", "fail", "skip"):
            ended[test] = {"pass": PASSED, "fail": FAILED, "skip": SKIPPED}[str(event["Action"])]
    for test, state in ended.items():
        if not any(other.startswith(f"{test}/") for other in ended):
            reason = _shortened("".join(output.get(test, ()))) if state == FAILED else ""
            yield Outcome(f"{package} {test}", state, reason)


def of_python(name: str, suite: PythonSuite, base: Path, kubeconfig: Path, *, timeout_s: float) -> list[Outcome]:
    """Runs the tests of a source distribution with pytest. Raises Unavailable."""
    folder, python = obtain.source_distribution(name, suite, base)
    report = base / f"{name}-junit.xml"
    report.unlink(missing_ok=True)
    plugins = ("-p", "pytest_kind.plugin") if "pytest_kind" in suite.helpers else ()
    command = (str(python), "-m", "pytest", "-q", *plugins, *suite.options, f"--junitxml={report}", *suite.tests)
    # The virtual environment's own folder comes first: examples start programs such as `kopf` by name.
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment = {**inherited, "KUBECONFIG": str(kubeconfig), "PYTHONPATH": str(folder), "PATH": path}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment | suite.environment, capture_output=True, text=True,
            timeout=timeout_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return [Outcome(name, FAILED, f"did not end within {timeout_s:.0f} s")]
    if not report.exists():
        return [Outcome(name, FAILED, _shortened(done.stdout + done.stderr))]
    return list(junit_outcomes(ElementTree.parse(report).getroot()))


def junit_outcomes(root: ElementTree.Element) -> Iterator[Outcome]:
    """Yields the test cases of a JUnit report."""
    for case in root.iter("testcase"):
        name = f"{case.get('classname')} {case.get('name')}"
        problem = next((child for child in case if child.tag in ("failure", "error")), None)
        if problem is not None:
            yield Outcome(name, FAILED, _shortened(problem.get("message") or problem.text or ""))
        else:
            yield Outcome(name, SKIPPED if case.find("skipped") is not None else PASSED)


def _shortened(text: str) -> str:
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines() if line.strip()]
    return "\n".join(lines[:_REASON_LINES])[:_REASON_LENGTH]
