"""`upgrade recommend`: oc's own example cases byte for byte, and the rules that they do not reach as tables."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import Run, Server

from runup.advice.decide import alert_conditions
from runup.api import clusterversion_json as facts
from runup.cli.advice.recommend_text import Advice, RecommendFlags, advise

CORPUS = Path(__file__).parents[5] / "shared" / "corpus" / "oc-recommend"
EXPECTED = sorted(CORPUS.glob("*output"))
MARK = "-cv.yaml"


def _case(expected: Path) -> tuple[str, list[str]]:
    """The case's name, and the flags that its file represents."""
    for flag in ("output", "show-outdated-releases-output"):
        name = expected.name.removesuffix(f".{flag}")
        if name != expected.name and (CORPUS / f"{name}{MARK}").exists():
            return name, ["--show-outdated-releases"] if flag.startswith("show") else []
    name, _, rest = expected.name.partition(".version-")
    return name, ["--version", rest.removesuffix("-output")]


@pytest.mark.skipif(not EXPECTED, reason="the corpus of oc's cases is not beside this checkout")
@pytest.mark.parametrize("expected", EXPECTED, ids=lambda path: path.name)
def test_ocs_own_cases(expected: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """stdout, and where the command fails what oc's test adds of the error; the real one has it on stderr."""
    (tmp_path / "examples").symlink_to(CORPUS)
    monkeypatch.chdir(tmp_path)
    name, flags = _case(expected)
    ran = run("upgrade", "recommend", *flags, "--mock-clusterversion", f"examples/{name}{MARK}")
    *warnings, last = [*ran.err.splitlines(), ""] if ran.code == 0 else ran.err.splitlines()
    assert ran.out + (f"\n{last}\n" if ran.code else "") == expected.read_text()
    assert not warnings
    assert ran.code == (1 if last else 0)
    assert last.startswith("error: ") is bool(last)


def _alert(name: str, *, state: str = "firing", annotations: dict[str, str] | None = None, **labels: str) -> Any:
    named = {"alertname": name, "namespace": "ns", **labels}
    return {"labels": named, "annotations": annotations or {}, "state": state}


TEXTS = {"summary": "Sum", "description": "Desc.", "message": "Msg.", "runbook_url": "https://r"}
SLOW = "which may slow workload redistribution during rolling node updates."
BARE = "{name}. The alert has no description. <alert does not have a runbook_url annotation>"
ALERTS: dict[str, tuple[Any, str, str]] = {
    "critical comes before every name": (
        _alert("KubeNodeNotReady", severity="critical"),
        "CriticalAlerts",
        "critical alert KubeNodeNotReady firing, suggesting significant cluster issues worth investigating. "
        + BARE.format(name="KubeNodeNotReady"),
    ),
    "a budget at its limit, with its name": (
        _alert("PodDisruptionBudgetAtLimit", severity="warning", poddisruptionbudget="b", annotations=TEXTS),
        "PodDisruptionBudgetAlerts",
        "warning alert PodDisruptionBudgetAtLimit firing, which might slow node drains. "
        "Namespace=ns, PodDisruptionBudget=b. Sum. The alert description is: Desc. | Msg. https://r",
    ),
    "a critical budget, with its name": (
        _alert("PodDisruptionBudgetLimit", severity="critical", poddisruptionbudget="b"),
        "CriticalAlerts",
        "critical alert PodDisruptionBudgetLimit firing, suggesting significant cluster issues worth investigating. "
        "Namespace=ns, PodDisruptionBudget=b. " + BARE.format(name="PodDisruptionBudgetLimit"),
    ),
    "an image that is not pulled": (
        _alert("KubeContainerWaiting", severity="warning", annotations={"message": "M"}),
        "PodImagePullAlerts",
        f"warning alert KubeContainerWaiting firing, {SLOW} KubeContainerWaiting. The alert description is: M "
        "<alert does not have a runbook_url annotation>",
    ),
    "a node": (
        _alert("KubeletHealthState", severity="warning", annotations={"summary": "Ends."}),
        "NodeAlerts",
        f"warning alert KubeletHealthState firing, {SLOW} Ends. The alert has no description. "
        "<alert does not have a runbook_url annotation>",
    ),
    "one that its owner marked": (
        _alert("Mine", openShiftUpdatePrecheck="true"),
        "UpdatePrecheckAlerts",
        " alert Mine firing, suggesting issues worth investigating before updating the cluster. "
        + BARE.format(name="Mine"),
    ),
    "a virtual machine": (
        _alert("VMCannotBeEvicted", severity="warning"),
        "VirtAlerts",
        f"warning alert VMCannotBeEvicted firing, {SLOW} " + BARE.format(name="VMCannotBeEvicted"),
    ),
}
CLASSES = ("CriticalAlerts", "PodDisruptionBudgetAlerts", "PodImagePullAlerts", "NodeAlerts", "UpdatePrecheckAlerts")


@pytest.mark.parametrize("name", ALERTS)
def test_alerts(name: str) -> None:
    """The first class that fits, its phrase, and what the alert says about itself."""
    alert, kind, message = ALERTS[name]
    found, *happy = alert_conditions.checks([alert])
    alertname = alert["labels"]["alertname"]
    assert found.condition == facts.Condition(f"recommended/{kind}/{alertname}/0", "False", "Alert:firing", message)
    assert found.name == alertname
    sad = {kind} | ({"PodDisruptionBudgetAlerts"} if alertname == "PodDisruptionBudgetLimit" else set())
    expected = [f"recommended/{each}" for each in CLASSES if each not in sad]
    assert [check.condition.type for check in happy] == expected
    assert {check.condition.status for check in happy} == {"True"}


def test_alerts_that_say_nothing_of_updates() -> None:
    """Pending, nameless, or of no class; the number in a type counts only those that were taken."""
    ignored = [
        _alert("KubeNodeNotReady", state="pending"),
        _alert("", severity="critical"),
        _alert("Watchdog", severity="none"),
    ]
    found = alert_conditions.checks([*ignored, _alert("X", severity="critical"), _alert("X", severity="critical")])
    types = [check.condition.type for check in found if check.name]
    assert types == ["recommended/CriticalAlerts/X/0", "recommended/CriticalAlerts/X/1"]


def test_rules_list_alerts_too() -> None:
    """A must-gather has the answer about rules, with the alerts inside."""
    rules = {"data": {"groups": [{"rules": [{"alerts": [_alert("A")]}, {"name": "recorded"}]}]}}
    assert [alert["labels"]["alertname"] for alert in alert_conditions.alerts_in_answer(rules)] == ["A"]
    assert alert_conditions.alerts_in_answer([]) == []


IMAGE = "quay.io/ocp@sha256:"
SINCE = {"lastTransitionTime": "2026-01-14T09:30:00Z"}
FINE = [{"type": "Failing", "status": "False", **SINCE}, {"type": "RetrievedUpdates", "status": "True", **SINCE}]
PLAIN = RecommendFlags()


def _plain(version: str) -> dict[str, Any]:
    return {"version": version, "image": IMAGE + version, "url": f"https://{version}"}


def _risky(version: str, status: str = "False", *names: str, message: str = "One.\nTwo.\n") -> dict[str, Any]:
    risks = [{"name": name, "message": f"{name}."} for name in names or ("Risk",)]
    said = {"type": "Recommended", "status": status, "reason": "Risky", "message": message}
    return {"release": _plain(version), "risks": risks, "conditions": [said] if status else []}


def _advice(
    asked: RecommendFlags = PLAIN,
    available: Sequence[str] = (),
    conditional: Sequence[Any] = (),
    conditions: Sequence[Any] = (),
    version: str = "4.16.0",
) -> Advice:
    status = {
        "desired": {"version": version},
        "conditions": [*FINE, *conditions],
        "availableUpdates": [_plain(each) for each in available],
        "conditionalUpdates": [*conditional],
    }
    return advise(facts.read({"spec": {}, "status": status}), (), "", asked)


def _out(advice: Advice, stream: str = "out") -> str:
    return "".join(text for where, text in advice.output if where == stream)


FREE = "no known issues relevant to this cluster"
LONG = "  Version: {0}\n  Image: quay.io/ocp@sha256:{0}\n  Reason: Risky\n  Message: One.\n  Two.\n"
MORE = "And {} older 4.16 updates you can see with '--show-outdated-releases' or '--version VERSION'.\n"
HEAD, ROW = "  VERSION     ISSUES\n", "  {}      " + FREE + "\n"
LISTS: dict[str, tuple[list[str], list[Any], str]] = {
    "two without issues": (["4.16.1", "4.16.2"], [], HEAD + ROW.format("4.16.2") + ROW.format("4.16.1")),
    "an issue first": (
        ["4.16.1"],
        [_risky("4.16.2")],
        "\n" + LONG.format("4.16.2") + "\n" + HEAD + ROW.format("4.16.1"),
    ),
    "an issue second": (["4.16.2"], [_risky("4.16.1")], HEAD + ROW.format("4.16.2") + "\n" + LONG.format("4.16.1")),
    "issues only: no header": (
        [],
        [_risky("4.16.1"), _risky("4.16.2")],
        "\n" + LONG.format("4.16.2") + "\n" + LONG.format("4.16.1"),
    ),
    "a third without an issue after one": (
        ["4.16.1", "4.16.3"],
        [_risky("4.16.2")],
        HEAD + ROW.format("4.16.3") + "\n" + LONG.format("4.16.2") + "\n" + MORE.format(1),
    ),
    "a third with an issue": (
        ["4.16.3", "4.16.2"],
        [_risky("4.16.1")],
        HEAD + ROW.format("4.16.3") + ROW.format("4.16.2") + "\n" + MORE.format(1),
    ),
    "many without issues": (
        ["4.16.1", "4.16.2", "4.16.3", "4.16.4"],
        [],
        HEAD + ROW.format("4.16.4") + ROW.format("4.16.3") + MORE.format(2),
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists(name: str) -> None:
    """Two updates at most, blank lines around those that take several lines, the header only before a row."""
    available, conditional, expected = LISTS[name]
    assert _out(_advice(RecommendFlags(), available, conditional)) == f"\nUpdates to 4.16:\n{expected}"


def test_outdated_releases_are_one_table() -> None:
    """Reasons in the place of messages; what is in both lists is conditional only."""
    advice = _advice(
        RecommendFlags(outdated=True), ["4.16.10", "4.16.2"], [_risky("4.16.2", "Unknown"), _risky("4.17.0")]
    )
    assert _out(advice) == (
        "\nUpdates to 4.17:\n  VERSION     ISSUES\n  4.17.0      Risky\n"
        "\nUpdates to 4.16:\n  VERSION     ISSUES\n  4.16.10     no known issues relevant to this cluster\n"
        "  4.16.2      Risky\n"
    )


UPGRADEABLE = {"type": "Upgradeable", "status": "False", "reason": "AdminAck", "message": "Ack it."}
COUNTED_IN: dict[str, tuple[list[str], list[Any], str]] = {
    "an available minor update": (["4.17.0"], [], "Reason: AdminAck\nMessage: Ack it.\n"),
    "one that was recommended": ([], [_risky("4.17.0", "True")], "Reason: AdminAck\nMessage: Ack it.\n"),
    "one that was not": ([], [_risky("4.17.0")], "Reason: MultipleReasons\nMessage: Ack it.\n  \n  One.\n  Two.\n  \n"),
    "one without a condition": ([], [_risky("4.17.0", "")], "Reason: AdminAck\nMessage: Ack it.\n"),
    "another major": ([], [_risky("5.0.0")], ""),
}


@pytest.mark.parametrize("name", COUNTED_IN)
def test_a_cluster_that_is_not_upgradeable(name: str) -> None:
    """Its reason joins those of every update to a later minor version."""
    available, conditional, expected = COUNTED_IN[name]
    version = conditional[0]["release"]["version"] if conditional else available[0]
    advice = _advice(RecommendFlags(version=version), available, conditional, [UPGRADEABLE])
    assert f"\nUpdate to {version} Recommended=False:\n" in _out(advice)
    assert expected in _out(advice)
    assert advice.issues == {"ConditionalUpdateRisk"}


def test_upgradeable_is_counted_once_and_not_for_patches() -> None:
    """A risk that says the same already is enough; a patch update has nothing to do with it."""
    shown = _risky("4.17.0")
    shown["risks"][0]["message"] = "See: Ack it."
    assert "Reason: Risky\n" in _out(_advice(RecommendFlags(version="4.17.0"), [], [shown], [UPGRADEABLE]))
    assert _advice(RecommendFlags(version="4.16.1"), ["4.16.1"], [], [UPGRADEABLE]).issues == frozenset()


def test_risks_without_a_condition() -> None:
    """oc joins as many empty names as there are risks in front of them; without risks there is no issue at all."""
    advice = _advice(RecommendFlags(version="4.16.1"), [], [_risky("4.16.1", "", "RZ", "RA")])
    said = "Conditional update to 4.16.1 has risks (, , RA, RZ), but no conditions."
    assert f"Recommended=Unknown:\nImage: {IMAGE}4.16.1\nRelease URL: https://4.16.1\nReason: NoConditions\n" in _out(
        advice
    )
    assert f"Message: {said}\n" in _out(advice)
    harmless = {**_risky("4.16.1"), "risks": []}
    assert f"has {FREE}." in _out(_advice(RecommendFlags(version="4.16.1"), [], [harmless]))


MISSING = {
    "nothing is offered": ([], "5.1.0", "no updates available, so cannot display context for the requested release "),
    "no such major": (["4.16.1"], "5.1.0", "no updates to 5 available, so cannot display context for the requested "),
    "no such minor": (["4.16.1"], "4.17.0", "no updates to 4.17 available, so cannot display context for the "),
    "no such version": (
        ["4.16.1"],
        "4.16.2",
        "no update to 4.16.2 available, so cannot display context for the requested release",
    ),
}


@pytest.mark.parametrize("name", MISSING)
def test_a_version_that_is_not_offered(name: str) -> None:
    """The error says how far one gets."""
    available, version, error = MISSING[name]
    assert _advice(RecommendFlags(version=version), available).error.startswith(error)


FAILING = {"type": "Failing", "status": "True", "reason": "R", "message": "A\nB"}
PROGRESSING = {"type": "Progressing", "status": "True", "message": "Working\nhard"}


def _with_trouble(*accept: str) -> Advice:
    said = [FAILING, PROGRESSING, {"type": "RetrievedUpdates", "status": "False", "reason": "N", "message": "M"}]
    status = {"desired": {"version": "4.16.0"}, "conditions": said, "conditionalUpdates": [_risky("4.16.1")]}
    checks = alert_conditions.checks(
        [_alert("Bad", severity="critical"), _alert("Mine", openShiftUpdatePrecheck="true")]
    )
    asked = RecommendFlags(version="4.16.1", accept=frozenset(accept))
    return advise(facts.read({"spec": {"channel": "c"}, "status": status}), checks, "", asked)


def test_everything_that_is_not_accepted_is_an_error() -> None:
    """Sorted, joined by commas."""
    advice = _with_trouble("Progressing")
    assert advice.error == (
        "issues that apply to this cluster but which were not included in --accept: "
        "Bad,CannotRetrieveUpdates,ConditionalUpdateRisk,Failing,Mine"
    )
    assert _out(advice).startswith(
        "Failing=True:\n\n  Reason: R\n  Message: A\n  B\n\n"
        "accepted info: An update is in progress.  You may wish to let this update complete before requesting a new "
        "update.\n  Working\n  hard\n\n"
    )
    assert _out(advice, "err") == "warning: Cannot refresh available updates:\n  Reason: N\n  Message: M\n\n"
    assert "Upstream update service is unset, so the cluster will use an appropriate default.\nChannel: c\n" in _out(
        advice
    )


def test_everything_accepted() -> None:
    """Accepted risks are marked everywhere; details of alerts are omitted once all alerts are accepted."""
    names = ("Bad", "CannotRetrieveUpdates", "ConditionalUpdateRisk", "Failing", "Mine", "Progressing")
    advice = _with_trouble(*names)
    assert advice.error == ""
    assert _out(advice).startswith("accepted Failing=True:\n\n")
    assert (
        "but were explicitly accepted via --accept: recommended/CriticalAlerts/Bad/0, "
        "recommended/UpdatePrecheckAlerts/Mine/1\n\n" in _out(advice)
    )
    assert "recommended/CriticalAlerts/Bad/0=False" not in _out(advice)
    assert "Reason: accepted Risky via ConditionalUpdateRisk\n" in _out(advice)
    end = f"Update to 4.16.1 has {FREE} other than the accepted {','.join(names)}.\n"
    assert _out(advice).endswith(end)


def test_one_alert_accepted() -> None:
    """The others are listed, and the details of all are shown."""
    said = _out(_with_trouble("Bad"))
    assert "accepted via --accept: recommended/CriticalAlerts/Bad/0\n\n" in said
    assert "in updating this cluster to later releases: recommended/UpdatePrecheckAlerts/Mine/1\n\n" in said
    assert "recommended/CriticalAlerts/Bad/0=False:\n\n  Reason: Alert:firing\n" in said


def test_a_cluster_of_which_little_is_known() -> None:
    """No Failing condition is a separate issue, as are prechecks that could not be made."""
    advice = advise(facts.read({}), (), "no token is currently in use for this session", RecommendFlags())
    assert _out(advice) == (
        "Failed to check for at least some preconditions: no token is currently in use for this session\n"
        "No updates available. You may still upgrade to a specific release image with --to-image or wait for new "
        "updates to be available.\n"
    )
    assert advice.issues == {"Failing", "FailedToCompletePrecheck"}
    assert (
        _out(advice, "err") == "warning: No current Failing info, see `oc describe clusterversion` for more details.\n"
    )


def test_versions_that_cannot_be_read() -> None:
    """A warning without a line's end, as oc has it, and the rest is shown."""
    advice = _advice(RecommendFlags(), ["4.16.1", "v5"], [], [UPGRADEABLE], version="4.x")
    assert _out(advice, "err") == (
        'warning: Cannot parse SemVer available update "v5": No Major.Minor.Patch elements found'
        "warning: Cannot inject Upgradeable=False as a conditional update risk: cannot parse SemVer version "
        '"4.x": No Major.Minor.Patch elements found\n\nReason: AdminAck\n  Message: Ack it.\n\n'
    )
    assert "4.16.1" in _out(advice)


CLUSTER = {"kind": "ClusterVersion", "status": {"conditions": FINE, "availableUpdates": [_plain("4.16.1")]}}
FLAGS = {
    "a word": (["bogus", "x"], "unknown command \"bogus x\"\nSee 'runup upgrade recommend -h' for help and examples"),
    "quiet without a version": (["--quiet"], "--quiet can only be set when --version is set"),
    "a version and outdated ones": (
        ["--version", "4.16.1", "--show-outdated-releases"],
        "when --version is set, --show-outdated-releases is unnecessary",
    ),
    "no version": (["--version", "4.16"], 'cannot parse SemVer target "4.16": No Major.Minor.Patch elements found'),
    "two places to read": (
        ["--dump", "x"],
        "--dump and --mock-clusterversion both name files to read; give one of them",
    ),
}


@pytest.mark.parametrize("name", FLAGS)
def test_flags_refused(name: str, run: Run, tmp_path: Path) -> None:
    """Each with its text, nothing on stdout, exit code 1."""
    words, message = FLAGS[name]
    (tmp_path / "a-cv.yaml").write_text(json.dumps(CLUSTER))
    ran = run("upgrade", "recommend", *words, "--mock-clusterversion", tmp_path / "a-cv.yaml")
    assert (ran.code, ran.out, ran.err) == (1, "", f"error: {message}\n")


def test_quiet_prints_the_error_alone(run: Run, tmp_path: Path) -> None:
    """And nothing at all where everything was accepted."""
    (tmp_path / "a-cv.yaml").write_text(json.dumps({"kind": "List", "items": [CLUSTER]}))
    words = ("upgrade", "recommend", "--mock-clusterversion", tmp_path / "a-cv.yaml", "--version=4.16.1", "--quiet")
    ran = run(*words)
    text = "issues that apply to this cluster but which were not included in --accept: AlertNoTestData"
    assert (ran.code, ran.out, ran.err) == (1, "", f"error: {text}\n")
    ran = run(*words, "--accept", "X,AlertNoTestData", "--accept=Y")
    assert (ran.code, ran.out, ran.err) == (0, "", "")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        pytest.param("{", "parsing alerts: unexpected end of JSON input", id="cut off"),
        pytest.param("nonsense", "parsing alerts: invalid character 'n' looking for beginning of value", id="no JSON"),
    ],
)
def test_alerts_that_cannot_be_read(body: str, said: str, run: Run, tmp_path: Path) -> None:
    """An unknown result is an issue, never a pass."""
    (tmp_path / "a-cv.yaml").write_text(json.dumps(CLUSTER))
    (tmp_path / "a-alerts.json").write_text(body)
    ran = run("upgrade", "recommend", "--mock-clusterversion", tmp_path / "a-cv.yaml", "--version=4.16.1")
    assert ran.out.startswith(f"Failed to check for at least some preconditions: {said}\n")
    assert ran.err.endswith("not included in --accept: FailedToCompletePrecheck\n")


def test_a_file_that_is_not_there(run: Run) -> None:
    """As Go names it."""
    ran = run("upgrade", "recommend", "--mock-clusterversion", "nowhere-cv.yaml")
    assert (ran.code, ran.err) == (1, "error: open nowhere-cv.yaml: no such file or directory\n")


@pytest.mark.slow
def test_a_live_cluster(run: Run, server: Server) -> None:
    """Without a token alerts are unavailable, which is reported; a cluster without a ClusterVersion is not ours."""
    server.set_cluster_version(status=CLUSTER["status"])
    ran = run("upgrade", "recommend", "--kubeconfig", server.kubeconfig)
    said = "Failed to check for at least some preconditions: no token is currently in use for this session\n"
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(said)
    assert f"  4.16.1      {FREE}\n" in ran.out
    server.remove_cluster_version()
    ran = run("upgrade", "recommend", "--kubeconfig", server.kubeconfig)
    assert ran.err == (
        "error: No cluster version information available - you must be connected to an OpenShift version 4 server to "
        "fetch the current version\n"
    )
