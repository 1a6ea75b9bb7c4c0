"""What has become of a preflight's Job, for every way in which it does not start, ends or reports."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace
from tests.factories import NOW, iso_before

from kubekit.api import codec
from kubekit.api.core_v1 import Event, Pod
from kubekit.api.workloads_v1 import Job
from runup.preflight.decide.job_progress import Observed, progress
from runup.report.report import FORMAT, BadReport, Report

JSON = dict[str, Any]
ID = "preflight-1768384800-0123456789"

EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
NOT_FOUND = 'exec: "preflight": executable file not found in $PATH'


def job(*conditions: JSON, age_s: float = 3) -> Job:
    """The Job with what its controller says."""
    metadata = {"name": f"runup-{ID}", "uid": "uid-job", "creationTimestamp": iso_before(age_s)}
    return codec.convert(Job, {"metadata": metadata, "status": {"conditions": list(conditions)}})


def ended(type_: str, reason: str = "", message: str = "") -> JSON:
    """A condition of the Job that is true."""
    return {"type": type_, "status": "True", "reason": reason, "message": message}


def job_pod(*, age_s: float = 3, conditions: tuple[JSON, ...] = (), phase: str = "Pending", **state: JSON) -> Pod:
    """The pod with the state of its container."""
    statuses = [{"name": "preflight", "image": "registry.example/x", "state": state}] if state else []
    metadata = {"name": "p", "uid": "uid-pod", "creationTimestamp": iso_before(age_s)}
    status = {"phase": phase, "conditions": list(conditions), "containerStatuses": statuses}
    return codec.convert(Pod, {"metadata": metadata, "status": status})


def evicted(since_s: float, **state: JSON) -> Pod:
    """A pod of an evicted run that has been asked to end."""
    found = job_pod(age_s=since_s + 60, conditions=(EVICTED,), phase="Running", **state)
    at = NOW - timedelta(seconds=since_s)
    return replace(
        found,
        metadata=replace(found.metadata, deletion_timestamp=at, namespace="runup-preflight"),
        spec=replace(found.spec, node_name="n"),
    )


def event(reason: str, message: str, of: str) -> Event:
    """A Warning."""
    about = {"kind": "Job", "name": "x", "uid": of}
    return codec.convert(
        Event, {"involvedObject": about, "reason": reason, "message": message, "metadata": {"name": "e"}}
    )


def report(status: str = "completed", run_id: str = ID) -> Report:
    """A report of that run."""
    return codec.convert(
        Report, {"format": FORMAT, "preflightID": run_id, "targetVersion": "5.2.0", "executionStatus": status}
    )


def seen(**changes: Any) -> Observed:
    """A Job of three seconds."""
    return Observed(id=ID, now=NOW, **{"job": job(), **changes})


QUOTA = 'Error creating: pods "x" is forbidden: exceeded quota: tight'
PULLING = {"reason": "ErrImagePull", "message": "manifest unknown"}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes: cpu"}


@pytest.mark.parametrize(
    ("observed", "state", "words"),
    [
        pytest.param(seen(), "waiting", "", id="a new Job waits for its pod, and there is nothing to tell"),
        pytest.param(seen(pods=(job_pod(running={}),)), "running", "", id="a running container"),
        pytest.param(seen(report=report()), "reported", "", id="a complete report"),
        pytest.param(seen(report=report("failed")), "reported", "", id="a report that the checks failed"),
        pytest.param(seen(report=report("running")), "running", "", id="a report of progress is no end"),
        pytest.param(seen(report=report(), job=None), "reported", "", id="a report counts though the Job is gone"),
        pytest.param(
            seen(report=report(run_id="another")), "failed", "belongs to another preflight", id="another's report"
        ),
        pytest.param(
            seen(report=BadReport("the report is not a JSON object", reason="ReportInvalid")),
            "failed",
            "not a JSON object",
            id="what is no report",
        ),
        pytest.param(seen(job=None), "failed", "deleted by somebody else", id="the Job is gone"),
        pytest.param(
            seen(events=(event("FailedCreate", QUOTA, "uid-job"),)),
            "waiting",
            "exceeded quota: tight",
            id="a quota is shown at once",
        ),
        pytest.param(
            seen(job=job(age_s=10), events=(event("FailedCreate", QUOTA, "uid-job"),)),
            "failed",
            "change what refuses it",
            id="a pod that may not be created for ten seconds is given up",
        ),
        pytest.param(
            seen(events=(event("FailedCreate", QUOTA, "uid-other"),)), "waiting", "", id="another Job's event"
        ),
        pytest.param(
            seen(job=job(age_s=60), pods=(job_pod(waiting=PULLING),)),
            "waiting",
            "could not be pulled (ErrImagePull): manifest unknown",
            id="an image that cannot be pulled is tried again",
        ),
        pytest.param(
            seen(job=job(age_s=10), pods=(job_pod(waiting={"reason": "InvalidImageName", "message": "A B"}),)),
            "failed",
            "InvalidImageName",
            id="no time mends an image's name",
        ),
        pytest.param(
            seen(pods=(job_pod(waiting={"reason": "CreateContainerConfigError", "message": "runAsNonRoot"}),)),
            "waiting",
            "could not be started (CreateContainerConfigError): runAsNonRoot",
            id="a container that cannot be made",
        ),
        pytest.param(
            seen(job=job(age_s=300), pods=(job_pod(conditions=(UNSCHEDULABLE,)),)),
            "waiting",
            "no node takes the target's pod: 0/3 nodes: cpu",
            id="a node may come yet",
        ),
        pytest.param(
            seen(pods=(job_pod(phase="Failed", terminated={"exitCode": 1, "message": "error: no such host"}),)),
            "failed",
            "exit code 1: error: no such host",
            id="a process that failed says why",
        ),
        pytest.param(
            seen(pods=(job_pod(phase="Failed", conditions=(EVICTED,), terminated={"exitCode": 143}),)),
            "waiting",
            "",
            id="a pod that was evicted is replaced",
        ),
        pytest.param(
            seen(pods=(job_pod(terminated={"exitCode": 1, "message": 'unknown command "preflight"'}),)),
            "failed",
            "give runup's own image with --image",
            id="an image without the command",
        ),
        pytest.param(
            seen(pods=(job_pod(terminated={"exitCode": 128, "reason": "StartError", "message": NOT_FOUND}),)),
            "failed",
            "the image has no command `preflight`: give runup's own image with --image",
            id="an image with another entry point",
        ),
        pytest.param(
            seen(report=BadReport("format preflight-v9 is not known", reason="ReportInvalid")),
            "failed",
            "preflight-v9 is not known; give runup's own image with --image",
            id="a report of another format",
        ),
        pytest.param(
            seen(job=job(age_s=600), pods=(evicted(300, running={}),)),
            "waiting",
            "pod p on node n has been terminating since 2026-01-14T",
            id="an evicted pod that does not end keeps the Job waiting",
        ),
        pytest.param(
            seen(pods=(evicted(1, terminated={"exitCode": 143}),)), "waiting", "", id="an evicted pod that ends"
        ),
        pytest.param(
            seen(job=job(age_s=600), pods=(evicted(300, running={}), job_pod(age_s=1, running={}))),
            "running",
            "",
            id="another pod runs beside one that does not end",
        ),
        pytest.param(
            seen(pods=(job_pod(terminated={"exitCode": 137, "reason": "OOMKilled"}),)),
            "failed",
            "killed for memory",
            id="memory",
        ),
        pytest.param(
            seen(job=job(ended("Complete")), pods=(job_pod(phase="Succeeded", terminated={"exitCode": 0}),)),
            "failed",
            "ended without a report, so its image is not one of runup's; give runup's own image with --image",
            id="an image that does something else",
        ),
        pytest.param(
            seen(job=job(ended("Failed", "DeadlineExceeded")), waited_for="no node takes it"),
            "failed",
            "not done in time; before that: no node takes it; raise --timeout",
            id="its time is over",
        ),
        pytest.param(
            seen(job=job(ended("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"))),
            "failed",
            "BackoffLimitExceeded): Job has reached",
            id="its pod failed, and is gone",
        ),
    ],
)
def test_what_has_become_of_it(observed: Observed, state: str, words: str) -> None:
    """The words are those of whoever prevents it, with a way out."""
    shown = progress(observed)
    assert shown.state == state
    assert words in shown.text
    assert bool(shown.text) is bool(words)
