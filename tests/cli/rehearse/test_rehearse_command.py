"""`runup rehearse` as it is typed: the commands of its page, exit codes, errors, and what it leaves behind."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
import structlog
from tests.cli.commands import Run

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "how-to" / "rehearsal.md").read_text()
TYPED = [
    line for block in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) for line in block.splitlines()
]
SHOWN = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
DUMP, RELEASE = "examples/rehearsal/cluster", "examples/rehearsal/release"
# Exit codes by what is typed last: the way to 1.36 removes what the dump does not have.
CODES = {"--to-kubernetes 1.36": 3}
GONE = {
    "apiVersion": "example.org/v1",
    "kind": "Widget",
    "metadata": {
        "name": "small",
        "namespace": "openshift-example",
        "annotations": {
            "include.release.openshift.io/self-managed-high-availability": "true",
            "release.openshift.io/delete": "true",
        },
    },
}
BROKEN = {
    "RehearsalFieldsPruned-widgets.example.org",
    "RehearsalImmutableField-Deployment-openshift-example-web",
    "RehearsalObjectRefused-widgets.example.org",
    "RehearsalObjectTolerated-widgets.example.org",
    "RehearsalOverwritten-ConfigMap-openshift-example-settings",
    "RehearsalRefusedByPolicy-owned",
    "RehearsalRightsNarrow-ClusterRole-example-viewer",
    "RehearsalWebhook-guard-guard.example.org",
}


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Type from the root of the checkout, with a temporary folder of the test's own."""
    monkeypatch.chdir(ROOT)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    return scratch


@pytest.mark.parametrize("line", TYPED)
def test_what_the_page_types(line: str, run: Run, at_the_root: Path) -> None:
    """Every command of the page ends as the page says, and leaves nothing behind."""
    words = shlex.split(line)
    assert words[:2] == ["runup", "rehearse"]
    ran = run(*words[1:])
    expected = next((code for end, code in CODES.items() if line.endswith(end)), 2)
    assert (ran.code, list(at_the_root.iterdir())) == (expected, [])


def test_what_the_page_shows(run: Run) -> None:
    """The lines that the page shows are printed, in their order."""
    ran = run("rehearse", "--dump", DUMP, "--release-dir", RELEASE)
    printed = [*ran.err.splitlines(), *ran.out.splitlines()]
    shown = [line.removesuffix(" ...") for block in SHOWN for line in block.splitlines()]
    places = [next(i for i, line in enumerate(printed) if line.startswith(each)) for each in shown]
    assert places == sorted(places)


def test_the_findings_of_the_example(run: Run) -> None:
    """The example has a fault of each kind, and the data of the plan has the objects behind them."""
    data = json.loads(run("rehearse", "--dump", DUMP, "--release-dir", RELEASE, "-o", "json").out)
    assert {risk["name"] for risk in data["risks"]} == BROKEN
    plan = data["rehearsal"]
    by_object = {each["object"]: each for each in plan["changes"]}
    (level,) = by_object["ConfigMap openshift-example/settings"]["fields"]
    assert level == {
        "path": "data.log-level",
        "before": "debug",
        "after": "warning",
        "weight": "other",
        "lostFrom": ["kubectl-edit"],
    }
    stored = {one["object"]: one for each in plan["storedObjects"] for one in each["objects"]}
    assert stored["Widget.example.org openshift-example/red"]["pruned"] == ["spec.colour"]
    assert "Widget.example.org openshift-example/small" not in stored
    assert plan["rights"][0]["lost"] == ["list pods"]


@pytest.fixture(params=[False, True], ids=["as it comes", "configured"])
def logging_as_before(request: pytest.FixtureRequest) -> Iterator[None]:
    """Nothing has configured structlog, or something has; the test leaves that as it was."""
    configured, before = structlog.is_configured(), structlog.get_config()
    structlog.reset_defaults()
    if request.param:
        structlog.configure(logger_factory=structlog.PrintLoggerFactory())
    given = structlog.is_configured(), structlog.get_config()
    yield
    assert (structlog.is_configured(), structlog.get_config()) == given
    structlog.configure(**before)
    if not configured:
        structlog.reset_defaults()


@pytest.mark.usefixtures("logging_as_before")
def test_the_answer_alone_is_on_stdout(run: Run, tmp_path: Path) -> None:
    """Log lines of an operator that applies the release, such as deletions, are not in the output."""
    release = tmp_path / "release"
    shutil.copytree(RELEASE, release)
    (release / "release-manifests" / "0000_25_gone.yaml").write_text(json.dumps(GONE))
    ran = run("rehearse", "--dump", DUMP, "--release-dir", release, "-o", "json")
    changes = {each["object"]: each["action"] for each in json.loads(ran.out)["rehearsal"]["changes"]}
    assert changes["Widget.example.org openshift-example/small"] == "delete"
    assert "deleted" not in ran.err


def test_a_stuck_operator_holds_up_what_comes_after_it(run: Run) -> None:
    """The update waits for the component that was declared stuck."""
    ran = run("rehearse", "--dump", DUMP, "--release-dir", RELEASE, "--operators", "stuck:b", "-o", "json")
    names = {risk["name"] for risk in json.loads(ran.out)["risks"]}
    assert names - BROKEN == {"RehearsalWaits-ClusterOperator-b"}


def test_junit_has_a_case_for_each_finding(run: Run) -> None:
    """A risk that applies is a failure, an unknown one an error."""
    ran = run("rehearse", "--dump", DUMP, "--release-dir", RELEASE, "-o", "junit")
    cases = ElementTree.fromstring(ran.out).iter("testcase")
    failed = {case.get("name") for case in cases if case.find("failure") is not None or case.find("error") is not None}
    assert failed == BROKEN


def test_the_page_has_the_plan(run: Run) -> None:
    """One page has the findings, the plan with each field, and what the copy holds."""
    ran = run("rehearse", "--dump", DUMP, "--release-dir", RELEASE, "-o", "html")
    for words in (
        "Plan of changes",
        "data.log-level: debug -&gt; warning (set by kubectl-edit: lost)",
        "field is immutable",
    ):
        assert words in ran.out
    assert ran.out.count("<h2>The copy</h2>") == 1
    # Its own title, and its own command: no preflight would take the suppression of a rehearsal's risk.
    assert ">Rehearsal of 5.1.0 from 5.0.0<" in ran.out
    assert "runup rehearse --suppressions FILE" in ran.out
    assert "preflight run --suppressions" not in ran.out


BINDINGS = "clusterrolebindings.rbac.authorization.k8s.io"


@pytest.mark.parametrize(
    "remove",
    [
        pytest.param(lambda file: file.unlink(), id="missing"),
        pytest.param(lambda file: file.write_text(""), id="empty"),
        pytest.param(lambda file: file.write_bytes(file.read_bytes()[:200]), id="cut"),
        pytest.param(lambda file: file.write_text('{"kind": "List", "items": []}'), id="without its items"),
    ],
)
def test_does_not_know_who_has_a_role_without_the_bindings(
    remove: Callable[[Path], object], run: Run, tmp_path: Path
) -> None:
    """That nobody has a role is concluded only from all bindings (`RehearsalRightsNarrow` is info then)."""
    dump = shutil.copytree(DUMP, tmp_path / "dump")
    remove(dump / f"{BINDINGS}.json")
    ran = run("rehearse", "--dump", dump, "--release-dir", RELEASE, "-o", "json")
    (narrow,) = [risk for risk in json.loads(ran.out)["risks"] if risk["name"].startswith("RehearsalRightsNarrow")]
    assert narrow["severity"] == "warning"
    assert "; who has it is not known, loses 1 right" in narrow["message"]
    assert BINDINGS in json.loads(ran.out)["missing"]["kinds"]


def test_suppressed_risks_are_lived_with(run: Run, tmp_path: Path) -> None:
    """With everything suppressed nothing is open."""
    file = tmp_path / "suppressions.yaml"
    file.write_text("suppressions:\n- {risk: 'Rehearsal*', reason: known}\n")
    ran = run("rehearse", "--dump", DUMP, "--release-dir", RELEASE, "--suppressions", file)
    assert ran.code == 0, ran.err


@pytest.mark.parametrize(
    ("words", "seen"),
    [
        pytest.param((), "name the target: --to", id="no target"),
        pytest.param(("--to-image", "oci:x", "--release-dir", RELEASE), "give one of them", id="two releases"),
        pytest.param(("--to-kubernetes", "1.36", "--to", "5.1.0"), "leave out the other targets", id="two targets"),
        pytest.param(("--release-dir", "nowhere"), "--release-dir nowhere: there is no such folder", id="no folder"),
        pytest.param(("--release-dir", "/"), "--release-dir /: there is no file in manifests/,", id="no release"),
        pytest.param(("--to", "5.9.0"), "not offered 5.9.0: name its release image with --to-image", id="not offered"),
        pytest.param(("--release-dir", RELEASE, "--to", "5.2.0"), "the release is 5.1.0", id="another version"),
        pytest.param(("--release-dir", RELEASE, "--operators", "slow:b"), "only stuck:NAME is known", id="a word"),
        pytest.param(
            ("--release-dir", RELEASE, "--operators", "stuck:x"), "has no ClusterOperator x", id="unknown operator"
        ),
        pytest.param(("--to-kubernetes", "1.36"), "its Kubernetes comes with a release", id="a cluster of releases"),
        pytest.param(
            ("--release-dir", RELEASE, "--max-objects", "5"),
            "more than 5 objects; `runup rehearse --max-objects` takes more",
            id="too many",
        ),
    ],
)  # fmt: skip
def test_errors_name_the_way_out(words: tuple[str, ...], seen: str, run: Run) -> None:
    """An error names what was typed, and what to type instead."""
    ran = run("rehearse", "--dump", DUMP, *words)
    assert (ran.code, seen in ran.err) == (1, True), ran.err


@pytest.mark.parametrize(
    ("version", "seen"),
    [
        pytest.param("newest", "'newest' is not a version of Kubernetes such as 1.36", id="no version"),
        pytest.param("1.33", "the cluster runs 1.34.0 already", id="an older one"),
    ],
)
def test_versions_of_kubernetes(version: str, seen: str, run: Run) -> None:
    """An invalid version, or one that is not newer, is named."""
    ran = run("rehearse", "--dump", "examples/plain-kubernetes", "--to-kubernetes", version)
    assert (ran.code, seen in ran.err) == (1, True), ran.err


def test_a_cluster_without_releases(run: Run) -> None:
    """Without a ClusterVersion no release is applied, and the error says what to ask instead."""
    ran = run("rehearse", "--dump", "examples/plain-kubernetes", "--release-dir", RELEASE)
    assert (ran.code, "`runup rehearse --to-kubernetes VERSION` shows" in ran.err) == (1, True), ran.err
