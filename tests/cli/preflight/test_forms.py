"""A result for other programs: Markdown, JUnit, SARIF. Accepted risks and missing results have reasons."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from kubekit.api.meta_v1 import Condition
from runup.cli.preflight import outputs
from runup.cli.preflight.render import output_formats as forms
from runup.preflight.decide.findings import COMPLETED, FAILED, Findings, Risk, worst_code
from runup.report.report import CheckResult, ReportedCheck, ReportedResource

NOON = datetime(2026, 1, 14, 12, tzinfo=UTC)
DISKS = Risk(
    name="SlowDisks",
    applies="True",
    accepted=False,
    message="Disks are slow.",
    url="https://example.com/disks",
    fix="Take faster ones.",
    severity="critical",
    resources=(ReportedResource(kind="Node", name="a"),),
)
REPORTED = replace(DISKS, name="Told", accepted=True, because="they are new", severity="info", fix="", resources=())
BARE = replace(REPORTED, name="Bare", because="", severity="warning")
UNSURE = replace(DISKS, name="Unsure", applies="Unknown", severity="", message="Who knows.", fix="", resources=())
OVER = replace(DISKS, name="Over", applies="False")
"""A risk that does not apply is not listed."""


def check(name: str, result: CheckResult, message: str = "") -> ReportedCheck:
    """One check's row in a report."""
    return ReportedCheck(name=name, result=result, message=message)


EVALUATED = Findings(
    source="5.0.0",
    target="5.2.0",
    conditions=(Condition(type=COMPLETED, status="True", reason="R"),),
    risks=(DISKS, UNSURE, REPORTED, BARE, OVER),
    checks=(check("etcd", "Clear"), check("old", "Skipped", "not for 5.2.0"), check("disks", "Applies")),
    observed=NOON,
)
FAILURE = Condition(type=FAILED, status="True", reason="NotJudged", message="the dump is *empty*")
FAILED_ONE = forms.ClusterResult(name="beta", findings=Findings(source="5.0.0", target="5.2.0", conditions=(FAILURE,)))
SILENT = forms.ClusterResult(name="gamma", findings=Findings(source="5.0.0", target="5.2.0"))
EVALUATED_ONE = forms.ClusterResult(name="alpha", findings=EVALUATED)


def test_markdown_is_a_list_of_what_is_left_to_do() -> None:
    """A box for each risk, ticked where it was accepted; a fix and a reason only where there is one."""
    assert forms.markdown([EVALUATED_ONE, FAILED_ONE, SILENT]) == (
        "# alpha: 5.0.0 to 5.2.0\n\n"
        "1 risk applies, 1 unknown, 2 accepted, as of 2026-01-14T12:00:00Z.\n\n"
        "- [ ] **SlowDisks** (critical, applies): Disks are slow.\n"
        "  Fix: Take faster ones.\n"
        "- [ ] **Unsure** (unknown severity, unknown): Who knows.\n"
        "- [x] **Bare** (warning, accepted): Disks are slow.\n"
        "- [x] **Told** (info, accepted): Disks are slow.\n"
        "  Why it may stay: they are new\n"
        "\nClear: etcd.\n"
        "Not for this update: old.\n\n"
        "# beta: could not be evaluated\n\nthe dump is \\*empty\\*\n\n"
        "# gamma: could not be evaluated\n\n\n\n"
    )
    nothing = forms.markdown([forms.ClusterResult(name="alpha", findings=replace(EVALUATED, risks=(), checks=()))])
    assert nothing.endswith("\nClear: none.\nNot for this update: none.\n\n")


def test_junit_counts_what_it_lists() -> None:
    """A failure applies, an error is not known, what is accepted or not for this update is skipped."""
    suites = ElementTree.fromstring("".join(forms.junit([EVALUATED_ONE, FAILED_ONE, SILENT])))
    evaluated, failed, silent = suites
    kinds = {case.get("name"): [(kind.tag, kind.get("message")) for kind in case] for case in evaluated}
    assert kinds == {
        "SlowDisks": [("failure", "Disks are slow.")],
        "Unsure": [("error", "Who knows.")],
        "Told": [("skipped", "accepted: they are new")],
        "Bare": [("skipped", "accepted: ")],
        "etcd": [],
        "old": [("skipped", "not for 5.2.0")],
    }
    assert {key: evaluated.get(key) for key in ("name", "tests", "failures", "errors", "skipped")} == {
        "name": "alpha: 5.2.0",
        "tests": "6",
        "failures": "1",
        "errors": "1",
        "skipped": "3",
    }
    assert evaluated[0][0].text == "Take faster ones."
    for suite, message in ((failed, "the dump is *empty*"), (silent, "no result")):
        assert [(case.get("name"), case[0].tag, case[0].get("message")) for case in suite] == [
            ("preflight", "error", message)
        ]
        assert (suite.get("tests"), suite.get("errors")) == ("1", "1")


def test_sarif_has_a_result_for_each_risk_that_stands() -> None:
    """What is not known must be reviewed and has no level; what is accepted is suppressed, and says why."""
    (run,) = json.loads("".join(forms.sarif([EVALUATED_ONE, FAILED_ONE, SILENT])))["runs"]
    shown = {each["ruleId"]: each for each in run["results"]}
    assert {name: (each["kind"], each["level"]) for name, each in shown.items()} == {
        "SlowDisks": ("fail", "error"),
        "Unsure": ("review", "none"),
        "Told": ("fail", "note"),
        "Bare": ("fail", "warning"),
    }
    assert {name: each["suppressions"][0] for name, each in shown.items() if "suppressions" in each} == {
        "Told": {"kind": "external", "justification": "they are new"},
        "Bare": {"kind": "external", "justification": "accepted in the cluster"},
    }
    assert [name for each in shown["SlowDisks"]["locations"] for name in each["logicalLocations"]] == [
        {"fullyQualifiedName": "alpha: Node a"}
    ]
    assert shown["Bare"]["locations"][0]["logicalLocations"] == [{"fullyQualifiedName": "alpha"}]
    rules = {rule["id"]: rule["help"]["text"] for rule in run["tool"]["driver"]["rules"]}
    assert (rules["SlowDisks"], rules["Unsure"]) == ("Take faster ones.", "Who knows.")
    assert [each["executionSuccessful"] for each in run["invocations"]] == [True, False, False]
    assert [each["toolExecutionNotifications"][0]["message"]["text"] for each in run["invocations"][1:]] == [
        "beta: the dump is *empty*",
        "gamma: no result",
    ]


@pytest.mark.parametrize(
    ("fail_on", "code"),
    [("unknown", 2), ("info", 2), ("warning", 2), ("critical", 2), ("never", 0)],
)
def test_what_applies_and_is_as_grave_counts(fail_on: str, code: int) -> None:
    """The gravest that is open is critical; what is accepted is not open."""
    assert replace(EVALUATED, fail_on=fail_on).exit_code == code
    milder = replace(EVALUATED, risks=(replace(DISKS, severity="info"), REPORTED, BARE))
    assert replace(milder, fail_on=fail_on).exit_code == (2 if fail_on in ("unknown", "info") else 0)
    unsaid = replace(EVALUATED, risks=(replace(DISKS, severity=""), UNSURE))
    assert replace(unsaid, fail_on=fail_on).exit_code == (2 if fail_on in ("unknown", "info", "warning") else 0)


@pytest.mark.parametrize(
    ("codes", "code"),
    [([], 0), ([0, 0], 0), ([0, 3], 3), ([3, 2, 0], 2), ([2, 1, 3], 1)],
    ids=["none", "clear", "not known", "risks", "not judged"],
)
def test_the_worst_of_several_clusters(codes: list[int], code: int) -> None:
    """One that could not be evaluated, then one with risks, then one of which not all is known."""
    assert worst_code(codes) == code


@pytest.mark.parametrize("fail_on", ["critical", "warning", "info", "unknown", "never"])
def test_what_was_not_judged_fails_whatever_counts(fail_on: str) -> None:
    """And what is clear never does."""
    assert replace(FAILED_ONE.findings, fail_on=fail_on).exit_code == 1
    assert replace(EVALUATED, risks=(OVER, REPORTED), fail_on=fail_on).exit_code == 0
    unknown = replace(EVALUATED, risks=(UNSURE,))
    assert replace(unknown, fail_on=fail_on).exit_code == (3 if fail_on == "unknown" else 0)
    odd = replace(EVALUATED, risks=(replace(DISKS, severity="odd"),))
    assert replace(odd, fail_on=fail_on).exit_code == (2 if fail_on in ("unknown", "info", "warning") else 0)
    for severity, counts in (("critical", 4), ("warning", 3), ("info", 2)):
        found = replace(EVALUATED, risks=(replace(DISKS, severity=severity),))
        order = ("critical", "warning", "info", "unknown", "never")
        assert replace(found, fail_on=fail_on).exit_code == (2 if 4 - counts <= order.index(fail_on) < 4 else 0)


def test_many_clusters_are_a_line_each() -> None:
    """Numbers and the three gravest; why one could not be evaluated, in a line."""
    many = tuple(replace(DISKS, name=f"R{place}") for place in range(4))
    one = forms.ClusterResult(name="delta", findings=replace(EVALUATED, risks=(*many, UNSURE, REPORTED)))
    wordy = forms.ClusterResult(
        name="eps",
        findings=Findings(source="5.0.0", target="5.2.0", conditions=(replace(FAILURE, message="one\ntwo"),)),
    )
    (text,) = forms.table_of([one, wordy, SILENT])
    assert text.splitlines() == [
        "CLUSTER   FROM    TO      RESULT        APPLY   UNKNOWN   ACCEPTED   GRAVEST",
        "delta     5.0.0   5.2.0   RisksApply    4       1         1          R0, R1, R2",
        "eps       5.0.0   5.2.0   CouldNotRun   -       -         -          one",
        "gamma     5.0.0   5.2.0   CouldNotRun   -       -         -          -",
    ]


@pytest.mark.parametrize(
    ("lacking", "collect", "said"),
    [
        (
            ("Node",),
            "",
            "The dump does not have all of 1 kind that checks without a result read: Node. Collect it, too.\n",
        ),
        (
            ("Node", "Pod"),
            "",
            "The dump does not have all of 2 kinds that checks without a result read: Node, Pod. Collect them, too.\n",
        ),
        (
            ("Node", "Pod"),
            "runup dump collect x",
            "The dump does not have all of 2 kinds that checks without a result read. Where the cluster can be "
            "reached, collect a dump that has them:\n  runup dump collect x\n",
        ),
    ],
    ids=["one kind", "two kinds", "a command that collects them"],
)
def test_what_to_collect(lacking: tuple[str, ...], collect: str, said: str) -> None:
    """Below the result; where nothing lacks nothing is said."""
    one = forms.ClusterResult(name="alpha", findings=EVALUATED, lacking=lacking, collect=collect)
    whole = forms.text(EVALUATED_ONE)
    assert forms.text(one) == f"{whole}\n{said}"
    assert forms.data(one)["lacking"] == list(lacking)
    assert "lacking" not in forms.data(EVALUATED_ONE)
    assert forms.data(EVALUATED_ONE)["cluster"] == "alpha"


def test_markup_of_others_is_none_of_ours() -> None:
    """Each character that Markdown knows is escaped, lines become one; XML has no control characters."""
    odd = forms.ClusterResult(
        name="a_b", findings=replace(EVALUATED, risks=(replace(DISKS, message="*_[]<>#|`\\ and\n  so\x1b on\t"),))
    )
    assert "): \\*\\_\\[\\]\\<\\>#\\|\\`\\\\ and so\x1b on\n" in forms.markdown([odd])
    assert forms.markdown([odd]).startswith("# a\\_b: 5.0.0 to 5.2.0\n")
    (suite,) = ElementTree.fromstring("".join(forms.junit([odd])))
    assert suite[0][0].get("message") == "*_[]<>#|`\\ and\n  so on\t"
    assert "".join(forms.junit([odd])).startswith(
        "<?xml version='1.0' encoding='utf-8'?>\n<testsuites name=\"runup preflight\">\n  <"
    )


def test_sarif_names_its_maker_and_each_rule_once() -> None:
    """Whatever number of clusters has the risk."""
    text = "".join(forms.sarif([EVALUATED_ONE, EVALUATED_ONE]))
    document = json.loads(text)
    (run,) = document["runs"]
    assert (document["version"], run["tool"]["driver"]["name"]) == ("2.1.0", "runup")
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["SlowDisks", "Unsure", "Told", "Bare"]
    assert len(run["results"]) == 8
    assert run["results"][0]["message"] == {"text": "alpha: Disks are slow."}
    assert {rule["helpUri"] for rule in run["tool"]["driver"]["rules"]} == {"https://example.com/disks"}
    note = json.loads("".join(forms.sarif([FAILED_ONE])))["runs"][0]["invocations"][0]["toolExecutionNotifications"][0]
    assert note["level"] == "error"
    assert text.endswith("}\n")


def test_a_page_is_of_one_cluster() -> None:
    """As of when it was looked at."""
    html = forms.html([EVALUATED_ONE, FAILED_ONE])
    assert "As of <strong>2026-01-14 12:00 UTC</strong>" in html
    assert "<strong>alpha</strong>" in html
    assert "beta" not in html


NODE = 'The master nodes not ready: node "m-1" not ready since 2026 because KubeletNotReady (no network) (since 2026).'
FOLLOWS = tuple(
    replace(DISKS, name=f"ClusterOperatorDegraded-{name}", message=f"{name} is degraded: {NODE}", resources=())
    for name in ("etcd", "kube-apiserver")
)
DNS = (ReportedResource(group="config.openshift.io", kind="ClusterOperator", namespace="", name="dns"),)
DOWN = replace(DISKS, name="ClusterOperatorNotAvailable-dns", message="dns is down: A: no pods", resources=DNS)
HELD = replace(
    DOWN, name="ClusterOperatorUpgradeable-dns", message="dns is held: Zone: a zone", fix="Wait.", severity=""
)
LACKS = replace(UNSURE, name="PodsUnknown", message="No pods.", lacking=("pods",))
BY_CAUSE = replace(EVALUATED, risks=(*FOLLOWS, DOWN, HELD, LACKS), of_dump=True, checks=())


def test_a_checklist_has_the_risks_of_a_cause_below_it() -> None:
    """In full only with a separate remedy; a node without a risk is an entry by its words; what is missing last."""
    text = forms.markdown([forms.ClusterResult(name="alpha", findings=BY_CAUSE)])
    assert text.partition("\n\n")[2].partition("\n\nClear:")[0] == (
        "4 risks apply, 1 unknown, as of 2026-01-14T12:00:00Z.\n\n"
        "- [ ] **ClusterOperatorNotAvailable-dns** (critical, applies): dns is down: A: no pods\n"
        "  Fix: Take faster ones.\n"
        "  - [ ] **ClusterOperatorUpgradeable-dns** (unknown severity, applies): dns is held: Zone: a zone\n"
        "    Fix: Wait.\n"
        "- [ ] **Node m-1 is not ready: no network.** (critical)\n"
        "  Fix: Bring it back: `oc describe node m-1`.\n"
        "  - [ ] **ClusterOperatorDegraded-etcd** (critical, applies)\n"
        "  - [ ] **ClusterOperatorDegraded-kube-apiserver** (critical, applies)\n"
        "\n1 check has no result: the dump does not have all pods. Not fully checked: drains.\n"
        "Unknown: PodsUnknown."
    )


def test_junit_names_the_cause_of_each_risk() -> None:
    """Every risk stays a separate case; what lacked objects says which."""
    (suite,) = ElementTree.fromstring("".join(forms.junit([forms.ClusterResult(name="alpha", findings=BY_CAUSE)])))
    cases = {case.get("name"): (case[0].tag, case[0].get("message"), case[0].text) for case in suite}
    assert cases["ClusterOperatorUpgradeable-dns"][2] == "Cause: ClusterOperatorNotAvailable-dns\nWait."
    assert cases["ClusterOperatorNotAvailable-dns"][2] == "Take faster ones."
    assert (cases["ClusterOperatorDegraded-etcd"][2] or "").splitlines()[
        0
    ] == "Cause: Node m-1 is not ready: no network."
    assert cases["PodsUnknown"] == ("error", "not all could be read: pods", "No pods.")
    assert suite.get("tests") == "5"


def test_data_has_causes_and_what_is_missing() -> None:
    """By the names of risks, in the order of the text; each risk names its cause."""
    data = forms.data(forms.ClusterResult(name="alpha", findings=BY_CAUSE))
    assert [(cause["name"], cause["node"], cause["risks"]) for cause in data["causes"]] == [
        (DOWN.name, None, [DOWN.name, HELD.name]),
        (FOLLOWS[0].name, "m-1", [each.name for each in FOLLOWS]),
    ]
    assert data["missing"] == {"kinds": ["pods"], "subjects": ["drains"], "risks": ["PodsUnknown"]}
    assert {risk["name"]: risk["cause"] for risk in data["risks"]} == {
        DOWN.name: DOWN.name, HELD.name: DOWN.name, FOLLOWS[0].name: FOLLOWS[0].name,
        FOLLOWS[1].name: FOLLOWS[0].name, "PodsUnknown": None,
    }  # fmt: skip


def test_every_form_of_the_table_has_its_renderers_and_its_row_in_the_page() -> None:
    """The table names functions that exist; docs/reference/cli.md lists the forms of both commands."""
    page = (Path(__file__).parents[3] / "docs" / "reference" / "cli.md").read_text()
    for name, form in outputs.FORMS.items():
        for place in filter(None, (form.preflight, form.fleet)):
            module, _, function = place.partition(":")
            assert callable(getattr(import_module(module), function)), name
    assert f"| `-o`, `--output` | {', '.join(f'`{name}`' for name in outputs.PREFLIGHT_FORMS)} |" in page
    assert all(name in page for name in outputs.FLEET_FORMS)


def as_text(form: str, *results: forms.ClusterResult) -> str:
    """Returns the results in an output form."""
    return "".join(map(str, outputs.render(form, outputs.Shown(results=results))))


def test_github_has_a_command_for_each_open_risk() -> None:
    """The worst come first, because a step shows ten; a cluster that could not be evaluated is an error."""
    assert as_text("github", FAILED_ONE, EVALUATED_ONE) == (
        "::error title=beta%3A preflight::the dump is *empty*\n"
        "::error title=alpha%3A SlowDisks::Disks are slow. Fix: Take faster ones.\n"
        "::warning title=alpha%3A Unsure::Who knows.\n"
    )


def test_a_message_cannot_be_a_command_of_github() -> None:
    """The escapes of actions/toolkit: a separate line would be run as a command."""
    message = "50%\r\n::set-env name=X::y"
    findings = replace(EVALUATED, risks=(replace(DISKS, message=message, fix=""),))
    hostile = forms.ClusterResult(name="a,b:c", findings=findings)
    assert as_text("github", hostile) == ("::error title=a%2Cb%3Ac%3A SlowDisks::50%25%0D%0A::set-env name=X::y\n")


def test_gitlab_has_an_entry_for_each_open_risk() -> None:
    """Each has all fields that Code Quality requires, and the same fingerprint in every run."""
    shown = json.loads(as_text("gitlab", FAILED_ONE, EVALUATED_ONE))
    assert [(each["check_name"], each["severity"], each["description"]) for each in shown] == [
        ("preflight", "critical", "beta: the dump is *empty*"),
        ("SlowDisks", "critical", "alpha: Disks are slow. Fix: Take faster ones."),
        ("Unsure", "major", "alpha: Who knows."),
    ]
    assert {each["location"]["path"] for each in shown} == {"alpha", "beta"}
    assert all(each["location"]["lines"] == {"begin": 1} for each in shown)
    assert len({each["fingerprint"] for each in shown}) == 3
    assert shown == json.loads(as_text("gitlab", FAILED_ONE, EVALUATED_ONE))


def test_csv_has_a_row_for_each_risk_and_no_formula() -> None:
    """A spreadsheet would evaluate a message that begins like a formula."""
    formula = replace(EVALUATED, risks=(replace(DISKS, message='=HYPERLINK("http://x")'),))
    failed = forms.ClusterResult(name="beta", findings=FAILED_ONE.findings, tried=NOON)
    text = as_text("csv", failed, forms.ClusterResult(name="-alpha", findings=formula))
    assert text == (
        "cluster,clusterID,source,target,judged,observed,risk,severity,applies,state,accepted,because,message,objects\n"
        "beta,,5.0.0,5.2.0,false,2026-01-14T12:00:00Z,,,,,,,the dump is *empty*,\n"
        "'-alpha,,5.0.0,5.2.0,true,2026-01-14T12:00:00Z,SlowDisks,critical,True,applies,false,,"
        '"\'=HYPERLINK(""http://x"")",1\n'
    )
