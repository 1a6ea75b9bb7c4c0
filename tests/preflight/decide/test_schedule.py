"""The CronJob of preflights: how often, of which target, with which rights; and what Prometheus makes of its Jobs."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.factories import NOW
from tests.few_or_many import first_and_rest

from kubekit.api import codec
from kubekit.api.workloads_v1 import CronJob
from kubekit.error_types import Terminal
from runup.api.config_v1 import ClusterVersion
from runup.api.preflight_reads_v1 import Right
from runup.preflight.decide import channel_target, schedule
from runup.preflight.decide.cluster_run import Checking
from runup.preflight.decide.schedule import Schedule

JSON = dict[str, Any]
WEDNESDAY = datetime(2026, 1, 14, 23, 59, tzinfo=UTC)
SCHEDULE = Schedule(
    every="24h",
    cron="1 7 * * *",
    checking=Checking(image="registry.example/runup", target_version="5.2.0"),
    rights=(Right("", "nodes"),),
)


@pytest.mark.parametrize(
    ("every", "now", "cron"),
    [
        pytest.param("24h", NOW, "2 10 * * *", id="each day, two minutes from now"),
        pytest.param("1d", NOW, "2 10 * * *", id="a day is 24 hours"),
        pytest.param("1h", NOW, "2 * * * *", id="each hour"),
        pytest.param("6h", NOW, "2 4-23/6 * * *", id="at 4, 10, 16 and 22"),
        pytest.param("30m", NOW, "2-59/30 * * * *", id="twice an hour"),
        pytest.param("60m", NOW, "2 * * * *", id="an hour in minutes"),
        pytest.param("7d", NOW, "2 10 * * 3", id="each Wednesday"),
        pytest.param("24h", WEDNESDAY, "1 0 * * *", id="past midnight"),
        pytest.param("7d", WEDNESDAY, "1 0 * * 4", id="past midnight it is Thursday"),
        pytest.param("7d", WEDNESDAY + timedelta(days=3), "1 0 * * 0", id="past Saturday's it is Sunday, which is 0"),
    ],
)
def test_the_line_of_cron(every: str, now: datetime, cron: str) -> None:
    """The first start is soon, so that whoever schedules sees that it works."""
    assert schedule.cron_of(every, now) == cron


@pytest.mark.parametrize("every", ["", "0h", "24", "5h", "7m", "90m", "2d", "14d", "-1h", "1h30m", "24 h", "1w", "24H"])
def test_what_no_cron_job_keeps(every: str) -> None:
    """Five hours do not divide a day: cron would start at 20:00 and again at 00:00."""
    with pytest.raises(ValueError, match="is not an interval that a CronJob can keep"):
        schedule.cron_of(every, NOW)


def test_scheduled_again_its_times_stay() -> None:
    """The same command twice changes nothing; another interval is another line."""
    found = codec.convert(
        CronJob,
        {"metadata": {"annotations": {"preflight.runup.dev/every": "24h"}}, "spec": {"schedule": "1 7 * * *"}},
    )
    assert schedule.kept_cron(found, "24h") == "1 7 * * *"
    assert schedule.kept_cron(found, "6h") == schedule.kept_cron(None, "24h") == ""


def objects(*, monitored: bool = True) -> dict[str, JSON]:
    """The objects by their kind."""
    return {each.resource.kind: each.object for each in schedule.objects(SCHEDULE, monitored=monitored)}


def test_the_account_changes_the_reports_and_creates_nothing() -> None:
    """It reads what the checks read."""
    assert objects()["Role"]["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": ["preflight-history", "preflight-reports"],
            "verbs": ["get", "patch"],
        }
    ]
    assert objects()["ClusterRole"]["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}
    ]


def test_a_run_does_not_overlap_the_next_and_is_not_tried_again() -> None:
    """A second try would find nothing new, and hide what the first found."""
    spec = objects()["CronJob"]["spec"]
    assert (spec["schedule"], spec["timeZone"], spec["concurrencyPolicy"]) == ("1 7 * * *", "Etc/UTC", "Forbid")
    job = spec["jobTemplate"]["spec"]
    assert (job["backoffLimit"], job["activeDeadlineSeconds"]) == (0, 900)
    (container,) = job["template"]["spec"]["containers"]
    env = {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}
    assert env["PREFLIGHT_ID"] == {"fieldRef": {"fieldPath": "metadata.name"}}
    assert (env["PREFLIGHT_REPORT_SINK"], env["PREFLIGHT_TARGET_VERSION"]) == ("history", "5.2.0")


def test_alerts_where_their_kind_is_served() -> None:
    """Elsewhere nothing else differs."""
    assert objects().keys() - objects(monitored=False).keys() == {"PrometheusRule"}


def test_what_is_scheduled_is_removed_in_order() -> None:
    """What starts Jobs goes first, the account last."""
    found = [(each.resource, each.object["metadata"]) for each in schedule.objects(SCHEDULE, monitored=True)]
    deleted = [each.resource.kind for each in schedule.deletions(found)]
    assert deleted[:2] == ["PrometheusRule", "CronJob"]
    assert deleted[-1] == "ServiceAccount"
    assert len(deleted) == len(found)


LISTED: JSON = {
    "desired": {"version": "4.15.3", "channels": ["stable-4.15", "stable-4.16"]},
    "availableUpdates": [
        {"version": "4.15.4", "channels": ["stable-4.15", "fast-4.15"]},
        {"version": "4.15.10", "channels": ["fast-4.15"]},
    ],
    "conditionalUpdates": [{"release": {"version": "4.15.9", "channels": ["stable-4.15"], "image": "i@sha256:9"}}],
}


def cluster(status: JSON) -> ClusterVersion:
    """A ClusterVersion with that status."""
    return codec.convert(ClusterVersion, {"status": status})


@pytest.mark.parametrize(
    ("status", "channel", "version"),
    [
        pytest.param(LISTED, "latest", "4.15.10", id="the newest of all, by number"),
        pytest.param(LISTED, "stable-4.15", "4.15.9", id="of a channel, though it has risks"),
        pytest.param({"desired": {"version": "4.15.3"}}, "latest", "4.16.0", id="nothing listed: the next minor"),
        pytest.param(
            LISTED | {"availableUpdates": [{"version": "nightly"}]}, "latest", "4.15.9", id="what is no version is none"
        ),
    ],
)
def test_the_newest_release(status: JSON, channel: str, version: str) -> None:
    """Of what ClusterVersion lists when the Job runs."""
    assert channel_target.newest(cluster(status), channel).version == version


@pytest.mark.parametrize(
    ("found", "channel", "words"),
    [
        pytest.param(None, "latest", "has no ClusterVersion", id="another kind of cluster"),
        pytest.param(
            cluster(LISTED), "stable-4.17", "its release is in stable-4.15, stable-4.16", id="no such channel"
        ),
        pytest.param(cluster({}), "latest", "version is not known yet", id="a cluster that is being installed"),
    ],
)
def test_no_release(found: ClusterVersion | None, channel: str, words: str) -> None:
    """An error that names the way out, and not a preflight of something else."""
    with pytest.raises(Terminal, match=words) as refused:
        channel_target.newest(found, channel)
    assert "--to VERSION" in refused.value.message


OK, OVER = "runup-preflight-scheduled-1", "runup-preflight-scheduled-2"
CRON = '{namespace="runup-preflight",cronjob="runup-preflight-scheduled"}'


def job(name: str, started: int, *, failed: bool) -> dict[str, str]:
    """What kube-state-metrics says about a finished Job, by the names of its documentation."""
    labels = f'namespace="runup-preflight",job_name="{name}"'
    return {
        f"kube_job_status_start_time{{{labels}}}": f"{started}x4000",
        f'kube_job_failed{{{labels},condition="{"true" if failed else "false"}"}}': "1x4000",
    }


# The longest at which a series has no gaps: a sample counts for five minutes.
INTERVAL = "5m"


@pytest.mark.parametrize(
    ("series", "alert", "at", "fires"),
    first_and_rest(
        [
            pytest.param(job(OK, 60, failed=False), "PreflightFoundNews", "5m", False, id="no run failed"),
            pytest.param(job(OK, 60, failed=True), "PreflightFoundNews", "5m", True, id="the first run failed"),
            pytest.param(
                job(OK, 60, failed=True) | {f"kube_cronjob_status_last_successful_time{CRON}": "100x4000"},
                "PreflightFoundNews",
                "5m",
                False,
                id="a later run found nothing new",
            ),
            pytest.param(
                job(OVER, 200, failed=True) | {f"kube_cronjob_status_last_successful_time{CRON}": "100x4000"},
                "PreflightFoundNews",
                "5m",
                True,
                id="a run failed after one that did not",
            ),
            pytest.param(
                {'kube_job_failed{namespace="runup-preflight",job_name="other",condition="true"}': "1x10"},
                "PreflightFoundNews",
                "5m",
                False,
                id="somebody else's Job",
            ),
            pytest.param(
                {f"kube_cronjob_status_last_schedule_time{CRON}": "0x6000"},
                "PreflightNotRun",
                "4300m",
                False,
                id="in time",
            ),
            pytest.param(
                {f"kube_cronjob_status_last_schedule_time{CRON}": "0x6000"},
                "PreflightNotRun",
                "4400m",
                True,
                id="silent",
            ),
            pytest.param(
                {f"kube_cronjob_created{CRON}": "0x6000"}, "PreflightNotRun", "4400m", True, id="never started"
            ),
        ],
        3,
    ),
)
def test_prometheus_evaluates_the_alerts(
    tmp_path: Path, series: dict[str, str], alert: str, at: str, *, fires: bool
) -> None:
    """By its own program, which Debian's package `prometheus` brings."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("needs promtool, of Debian's package prometheus")
    groups = objects()["PrometheusRule"]["spec"]
    (rule,) = [each for each in groups["groups"][0]["rules"] if each["alert"] == alert]
    expected = [{"exp_labels": {"severity": "warning"}, "exp_annotations": rule["annotations"]}] if fires else []
    test = {
        "interval": INTERVAL,
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "alert_rule_test": [{"eval_time": at, "alertname": alert, "exp_alerts": expected}],
    }
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(groups))
    (tmp_path / "test.yaml").write_text(
        json.dumps({"rule_files": ["rules.yaml"], "evaluation_interval": INTERVAL, "tests": [test]})
    )
    done = subprocess.run(
        [promtool, "test", "rules", "test.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=90
    )
    assert done.returncode == 0, done.stdout + done.stderr
