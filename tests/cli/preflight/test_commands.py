"""`preflight history|compare|explain`: from ClusterVersion and the stored reports, as text and as data."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.cli.commands import Run, Server, cluster

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.error_types import InputError
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from runup.cli.preflight.render import history_tables as rendered
from runup.cli.preflight.render.explain import explain_risk
from runup.cli.preflight.render.finding_texts import as_data, verdict
from runup.preflight.decide import stored_reports
from runup.preflight.decide.findings import findings_of_target
from runup.preflight.decide.stored_reports import History
from runup.report.report import FORMAT, Report, ReportedCheck, ReportedResource, ReportedRisk

NAMESPACE = "runup-cli-tests"
WHEN = datetime(2026, 1, 14, 10, 0, tzinfo=UTC)
IMAGE = "quay.io/ocp/release@sha256:" + "a" * 64


def _report(target: str, *risks: ReportedRisk, minute: int = 0, **changes: Any) -> Report:
    fields: dict[str, Any] = {
        "format": FORMAT,
        "preflight_id": f"preflight-of-{target}",
        "source_version": "5.0.0",
        "target_version": target,
        "target_image": IMAGE,
        "execution_status": "completed",
        "observed_time": WHEN.replace(minute=minute),
        "checks": (ReportedCheck(name="Networking", result="Applies"), ReportedCheck(name="Nodes", result="Clear")),
        "risks": risks,
    }
    return Report(**fields | changes)


DUAL = ReportedRisk(
    name="DualStackIncompatible",
    message="Dual-stack networking is used.",
    url="https://example.com/dual",
    severity="critical",
    remediation="Remove the IPv6 range.\nSee the networking guide.",
    resources=(ReportedResource(group="config.openshift.io", kind="Network", name="cluster"),),
)
PAUSED = ReportedRisk(name="MachineConfigPoolPaused-infra", message="Pool infra is paused.")
DIM = ReportedRisk(name="Dim", message="Could not be listed.", applies="Unknown")
FOUND = History(reports=(_report("5.2.0", DUAL, PAUSED, minute=5), _report("5.1.0", PAUSED, DIM)))


def test_history() -> None:
    """One line a report, the newest first, what applies and what could not be distinguished."""
    assert rendered.history(FOUND).splitlines() == [
        "TARGET   SOURCE   STATUS      APPLY   UNKNOWN   ACCEPTED   CHECKS   OBSERVED               PREFLIGHT",
        "5.2.0    5.0.0    completed   2       0         0          2        2026-01-14T10:05:00Z   preflight-of-5.2.0",
        "5.1.0    5.0.0    completed   1       1         0          2        2026-01-14T10:00:00Z   preflight-of-5.1.0",
    ]


def test_comparison() -> None:
    """New, gone and the same risks, by name."""
    compared = rendered.compare(rendered.pick(FOUND, "5.1.0", "5.0.0"), rendered.pick(FOUND, "5.2.0", "5.0.0"))
    assert rendered.comparison(compared) == (
        "From 5.1.0 to 5.2.0, as checked on 5.0.0: 1 new, 1 gone, 1 in both\n"
        "\nOnly for 5.2.0:\n"
        "  SEVERITY   STATE     RISK                    MESSAGE\n"
        "  critical   applies   DualStackIncompatible   Dual-stack networking is used.\n"
        "\nOnly for 5.1.0:\n"
        "  SEVERITY   STATE     RISK   MESSAGE\n"
        "  warning    unknown   Dim    Could not be listed.\n"
        "\nFor both:\n"
        "  SEVERITY   STATE     RISK                            MESSAGE\n"
        "  warning    applies   MachineConfigPoolPaused-infra   Pool infra is paused.\n"
    )


def test_comparison_with_an_unfinished_report() -> None:
    """A report that is not complete may lack risks, and that is said."""
    running = _report("5.3.0", execution_status="running")
    text = rendered.comparison(rendered.compare(FOUND.reports[0], running))
    assert "warning: the report of 5.3.0 is running: it may lack risks\n" in text
    assert "\nOnly for 5.3.0: none\n" in text


def _applies(status: str, reason: str = "PreflightValidation") -> list[dict[str, str]]:
    when = "2026-01-14T09:30:00Z"
    return [{"type": "Applies", "status": status, "reason": reason, "message": "m", "lastTransitionTime": when}]


def _risk(name: str, status: str, message: str, reason: str = "PreflightValidation") -> dict[str, Any]:
    rules = [{"type": "Always"}]
    url = f"https://example.com/{name}"
    return {
        "name": name,
        "message": message,
        "url": url,
        "matchingRules": rules,
        "conditions": _applies(status, reason),
    }


PAGES = Path(__file__).parents[3] / "docs" / "reference" / "checks"
AWAY = """\
apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: here, user: me}}]
clusters: [{name: here, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: me, user: {}}]
"""
BOTH = "Preflight=5.1.0: Older words.\nPreflight=5.2.0: Newer words."
STATUS = {
    "desired": {"version": "5.0.0", "image": "x"},
    "conditionalUpdates": [
        {
            "release": {"version": "5.2.0", "image": IMAGE},
            "riskNames": ["DualStackIncompatible", "Shared", "SlowNodeDrain"],
            "risks": [
                _risk("DualStackIncompatible", "True", "Preflight=5.2.0: Dual-stack networking is used."),
                _risk("Shared", "Unknown", BOTH, "PreflightPartial"),
                _risk("SlowNodeDrain", "True", "Draining is slow.", "Match"),
            ],
        }
    ],
}
CLUSTER = cluster({"spec": {"clusterID": "x"}, "status": STATUS})
WATCHING = {"status": "True", "reason": "Watching", "message": "m", "lastTransitionTime": "2026-01-14T09:30:00Z"}
LIVE = cluster(
    {
        "spec": {"clusterID": "x", "desiredUpdate": {"mode": "Preflight", "version": "5.2.0"}},
        "status": {
            **STATUS,
            "conditions": [{"type": type_, **WATCHING} for type_ in ("PreflightRunning", "PreflightCompleted")],
        },
    }
)


def test_a_target_s_findings_join_status_and_report() -> None:
    """ClusterVersion decides; the report adds remedies; a shared risk shows this target's line alone."""
    found = {risk.name: risk for risk in findings_of_target(LIVE, FOUND, "5.2.0").risks}
    assert (found["DualStackIncompatible"].fix, found["DualStackIncompatible"].severity) == (
        DUAL.remediation,
        "critical",
    )
    assert (found["Shared"].message, found["Shared"].applies) == ("Newer words.", "Unknown")
    assert (found["SlowNodeDrain"].message, found["SlowNodeDrain"].from_preflight) == ("Draining is slow.", False)
    assert list(found) == ["DualStackIncompatible", "SlowNodeDrain", "Shared"]


def test_a_report_s_risk_that_status_does_not_carry_does_not_count() -> None:
    """The paused pool was fixed since: the operator's status is what holds."""
    assert "MachineConfigPoolPaused-infra" not in [risk.name for risk in findings_of_target(LIVE, FOUND, "5.2.0").risks]


@pytest.mark.parametrize(
    ("name", "page", "targets"),
    [
        ("SlowNodeDrain", "", ["5.2.0"]),
        ("SlowNodeDrain", "It takes long.", ["5.2.0"]),
        ("DisappearedLongAgo", "It was so.", []),
    ],
    ids=["without a page", "with a page", "a page alone"],
)
def test_a_risk_is_explained_by_whatever_mentions_it(name: str, page: str, targets: list[str]) -> None:
    """An update that has it, a page about it, or both."""
    found = explain_risk(CLUSTER, FOUND, name, page)
    assert [target for target, _ in found.by_target] == targets
    assert found.page == page


def test_a_risk_that_nothing_mentions_is_an_error() -> None:
    """It may be mistyped."""
    with pytest.raises(InputError, match='no update of this cluster has a risk "SlowNodeDrian"; did you mean'):
        explain_risk(CLUSTER, FOUND, "SlowNodeDrian", "")


OTHER_IMAGE = "quay.io/ocp/release@sha256:" + "b" * 64


@pytest.mark.parametrize(
    ("asked", "target", "shown"),
    [
        pytest.param({"image": IMAGE}, ("", IMAGE), True, id="asked by image, this one"),
        pytest.param({"image": OTHER_IMAGE}, ("", IMAGE), False, id="asked by image, another one"),
        pytest.param({"image": OTHER_IMAGE}, ("5.2.0", IMAGE), False, id="asked by image, a version of another one"),
        pytest.param({"version": "5.2.0"}, ("5.2.0", ""), True, id="asked by version, this one"),
        pytest.param({"version": "5.1.0"}, ("5.2.0", ""), False, id="asked by version, another one"),
        pytest.param({"version": "5.1.0", "image": IMAGE}, ("5.2.0", IMAGE), False, id="another version of the image"),
    ],
)
def test_how_a_preflight_goes_is_shown_for_its_own_target(
    asked: dict[str, str], target: tuple[str, str], shown: bool
) -> None:
    """The conditions of one preflight say nothing of another release."""
    condition = {"type": "PreflightRunning", "status": "True", "reason": "Checking", "message": "m"}
    status = {**STATUS, "conditions": [{**condition, "lastTransitionTime": "2026-01-14T09:30:00Z"}]}
    known = cluster({"spec": {"clusterID": "x", "desiredUpdate": {"mode": "Preflight", **asked}}, "status": status})
    assert bool(findings_of_target(known, History(), *target).conditions) is shown


def test_no_result_is_never_a_pass() -> None:
    """A preflight that nobody asked for, or that is in progress, has exit code 1 and no verdict."""
    found = findings_of_target(cluster({"status": {}}), History(), "5.9.0")
    assert (found.exit_code, as_data(found)["result"]) == (1, "CouldNotRun")
    assert verdict(found) == "Verdict: the preflight of 5.9.0 has no result yet."


@pytest.fixture
def stored(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server with a ClusterVersion and the stored reports, in a namespace that CVO_NAMESPACE names."""
    monkeypatch.setenv("CVO_NAMESPACE", NAMESPACE)
    server.set_cluster_version(status={**STATUS, "conditionalUpdates": STATUS["conditionalUpdates"]})
    from kubekit.api.core_v1 import Namespace

    try:
        server.client.send(calls.get(Namespace, NAMESPACE))
    except NotFound:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        server.client.send(calls.create(resource_of(Namespace), body))
    # The operator stores what counted besides, which the API's newer state does not change.
    slow = ReportedRisk(name="SlowNodeDrain", message="Draining is slow.")
    newest, older = FOUND.reports
    stored = stored_reports.config_map(History(reports=(replace(newest, others=(slow,)), older)), NAMESPACE)
    server.client.send(calls.apply(resource_of(ConfigMap), stored, field_manager="test", force=True))
    return server


def test_the_commands_read_the_cluster(run: Run, stored: Server) -> None:
    """All three, as text and as data."""
    ran = run("preflight", "history", "--kubeconfig", stored.kubeconfig, "-o", "json")
    assert [report["targetVersion"] for report in json.loads(ran.out)] == ["5.2.0", "5.1.0"]
    ran = run("preflight", "compare", "5.1.0", "5.2.0", "--kubeconfig", stored.kubeconfig, "-o", "json")
    compared = json.loads(ran.out)
    assert [risk["name"] for risk in compared["new"]] == ["DualStackIncompatible", "SlowNodeDrain"]
    assert [risk["name"] for risk in compared["gone"]] == ["Dim"]
    ran = run("preflight", "explain", "DualStackIncompatible", "--kubeconfig", stored.kubeconfig)
    assert ran.code == 0
    assert ran.out.partition("\nAbout this risk:")[0] == (
        "DualStackIncompatible\n"
        "\nFor 5.2.0, as of 2026-01-14T10:05:00Z:\n"
        "  Severity: critical\n"
        "  Applies:  True (PreflightOutdated)\n"
        "  Accepted: no\n"
        "  Message:  Dual-stack networking is used.\n"
        "  Fix:      Remove the IPv6 range.\n"
        "            See the networking guide.\n"
        "  Concerns: Network.config.openshift.io cluster\n"
        "  Found by: the preflight of 5.2.0\n"
        "  Since:    2026-01-14T10:05:00Z\n"
        "  More:     https://example.com/dual\n"
    )


@pytest.mark.parametrize("words", [("history",), ("compare", "5.1.0", "5.2.0")], ids=["history", "compare"])
def test_as_text_there_are_fewer_columns(run: Run, stored: Server, words: tuple[str, ...]) -> None:
    """Than in the wide form, which has all of theirs and more."""

    def heads(*more: str) -> list[str]:
        ran = run("preflight", *words, "--kubeconfig", stored.kubeconfig, *more)
        assert (ran.code, ran.err) == (0, "")
        return next(line.split() for line in ran.out.splitlines() if line.isupper())

    plain, wide = heads(), heads("-o", "wide")
    assert set(plain) < set(wide)


def test_a_result_is_shown_once_more(run: Run, stored: Server) -> None:
    """As `--wait` ended with it, with its exit code: a table, everything, a page."""
    words = ("preflight", "show", "5.2.0", "--kubeconfig", stored.kubeconfig)
    ran = run(*words)
    # That preflight is not the one asked for now: nobody looks whether it still holds.
    assert (ran.code, ran.err) == (3, "")
    lines = ran.out.splitlines()
    assert lines[1] == (
        "Preflight of 5.2.0 from 5.0.0: 3 risks apply (1 critical, 2 warning), then; "
        "2 checks done; as of 2026-01-14T10:05:00Z"
    )
    assert lines[-1] == (
        "Verdict: this preflight has ended; what it found may have changed since. Check again: "
        "runup upgrade --mode=preflight --to=5.2.0 --wait"
    )
    assert lines[3].startswith("1. critical: DualStackIncompatible: ")
    assert lines[4].split()[0] == "Fix:"
    whole = run(*words, "-v").out.splitlines()
    assert [line.split()[:2] for line in whole if line.isupper()] == [["SEVERITY", "STATE"], ["RESULT", "CHECK"]]
    assert len([line for line in whole if line.startswith(("Clear ", "Applies ", "Unknown ", "Skipped "))]) == 2
    assert "https://example.com/dual" in run(*words, "-o", "wide").out
    page = run(*words, "-o", "html")
    assert (page.code, page.err) == (3, "")
    assert (page.out.startswith("<!DOCTYPE html>"), page.out.endswith("</html>\n")) == (True, True)
    assert str(stored.kubeconfig) not in page.out


def test_a_result_that_there_is_not(run: Run, stored: Server) -> None:
    """Names the command to use instead."""
    for words, said in (
        (("show", "9.9.9"), "no preflight of 9.9.9 is known"),
        (("show",), "no preflight is asked for"),
    ):
        ran = run("preflight", *words, "--kubeconfig", stored.kubeconfig)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith(f"error: {said}")
        assert "runup upgrade --mode=preflight --to=VERSION" in ran.err


NOT_THERE = {
    "a report that is not kept": (
        ["preflight", "compare", "5.1.0", "5.9.0"],
        "error: no report of 5.9.0; there are reports of 5.2.0, 5.1.0\n",
    ),
    "a risk with a typo": (
        ["preflight", "explain", "SlowNodeDrian"],
        'error: no update of this cluster has a risk "SlowNodeDrian"; did you mean "SlowNodeDrain"?\n',
    ),
    "a risk that nothing is like": (
        ["preflight", "explain", "Zzz"],
        'error: no update of this cluster has a risk "Zzz"; there are DualStackIncompatible, Shared, SlowNodeDrain\n',
    ),
}


@pytest.mark.parametrize("name", NOT_THERE)
def test_what_is_not_there(name: str, run: Run, stored: Server) -> None:
    """The error names what there is."""
    words, text = NOT_THERE[name]
    ran = run(*words, "--kubeconfig", stored.kubeconfig)
    assert (ran.code, ran.out, ran.err) == (1, "", text)


NOWHERE = {
    "no kubeconfig": ([], "Missing or incomplete configuration info."),
    "a server that is away": (["--kubeconfig", "FILE"], "127.0.0.1:1"),
}


@pytest.mark.parametrize("name", NOWHERE)
def test_a_page_needs_no_cluster(name: str, run: Run, tmp_path: Path) -> None:
    """It is printed as it is packaged, and that no cluster was asked is said."""
    words, why = NOWHERE[name]
    file = tmp_path / "config"
    file.write_text(AWAY)
    words = [str(file) if word == "FILE" else word for word in words]
    ran = run("preflight", "explain", "MachineConfigPoolPaused-worker", *words)
    assert (ran.code, ran.err) == (0, "")
    head, _, page = ran.out.partition("\nAbout this risk:\n\n")
    assert "no cluster was asked: " in head
    assert why in head
    assert page == (PAGES / "MachineConfigPoolPaused.md").read_text()
    data = json.loads(run("preflight", "explain", "MachineConfigPoolPaused-worker", *words, "-o", "json").out)
    assert why in data["notAsked"]
    assert data["page"] == page


def test_without_cluster_and_page_the_error_is_the_connection_s(run: Run) -> None:
    """An unknown name is not reported as an Unknown risk."""
    ran = run("preflight", "explain", "Frobnicated")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: Missing or incomplete configuration info.")


def test_a_typo_of_a_documented_risk(run: Run, stored: Server) -> None:
    """The pages know more names than this cluster has risks."""
    ran = run("preflight", "explain", "EtcdMembersUnhealhty", "--kubeconfig", stored.kubeconfig)
    assert ran.err.endswith('did you mean "EtcdMembersUnhealthy"?\n')


def test_no_history_yet(run: Run, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that was never preflighted says how to ask."""
    monkeypatch.setenv("CVO_NAMESPACE", "nobody-s")
    server.set_cluster_version()
    ran = run("preflight", "history", "--kubeconfig", server.kubeconfig)
    assert ran.out.startswith("No preflight has reported on this cluster. Ask for one: runup upgrade --mode=preflight")
