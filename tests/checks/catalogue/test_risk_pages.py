"""Every risk that a shipped check, the operator or a bundled scenario can name has a page behind its link."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubekit.lang import yaml
from runup.advice.decide import preflight_reasons
from runup.advice.decide import risks as in_cluster
from runup.checks import catalogue, risk_pages
from runup.checks.catalogue import CHECKS
from runup.checks.catalogue.platform import operator_health
from runup.checks.decide.declared_checks import unusable_check
from runup.checks.decide.engine import unknown_risk
from runup.checks.decide.model import Check
from runup.preflight.decide import published_risks
from runup.report import documentation
from runup.sandbox.scenario import folder, misbehaviour
from tools import check_pages

PAGES = Path(__file__).parents[3] / "docs" / "reference" / "checks"
PROSE = sorted(path for path in PAGES.parents[1].glob("*/*.md") if path.parent.name != "decisions")
NAME = re.compile(r"[A-Z][a-z]+[A-Za-z]*[A-Z][A-Za-z]*-?")
BUNDLED = Path(folder.__file__).parent / "bundled"


def constants(package: object) -> Iterator[str]:
    """Every text in a package's modules that could be a risk's name: a new module is walked without anybody's doing."""
    path, name = package.__path__, package.__name__  # type: ignore[attr-defined]
    for module in pkgutil.walk_packages(path, f"{name}."):
        found = vars(importlib.import_module(module.name))
        yield from (value for key, value in found.items() if key.isupper() and key != "CHECK_NAME" and _is_name(value))


def _is_name(value: object) -> bool:
    return isinstance(value, str) and NAME.fullmatch(value) is not None


def of_results() -> Iterator[str]:
    """Of the constants of `published_risks`, and of those that it uses, the ones that are no reason of a verdict."""
    not_risks = preflight_reasons.REASONS | {"Applies"}
    yield from (
        value
        for key, value in (*vars(published_risks).items(), *vars(preflight_reasons).items())
        if key.isupper() and _is_name(value) and value not in not_risks
    )


def of_scenarios() -> Iterator[str]:
    """Declarative checks and the update service's risks of the bundled scenarios."""
    for file in sorted(BUNDLED.rglob("preflight-checks/*.yaml")):
        yield from (check["spec"]["risk"]["name"] for check in yaml.load_all(file.read_bytes(), name=file.name))
    for name in folder.names():
        for edge in folder.load(folder.find(name)).graph.conditional_edges:
            yield from (risk.name for risk in edge.risks)
    yield misbehaviour.risk()["name"]


def of_the_engine() -> Iterator[str]:
    """Returns the risks of checks without a result, checks that cannot be loaded, and checks without a valid name."""
    yield from (unknown_risk(check) for check in CHECKS)
    yield from (expectation.risk + "-x" for expectation in operator_health.EXPECTATIONS)
    yield unknown_risk(unusable_check("x", ""))
    yield unknown_risk(Check(name="no name", component="", reads=(), run=lambda _snapshot, _context: ()))


# A risk without a name, made to fit (`domain.clusterversion.fit`).
NAMES = sorted(
    {*constants(catalogue), *constants(in_cluster), *of_results(), *of_scenarios(), *of_the_engine(), "UnnamedRisk"}
)
REQUIRED = (
    "RemovedAPIInUse",
    "SlowNodeDrain",
    "UpdateRisksOmitted",
    "PreflightRisksOmitted",
    "PreflightCheckUnusable",
)


@pytest.mark.parametrize("name", [*NAMES, "MachineConfigPoolPaused-worker"])
def test_page(name: str) -> None:
    """The page exists, is about that risk, is listed, and is the one that is printed offline."""
    page = documentation.page(name).removeprefix(f"{documentation.BUILT_IN}/checks/")
    text = risk_pages.find(name)
    assert text.startswith(f"# {page}\n")
    assert "**Applies when**" in text
    assert "**Remedy**" in text
    assert "**Accepting it**" in text
    assert page in (PAGES / "unknown.md" if page.endswith("Unknown") else PAGES / f"{page}.md").read_text()


@pytest.mark.parametrize("name", sorted(check.name for check in CHECKS))
def test_page_of_a_check(name: str) -> None:
    """A report names checks, too: their pages say which risks are theirs."""
    assert risk_pages.find(name).startswith(f"# {name}\n")


# Checks whose findings are risks with names of their own; the risks are listed instead.
FAMILIES = (
    "ClusterOperatorHealth",
    "ClusterVersionHealth",
    "MachineConfigPoolHealth",
    "NodeHealth",
    "NodePools",
    "PodDisruptionBudgetPods",
)


def test_every_page_is_listed() -> None:
    """The list of the risks leads to each page, and to none that is missing (`make docs` checks that)."""
    text = (PAGES / "README.md").read_text()
    pages = {path.name for path in PAGES.glob("*.md")} - {"README.md", *(f"{name}.md" for name in FAMILIES)}
    assert [page for page in sorted(pages) if f"({page})" not in text] == []


@pytest.mark.parametrize("name", sorted({check.name for check in CHECKS} - {*FAMILIES}))
def test_each_check_has_its_row(name: str) -> None:
    """The row says for which updates the check is; `runup checks list` prints the same."""
    (check,) = (each for each in CHECKS if each.name == name)
    text = (PAGES / "README.md").read_text()
    (row,) = (line for line in text.splitlines() if line.startswith(f"| [{name}]({name}.md)"))
    _, _, severities, updates, _ = row.split("|")
    assert check.severity in severities
    assert updates.strip().removesuffix(", without a ClusterVersion") == check.updates


@pytest.mark.parametrize("page", PROSE, ids=lambda path: path.name)
def test_counts_of_all_checks_in_prose_are_current(page: Path) -> None:
    """A new check is one more wherever "all N checks" is written."""
    assert {int(number) for number in re.findall(r"all (\d+) checks", page.read_text())} <= {len(CHECKS)}


def test_the_walk_finds_what_is_known() -> None:
    """A walk that found nothing would ask for nothing."""
    families = {name.partition("-")[0] for name in NAMES}
    assert {*REQUIRED, "PodDisruptionBudgetsOverlap", "ClusterVersionOverrides", "UpdatePathNotOffered"} <= families


def test_generated_pages_are_current() -> None:
    """A check's page is its docstring, its reads and its example: `python tools/check_pages.py` writes it."""
    made = check_pages.pages()
    assert [name for name, text in made.items() if (PAGES / name).read_text() != text] == []
    assert len(made) > 30


def test_a_page_about_a_check_without_a_result_is_specific() -> None:
    """It names the check and what it reads, and gives the hint for this check."""
    text = risk_pages.find("KubeletSkewUnknown")
    assert "Check: [KubeletSkew](KubeletSkew.md). Reads: `nodes`" in text
    assert "`oc get node NAME -o yaml`" in text
    assert "EtcdMembersUnhealthy" not in text


@pytest.mark.parametrize("name", ["NodeCordonedUnknown", "unknown", "Unknown", "../unknown", "README"])
def test_a_risk_that_no_check_reports_has_no_page(name: str) -> None:
    """Only names with a section in `unknown.md` share its text."""
    assert risk_pages.find(name) == ""
