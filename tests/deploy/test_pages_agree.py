"""Pages that say what the code does are compared with it: runbooks for every reason, rights for every command."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
import yaml
from tests.documents import documents

from kubekit.lang.quantity import parse_quantity
from runup.clusterversion.control import prerequisite_probe as probe
from runup.clusterversion.decide.check_prerequisites import Right
from runup.kernelmodules.control import module_check
from runup.preflight.decide.preflight_deployment import Quantities, resources_of
from runup.preflight.decide.published_risks import FAMILIES
from runup.report import report
from runup.updatestatus.decide import finding as limits

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "packages" / "runup" / "src" / "runup"
TROUBLESHOOTING = (ROOT / "docs" / "how-to" / "troubleshooting.md").read_text()
SECURITY = (ROOT / "docs" / "explanation" / "security.md").read_text()
NAME = re.compile(r"[A-Z][a-z]+(?:[A-Z][A-Za-z]*)+|[A-Z]{3}[A-Za-z]+|Unschedulable|Evicted")
RUNBOOK = re.compile(r"\*\*Means\*\*.*\*\*Look\*\*.*\*\*[Dd]o\*\*", re.DOTALL)
# Where conditions of preflights and updates get their reasons.
PLACES = (
    *(
        f"clusterversion/decide/{name}.py"
        for name in ("preflights", "update_request", "targets", "release_accepted", "preconditions")
    ),
    *(f"preflight/decide/{name}.py" for name in ("outcome", "start_failures", "published_risks")),
    "report/report.py",
    "advice/decide/preflight_reasons.py",
)
# What looks like a reason there and is none: types of conditions, risks, events, kinds of clusters, states of pods, and
# what goes well.
NO_REASON = {
    "AsExpected",
    "BackOff",
    "ChecksRunning",
    "ContainerCreating",
    "FailedScheduling",
    "InspectFailed",
    "NoRisksFound",
    "OpenShift",
    "PayloadLoaded",
    "PodInitializing",
    "PodScheduled",
    "PreconditionBlock",
    "PreconditionWarn",
    "PreflightIncomplete",
    "PreflightRisksOmitted",
    "PreflightValidation",
    "RegistryUnavailable",
    "ReleaseAccepted",
    "ReplicaFailure",
    "ReplicaSet",
    "RetrievedUpdates",
    "RisksFound",
    "UpdatePathNotOffered",
    "ReleaseSignatureNotVerified",
    "ClusterVersionGiantHop",
    "ClusterVersionRollback",
    "ClusterVersionUpgradeable",
    "UpdateRisksOmitted",
    *FAMILIES,
}

# Which test types a page's commands; of the others, why none does. tools/check_docs.py looks at the flags of all.
TYPED_BY = {
    "how-to/kubesandbox-languages.md": "tests/kubesandbox/test_languages.py",
    "how-to/air-gapped.md": "tests/install/test_pages_of_files.py",
    "how-to/backup.md": "tests/install/test_pages.py",
    "how-to/writing-checks.md": "tests/journeys/cli/test_guide_of_checks.py",
    "how-to/console.md": "tests/cli/console/test_serve_command.py",
    "how-to/drains.md": "tests/cli/rehearse/test_drain_command.py",
    "how-to/fleets.md": "tests/cli/fleet/test_fleet_commands.py",
    "how-to/forecast.md": "tests/cli/rehearse/test_forecast_command.py",
    "how-to/gates.md": "tests/cli/fleet/test_gates.py",
    "how-to/install.md": "tests/install/test_pages.py",
    "reference/metrics.md": "tests/install/test_pages_of_files.py",
    "how-to/preflight-in-cluster.md": "tests/journeys/cli/test_in_cluster.py",
    "how-to/rehearsal.md": "tests/cli/rehearse/test_rehearse_command.py",
    "contributing/releasing.md": "tests/install/test_pages_of_files.py",
    "how-to/uninstall.md": "tests/install/test_pages.py",
    "how-to/upgrade.md": "tests/install/test_pages.py",
}
TYPED_BY |= {
    f"tutorial/{page}.md": "tests/journeys/cli/test_tutorials.py"
    for page in ("first-check", "first-cluster", "first-fleet")
}
NOT_TYPED = {
    "contributing/pictures.md": "it takes the pictures of the documentation again",
    "how-to/any-kubernetes.md": "charts and overlays are the reader's own",
    "how-to/fleet-updates-on-a-hub.md": "a hub and its clusters; tests/ocm/test_fleet_updates.py has one",
    "how-to/kernel-modules.md": "it changes the checkout",
    "explanation/limits.md": "a quarter of an hour of benchmarks, which needs the machine for itself",
    "how-to/releases.md": "component images are the reader's own; podman builds need a network",
    "how-to/runbooks.md": "it reads logs of an operator that runs for days",
    "explanation/security.md": "minutes of fuzzing, and a setting whose test is in tests/preflight/decide",
    "how-to/troubleshooting.md": "it reads logs of what does not run",
    "how-to/update-status.md": "another informer's object",
}


def reasons() -> Iterator[str]:
    """Every constant of those modules that is a reason."""
    for place in PLACES:
        for node in ast.walk(ast.parse((SOURCE / place).read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and NAME.fullmatch(node.value):
                yield node.value


def documented() -> Iterator[str]:
    """The reasons of PreflightFailed and ReleaseAccepted as the table of conditions has them."""
    text = (ROOT / "docs" / "reference" / "spec" / "conditions.md").read_text()
    table = text[text.index("| reason of PreflightFailed") : text.index("Whether or not a preflight")]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| ")][1:]
    rows += [line.split("|")[3] for line in text.splitlines() if line.startswith("| ReleaseAccepted")]
    for row in rows:
        yield from (name for name in re.split(r"[,.\s]+", row) if name)


REASONS = sorted({*reasons(), *documented(), "ReportUnreadable"} - NO_REASON)


@pytest.mark.parametrize("reason", REASONS)
def test_every_reason_has_a_runbook(reason: str) -> None:
    """Whoever reads a reason in a condition finds it on the page."""
    assert re.search(rf"(?<!\w){reason}(?!\w)", TROUBLESHOOTING)


def test_reasons_are_found() -> None:
    """A walk that found nothing would ask for nothing."""
    assert {"TargetNotFound", "ReportStale", "OOMKilled", "UnacceptedRisks", "TargetUnsupported"} <= set(REASONS)


def test_every_runbook_says_what_to_do() -> None:
    """Each section has a meaning, a place to look, and an action."""
    parts = re.split(r"^### ", TROUBLESHOOTING, flags=re.MULTILINE)[1:]
    # One that only leads to another has nothing to say.
    shown = [part for part in parts if "**Means**" in part or not part.split("\n", 1)[1].strip().startswith("See [")]
    lacking = [part.splitlines()[0] for part in shown if not RUNBOOK.search(part)]
    assert lacking == []


def _rows() -> list[tuple[str, str, str]]:
    part = SECURITY[SECURITY.index("## Rights of users") : SECURITY.index("## Rights of the target")]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line[:2] == "| "]
    return [(right, why, needed) for right, why, needed in rows[1:]]


def test_the_rights_of_the_commands_are_those_that_check_asks_for() -> None:
    """The page and `runup check` are one table."""
    rights: list[Right] = [right for right, _ in probe.rights()]
    assert _rows() == [(f"{r.verb} {r.resource}", r.why, "needed" if r.needed else "") for r in rights]


def test_the_role_on_the_page_gives_them_all() -> None:
    """Whoever copies it can do what the table says."""
    found = re.search(r"```yaml\n(.*?kind: ClusterRole\n.*?)```", SECURITY, re.DOTALL)
    assert found is not None
    given = {
        (verb, f"{resource}.{group}".rstrip("."))
        for rule in yaml.safe_load(found[1])["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert {(right.verb, right.resource) for right, _ in probe.rights()} <= given


def test_every_row_of_the_versions_that_go_together_has_its_test() -> None:
    """A version that is promised to go with another one was tried; tools/check_docs.py looks for the tests."""
    text = (ROOT / "docs" / "reference" / "compatibility.md").read_text().partition("## Which versions go together")[2]
    text = text.partition("\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "][1:]
    assert len(rows) > 10
    assert [row[0] for row in rows if "`tests/" not in row[-1] and "`make e2e`" not in row[-1]] == []


def test_every_page_with_commands_is_typed() -> None:
    """By a test that names it, or it is said why not: a new page cannot be forgotten."""
    docs = ROOT / "docs"
    pages = {str(path.relative_to(docs)) for path in docs.rglob("*.md") if "\n```sh\n" in path.read_text()}
    assert pages == TYPED_BY.keys() | NOT_TYPED.keys()
    for page, test in TYPED_BY.items():
        assert Path(page).name in (ROOT / test).read_text(), page


SIZING = (ROOT / "docs" / "reference" / "sizing.md").read_text()
DEPLOYMENTS = {
    "operator": "manifests/0000_00_cluster-version-operator_03_deployment.yaml",
    "update status controller": "update-status/0000_00_update-status-controller_04_deployment.yaml",
    "kernel module preflight": "kernel-module-preflight/04_deployment.yaml",
    "update policy controller": "update-policy/04_deployment.yaml",
    "fleet update controller": "fleet-update/04_deployment.yaml",
}


def _sizes(process: str) -> list[str]:
    """Requests and limits of a process as the page has them: cpu, memory, of the limits again."""
    table = SIZING.partition("\nOver time")[0].splitlines()
    (row,) = (line for line in table if re.match(rf"\| {process}\b", line))
    requests, limited = row.split("|")[2:4]
    return [*requests.split(",")[:2], *limited.split(",")]


@pytest.mark.parametrize("process", DEPLOYMENTS)
def test_the_sizes_on_the_page_are_those_of_the_manifests(process: str) -> None:
    """And so are the numbers of pods, of which the kernel module preflight alone has two."""
    (found,) = (each for each in documents(ROOT / "deploy" / DEPLOYMENTS[process]) if each["kind"] == "Deployment")
    (container,) = found["spec"]["template"]["spec"]["containers"]
    asked = [container["resources"][kind][of] for kind in ("requests", "limits") for of in ("cpu", "memory")]
    assert [each.strip() for each in _sizes(process)] == asked
    two = "two pods" in SIZING.partition(f"| {process}")[2].splitlines()[0]
    assert found["spec"]["replicas"] == (2 if two else 1)
    assert two == (process == "kernel module preflight")


def test_the_sizes_of_a_preflight_are_the_defaults_of_its_settings() -> None:
    """The operator makes its Deployment; no manifest has it."""
    own = Quantities()
    asked = [own.cpu_request, own.memory_request, own.cpu_limit, own.memory_limit]
    assert [each.strip() for each in _sizes("target of a preflight")] == asked


def test_a_preflight_gets_less_than_the_operator() -> None:
    """Processor and memory, requests and limits: the first seed wants a preflight to be the smaller one of both."""
    (found,) = (each for each in documents(ROOT / "deploy" / DEPLOYMENTS["operator"]) if each["kind"] == "Deployment")
    (container,) = found["spec"]["template"]["spec"]["containers"]
    own, preflight = container["resources"], resources_of(Quantities())
    pairs = [(kind, of) for kind in ("requests", "limits") for of in ("cpu", "memory")]
    assert [pair for pair in pairs if not _amount(preflight, pair) < _amount(own, pair)] == []


def _amount(resources: dict[str, dict[str, str]], pair: tuple[str, str]) -> Decimal:
    return parse_quantity(resources[pair[0]][pair[1]])


def test_the_limits_on_the_page_of_sizes_are_those_of_the_code() -> None:
    """Of what is stored, and of what is read at a time."""
    assert f"| UpdateStatus | {limits.MAX_BYTES // 1024} KiB at most;" in SIZING
    assert f"| a report of a preflight | {report.MAX_BYTES >> 20} MiB at most |" in SIZING
    eight = "of Modules that are read at a time, of which there are eight |"
    assert (eight in SIZING, module_check.MAX_CONCURRENT_IMAGES) == (True, 8)
