"""`python -m bench suites [NAME...]`: suites of other projects against kubesandbox.

In: names of suites, by default all. Each is obtained from its package registry, in a pinned version, and kept in
~/.cache/runup/peers. Out: progress and a table on stderr, JSON on stdout: passed, skipped, and failed tests with the
reason for each failure. Exit code 1 if a test fails that the table of suites does not explain.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from bench.suites import obtain, run
from bench.suites.table import SUITES, GoSuite
from kubesandbox import envtest
from kubesandbox.testing import kube_api

_TIMEOUT_S = 1200.0


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(sorted(SUITES)))
@click.option("--timeout", "timeout_s", default=_TIMEOUT_S, help="Seconds for a suite (of Go: for a package).")
@click.option("--package", "packages", multiple=True, help="Only this package of Go's suites, such as ./pkg/client.")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Run Python's suites on this server instead.")
def main(names: tuple[str, ...], timeout_s: float, packages: tuple[str, ...], kubeconfig: Path | None) -> None:
    """Run the named suites, by default all, and print what fails."""
    base = obtain.cache()
    base.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}
    for name in names or SUITES:
        click.echo(f"{name} {SUITES[name].version} ...", err=True)
        results[name] = _run_suite(name, base, timeout_s=timeout_s, packages=packages, kubeconfig=kubeconfig)
        click.echo(as_text(name, results[name]), err=True)
    click.echo(json.dumps(results, indent=2))
    sys.exit(1 if any(result["failed"] or result.get("unavailable") for result in results.values()) else 0)


def _run_suite(
    name: str, base: Path, *, timeout_s: float, packages: tuple[str, ...], kubeconfig: Path | None
) -> dict[str, Any]:
    suite, started = SUITES[name], time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        try:
            if isinstance(suite, GoSuite):
                envtest.write_programs(folder)
                chosen = replace(suite, packages=packages or suite.packages)
                outcomes = run.of_go(name, chosen, base, folder, timeout_s=timeout_s)
            elif kubeconfig is not None:
                outcomes = run.of_python(name, suite, base, kubeconfig, timeout_s=timeout_s)
            else:
                obtain.source_distribution(name, suite, base)
                with kube_api(folder, node=True) as api:
                    api.load(suite.objects)
                    outcomes = run.of_python(name, suite, base, api.kubeconfig, timeout_s=timeout_s)
        except obtain.Unavailable as error:
            return {"version": suite.version, "passed": 0, "skipped": 0, "failed": {}, "unavailable": str(error)}
    return {
        "version": suite.version,
        **counted(outcomes, suite.explained),
        "seconds": round(time.monotonic() - started),
    }


def counted(outcomes: Iterable[run.Outcome], explained: Mapping[str, str]) -> dict[str, Any]:
    """Returns the counts, the failures that `explained` has a reason for, and the others with their own words."""
    known: dict[str, str] = {}
    failed: dict[str, str] = {}
    states = []
    for outcome in outcomes:
        states.append(outcome.state)
        if outcome.state == run.FAILED:
            why = next((reason for pattern, reason in explained.items() if re.search(pattern, outcome.name)), None)
            (failed if why is None else known)[outcome.name] = why or outcome.reason
    if not states:
        failed[""] = "no test ran"
    passed, skipped = states.count(run.PASSED), states.count(run.SKIPPED)
    return {"passed": passed, "skipped": skipped, "explained": known, "failed": failed}


def as_text(name: str, result: Mapping[str, Any]) -> str:
    """Returns a suite's result in lines: the counts, and each failure with its reason."""
    if "unavailable" in result:
        return f"{name} {result['version']}: not run: {result['unavailable']}"
    total = result["passed"] + len(result["failed"]) + len(result["explained"])
    lines = [f"{name} {result['version']}: {result['passed']} of {total} passed, {result['skipped']} skipped"]
    for title in ("explained", "failed"):
        lines += [f"  {title}: {test}: {reason.splitlines()[0] if reason else ''}" for test, reason in
                  result[title].items()]  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    main()
