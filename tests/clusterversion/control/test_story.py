"""What log and metrics report a preflight, pass by pass; page and alerts agree with what is served."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace as with_fields
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs
from tests.clusterversion.decide.test_preflight import terminated
from tests.clusterversion.decide.world import World, risk
from tests.factories import cluster_operator

from kubekit.kube.clock import ManualClock
from runup.api.config_v1 import ClusterOperator, Update
from runup.clusterversion.control.metrics import ClusterMetricsCollector, Metrics
from runup.clusterversion.control.preflight_log import PreflightLogger, has_no_report_writer
from runup.clusterversion.decide.reconcile import reconcile
from runup.clusterversion.decide.work import Work
from runup.fleet.control.hub_metrics import Metrics as FleetUpdateMetrics
from runup.kernelmodules.control.controller import Metrics as KernelModuleMetrics
from runup.process.plan import Plan
from runup.report.report import ReportedCheck
from runup.rollout.control.extension import Metrics as ExtensionMetrics
from runup.rollout.control.metrics import Metrics as UpdatePolicyMetrics
from runup.updatestatus.control.controller import Metrics as UpdateStatusMetrics

ROOT = Path(__file__).parents[3]
NO_COMMAND = 'error: unknown command "preflight" for "cluster-version-operator"'


@dataclass
class Listener(World):
    """The tiny cluster, whose passes are asked to log and metrics as the controller does."""

    story: PreflightLogger = field(default_factory=PreflightLogger)
    clock: ManualClock = field(default_factory=ManualClock)
    metrics: Metrics = field(default_factory=Metrics)

    def __post_init__(self) -> None:
        self.clock = ManualClock(self.now)
        self.metrics = Metrics(self.clock)

    def step(self) -> Plan[Work]:
        """Runs one pass and logs it."""
        observed = self.observed
        self.metrics.look(observed)
        plan = super().step()
        self.metrics.count(observed, plan, self.now)
        self.story.log(observed, plan)
        return plan

    def pass_time(self, seconds: float) -> World:
        """Let time pass for anybody who asks for metrics, too."""
        super().pass_time(seconds)
        self.clock.jump(seconds)
        return self

    @property
    def samples(self) -> dict[str, float]:
        """What Prometheus would read: `name{label values}` -> value."""
        text = generate_latest(self.metrics.registry).decode()
        families = text_string_to_metric_families(text)
        return {f"{each.name}{{{','.join(each.labels.values())}}}": each.value for f in families for each in f.samples}


@pytest.fixture
def listener() -> Listener:
    """A cluster before anybody asks."""
    made = World.new()
    found = Listener(made.observed)
    found.settle()
    return found


def lines(logs: list[Any]) -> list[tuple[str, str, str]]:
    """Level, line and reason."""
    return [(each["log_level"], each["event"], each["reason"]) for each in logs]


def test_the_log_has_one_line_a_step(listener: Listener) -> None:
    """From the request to its end, each with target and ID, and nothing twice."""
    with capture_logs() as logs:
        listener.ask_preflight().settle()
        preflight_id = listener.attempt_id
        listener.report(execution_status="running", message="1 of 2 checks done").settle()
        listener.report(execution_status="running", message="2 of 2 checks done").settle()
        listener.report(risk("Found")).settle()
        listener.pass_time(60).settle()
        listener.ask(None).settle()
    assert lines(logs) == [
        ("info", "preflight step", "VerifyingImage"),
        ("info", "preflight workload applied", "Start"),
        ("info", "preflight step", "TargetStarting"),
        ("info", "preflight step", "ChecksRunning"),
        ("info", "preflight completed", "RisksFound"),
        ("info", "preflight workload removed", "Cleared"),
        ("info", "preflight ended", "Cleared"),
    ]
    assert {(each["target"], each["id"]) for each in logs} == {("5.2.0", preflight_id)}


def test_a_target_without_the_command_is_a_warning(listener: Listener) -> None:
    """It names the release and says that nothing was checked."""
    listener.ask_preflight().settle()
    with capture_logs() as logs:
        listener.pod(state=terminated(message=NO_COMMAND)).settle()
    failed = next(each for each in logs if each["event"] == "preflight failed")
    assert (failed["log_level"], failed["reason"], failed["target"]) == ("warning", "TargetUnsupported", "5.2.0")
    assert "has no `preflight` command" in failed["message"]


REFUSED: list[Any] = [
    pytest.param(Update(mode="Preflight", version="5.7.7"), "TargetNotFound", id="an unknown version"),
    pytest.param(Update(mode="Frobnicate", version="5.2.0"), "UnknownMode", id="an unknown mode"),
    pytest.param(Update(mode="Preflight", version="9.0.0"), "TargetTooFar", id="a version that is too far away"),
    pytest.param(Update(mode="Preflight"), "TargetMissing", id="no version"),
]


@pytest.mark.parametrize(("request_", "reason"), REFUSED)
def test_a_refused_request_is_counted_as_refused(listener: Listener, request_: Update, reason: str) -> None:
    """Nothing was started; the gauge follows condition PreflightFailed, as everywhere."""
    with capture_logs() as logs:
        listener.ask(request_).settle()
    assert lines(logs)[-1] == ("warning", "preflight refused", reason)
    assert listener.samples[f"cluster_version_preflight_outcomes_total{{PreflightRefused,{reason}}}"] == 1
    assert listener.samples[f"cluster_version_preflight_failing{{{reason}}}"] == 1
    assert listener.samples["cluster_version_preflight_requests_total{}"] == 0
    listener.ask(None).settle()
    assert not [name for name in listener.samples if name.startswith("cluster_version_preflight_failing")]


def test_a_target_that_nobody_signed_is_refused(listener: Listener) -> None:
    """Nothing of it was started."""
    listener.trusted = False
    listener.ask_preflight("5.0.3").settle()
    assert listener.samples["cluster_version_preflight_outcomes_total{PreflightRefused,ImageVerificationFailed}"] == 1
    assert listener.samples["cluster_version_preflight_failing{ImageVerificationFailed}"] == 1


def test_a_closed_gate_is_a_failure() -> None:
    """The preflight is ended, and PreflightFailed says FeatureGateDisabled."""
    listener = Listener(World.new(gates=()).observed)
    listener.ask_preflight().settle()
    assert listener.condition("PreflightFailed") == ("True", "FeatureGateDisabled")
    assert listener.samples["cluster_version_preflight_failing{FeatureGateDisabled}"] == 1


def test_the_gauge_of_failures_follows_a_pass_that_cannot_be_carried_out(listener: Listener) -> None:
    """Such a pass is not counted; the condition from before it still is what is shown."""
    listener.ask_preflight("5.7.7").settle()
    other = Metrics(listener.clock)
    other.look(listener.observed)
    text = generate_latest(other.registry).decode()
    assert 'cluster_version_preflight_failing{reason="TargetNotFound"} 1.0' in text


def test_a_request_that_cannot_be_met_after_one_that_ran_is_refused(listener: Listener) -> None:
    """The workload of the one before does not make it a failure."""
    listener.ask_preflight().settle()
    listener.ask_preflight("5.7.7").settle()
    outcomes = [name for name in listener.samples if name.startswith("cluster_version_preflight_outcomes_total")]
    assert outcomes == ["cluster_version_preflight_outcomes_total{PreflightRefused,TargetNotFound}"]


def test_a_failure_has_its_reason_for_as_long_as_it_lasts(listener: Listener) -> None:
    """Final ones until the request goes; counted once."""
    listener.ask_preflight().settle()
    listener.pod(state=terminated("OOMKilled", 137), restart_count=2).settle().pass_time(60).settle()
    assert listener.samples["cluster_version_preflight_failing{OOMKilled}"] == 1
    assert listener.samples["cluster_version_preflight_outcomes_total{PreflightFailed,OOMKilled}"] == 1
    assert listener.samples["cluster_version_preflight_duration_seconds_count{}"] == 1
    listener.ask(None).settle()
    assert "cluster_version_preflight_failing{OOMKilled}" not in listener.samples


def test_ages_grow_by_themselves_and_are_absent_where_there_is_nothing(listener: Listener) -> None:
    """No report has no age; one that nobody writes any more grows old without a pass; a heartbeat renews it."""
    age, waiting = "cluster_version_preflight_report_age_seconds{}", "cluster_version_preflight_waiting_seconds{}"
    assert age not in listener.samples and waiting not in listener.samples
    listener.ask_preflight().settle().pass_time(30)
    assert age not in listener.samples
    assert listener.samples[waiting] == 30
    assert listener.samples["cluster_version_preflight_timeout_seconds{}"] == 600
    listener.report().settle().pass_time(400)
    assert listener.samples[age] == 400
    assert waiting not in listener.samples
    listener.report(observed_time=listener.now + timedelta(seconds=1)).step()
    assert listener.samples[age] == 0
    listener.ask(None).settle()
    assert age not in listener.samples


def test_a_completed_preflight_is_counted_once_with_its_duration(listener: Listener) -> None:
    """Also when it continues watching."""
    listener.ask_preflight().settle().pass_time(7)
    listener.report(risk("Found")).settle().pass_time(60).settle()
    assert listener.samples["cluster_version_preflight_requests_total{}"] == 1
    assert listener.samples["cluster_version_preflight_outcomes_total{PreflightCompleted,RisksFound}"] == 1
    assert listener.samples["cluster_version_preflight_duration_seconds_sum{}"] == 7


def _completions(listener: Listener) -> dict[str, float]:
    """The results that were counted, and the durations."""
    names = ("outcomes_total{PreflightCompleted", "duration_seconds_count", "duration_seconds_sum")
    full = tuple(f"cluster_version_preflight_{name}" for name in names)
    return {name: value for name, value in listener.samples.items() if name.startswith(full) and value}


def _restarts(listener: Listener) -> None:
    listener.metrics = Metrics(listener.clock)
    listener.step()


def _accepts(listener: Listener) -> None:
    listener.accept("Found").settle()


def _goes_stale_and_back(listener: Listener) -> None:
    seen = listener.observed.report
    assert seen is not None
    listener.change(report=with_fields(seen, unchanged_s=600.0)).settle()
    assert listener.condition("PreflightFailed") == ("True", "ReportStale")
    listener.change(report=with_fields(seen, unchanged_s=0.0)).settle()


def _is_asked_again(listener: Listener) -> None:
    listener.ask(Update(version="5.0.3")).settle().ask_preflight("5.0.3").settle()


@pytest.mark.parametrize("happens", [_restarts, _accepts, _goes_stale_and_back, _is_asked_again])
def test_a_report_that_is_read_again_is_no_second_completion(
    listener: Listener, happens: Callable[[Listener], None]
) -> None:
    """A completion and a duration are counted once for a request, when its report arrives."""
    listener.ask_preflight("5.0.3").settle().pass_time(7)
    listener.report(risk("Found")).settle()
    counted = _completions(listener)
    assert sorted(counted.values()) == [1, 1, 7]
    happens(listener)
    condition = listener.condition("PreflightCompleted")
    assert condition is not None and condition[0] == "True"
    assert _completions(listener) == ({} if happens is _restarts else counted)


def test_a_new_request_is_counted_by_its_own_report(listener: Listener) -> None:
    """The stored report of the preflight before it is no result of it."""
    completed = "cluster_version_preflight_outcomes_total{PreflightCompleted,NoRisksFound}"
    listener.ask_preflight("5.0.3").settle().report().settle()
    listener.ask(None).settle().ask_preflight("5.0.3").settle()
    assert listener.samples[completed] == 1
    listener.report().settle()
    assert listener.samples[completed] == 2
    assert listener.samples["cluster_version_preflight_duration_seconds_count{}"] == 2


def test_a_report_is_nobodys_only_when_its_attempt_is_over(listener: Listener) -> None:
    """Not while the Deployment that was made just now is out of sight, nor while its pods end."""

    def nobody() -> bool:
        return has_no_report_writer(listener.observed, reconcile(listener.observed, now=listener.now))

    assert nobody()
    listener.ask_preflight().settle()
    made, record = listener.observed.deployment, listener.observed.history
    for seen in (record, None):
        listener.change(deployment=None, history=seen)
        assert not nobody()
    listener.change(deployment=made, history=record)
    listener.pod(state=terminated("OOMKilled", 137), restart_count=2)
    listener.finalizing = True
    listener.settle()
    assert listener.observed.deployment is None and not nobody()
    listener.change(pods=())
    assert nobody()


def test_a_failure_is_no_completed_preflight_s_end(listener: Listener) -> None:
    """It ran on, failed, and comes to a result after all: two outcomes, and one duration, to the result."""
    listener.ask_preflight().settle().pass_time(20)
    listener.bad_report("ReportInvalid", "truncated").settle()
    assert listener.samples["cluster_version_preflight_duration_seconds_count{}"] == 0
    assert listener.samples["cluster_version_preflight_waiting_seconds{}"] == 20
    listener.pass_time(10).report().settle()
    assert listener.samples["cluster_version_preflight_duration_seconds_count{}"] == 1
    assert listener.samples["cluster_version_preflight_duration_seconds_sum{}"] == 30
    outcomes = {name for name in listener.samples if name.startswith("cluster_version_preflight_outcomes_total")}
    assert outcomes == {
        "cluster_version_preflight_outcomes_total{PreflightFailed,ReportInvalid}",
        "cluster_version_preflight_outcomes_total{PreflightCompleted,RisksFound}",
    }


def test_checks_and_settings_are_counted_as_they_are_now(listener: Listener) -> None:
    """By result; what the last report had counts no more."""
    listener.ask_preflight().settle()
    checks = tuple(
        ReportedCheck(name=name, result=result) for name, result in (("A", "Clear"), ("B", "Clear"), ("C", "Unknown"))
    )
    listener.report(checks=checks).settle()
    counted = "cluster_version_preflight_checks"
    assert {name: value for name, value in listener.samples.items() if name.startswith(counted)} == {
        f"{counted}{{Clear}}": 2,
        f"{counted}{{Unknown}}": 1,
    }
    listener.report(checks=checks[:1]).settle()
    assert {name: value for name, value in listener.samples.items() if name.startswith(counted)} == {
        f"{counted}{{Clear}}": 1
    }
    assert listener.samples["cluster_version_preflight_unusable_settings{}"] == 0
    listener.change(unusable=("cpu: lots is not a quantity",))
    listener.step()
    assert listener.samples["cluster_version_preflight_unusable_settings{}"] == 1


def test_a_clock_that_goes_back_makes_no_age_negative(listener: Listener) -> None:
    """A change in the future counts as a change now."""
    listener.ask_preflight().settle()
    listener.report().settle()
    listener.clock.jump(-50)
    assert listener.samples["cluster_version_preflight_report_age_seconds{}"] == 0


def test_durations_are_counted_in_steps_of_minutes(listener: Listener) -> None:
    """Between a second and twenty minutes; the page names them."""
    bounds = sorted(
        float(name.partition("{")[2].rstrip("}").replace("+Inf", "inf"))
        for name in listener.samples
        if name.startswith("cluster_version_preflight_duration_seconds_bucket")
    )
    assert bounds == [1, 3, 10, 30, 60, 120, 300, 600, 1200, float("inf")]


def test_a_workload_that_is_changed_is_no_start(listener: Listener) -> None:
    """The log says so, and nothing more is requested."""
    listener.ask_preflight().settle()
    place = listener.observed.facts.place
    with capture_logs() as logs:
        facts = replace(listener.observed.facts, place=with_fields(place, prometheus_ca="another"))
        listener.change(facts=facts).settle()
    assert ("info", "preflight workload applied", "Changed") in lines(logs)
    assert listener.samples["cluster_version_preflight_requests_total{}"] == 1


def test_what_is_told_after_a_restart_is_where_it_is(listener: Listener) -> None:
    """One line, whatever was reported before; a request by image alone is reported by that."""
    listener.ask_preflight().settle()
    listener.story = PreflightLogger()
    with capture_logs() as logs:
        listener.step()
        listener.step()
    assert lines(logs) == [("info", "preflight step", "TargetStarting")]
    listener.registry = False
    with capture_logs() as logs:
        listener.ask(Update(mode="Preflight", image="registry.example/other:tag")).settle()
    refused = next(each for each in logs if each["event"] == "preflight refused")
    assert (refused["target"], refused["reason"]) == ("registry.example/other:tag", "TagNotDigest")


def test_one_look_after_the_other_makes_the_cluster_s_series() -> None:
    """Nothing before the first; a change of a condition counts, and starts again where its operator comes back."""
    series = ClusterMetricsCollector()
    registry = CollectorRegistry()
    registry.register(series)
    labels = {"name": "etcd", "condition": "Available"}

    def changes() -> float | None:
        return registry.get_sample_value("cluster_operator_condition_transitions", labels)

    def look(*operators: ClusterOperator) -> None:
        series.look(replace(World.new().observed, operators=operators))

    names = {family.name for family in registry.collect()}
    assert {"cluster_version", "cluster_installer", "cluster_operator_payload_errors"} <= names
    assert changes() is None
    look(cluster_operator("etcd"))
    assert changes() == 0
    for expected, available in ((1, "False"), (1, "False"), (2, "True")):
        look(cluster_operator("etcd", available=available))  # type: ignore[arg-type]
        assert changes() == expected
    look()
    assert changes() is None
    look(cluster_operator("etcd", available="False"))
    assert changes() == 0
    series.look_without_version([cluster_operator("etcd")])
    assert changes() is None
    missing = {"name": "version", "version": "", "reason": "ClusterVersionNotFound"}
    assert registry.get_sample_value("cluster_operator_up", missing) == 0
    assert registry.get_sample_value("cluster_installer", {"type": "a", "version": "b", "invoker": "c"}) is None
    series.installed_by("a", "b", "c")
    assert registry.get_sample_value("cluster_installer", {"type": "a", "version": "b", "invoker": "c"}) == 1
    series.failed_attempts = {"5.0.3": 7}
    assert registry.get_sample_value("cluster_operator_payload_errors", {"version": "5.0.3"}) == 7


PROCESSES = (
    Metrics,
    UpdateStatusMetrics,
    KernelModuleMetrics,
    UpdatePolicyMetrics,
    ExtensionMetrics,
    FleetUpdateMetrics,
)


def served() -> Iterator[str]:
    """The names of all metrics of all processes, as Prometheus stores them."""
    for made in PROCESSES:
        for family in made().registry.collect():
            yield family.name + ("_total" if family.type == "counter" else "")


def test_every_metric_is_on_the_page_and_every_one_of_the_page_is_served() -> None:
    """docs/reference/metrics.md and the registries are one."""
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    assert set(re.findall(r"^\| `([a-z_]+)` \| (?:counter|gauge|histogram) ", page, re.MULTILINE)) == set(served())


def alerts() -> list[dict[str, Any]]:
    """The rules of the manifests."""
    return [
        rule
        for path in sorted((ROOT / "deploy").glob("*/*alerts.yaml"))
        for found in yaml.safe_load_all(path.read_text())
        for group in found["spec"]["groups"]
        for rule in group["rules"]
    ]


def test_alerts_ask_for_what_is_served_and_are_on_the_page() -> None:
    """An expression over a name that nobody serves never fires; parentheses match; each says what it is."""
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    known = set(served())
    for rule in alerts():
        names = set(
            re.findall(
                r"\b(?:cluster_version|cluster_operator|update_status|kmm|kernel_module|runup_update|runup_fleet)_[a-z_]+",
                rule["expr"],
            )
        )
        # Prometheus itself says whether it reaches somebody.
        assert (names or rule["expr"].startswith("absent(up{")) and names <= known, rule["alert"]
        assert rule["expr"].count("(") == rule["expr"].count(")")
        assert {"summary", "description", "runbook_url"} == set(rule["annotations"])
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert f"| `{rule['alert']}` |" in page
    documented = set(re.findall(r"^\| `([A-Z]\w+)` \|", page.partition("## Alerts")[2], re.MULTILINE))
    assert documented == {rule["alert"] for rule in alerts()}
