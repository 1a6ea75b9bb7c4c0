"""A check that is a query, against a real Prometheus: in the target's process as it continues, and once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.kubekit.kube.apiscript import reply, scripted_api, silence
from tests.preflight.control.test_target import NAMESPACE, Log, Reports, Running
from tests.prometheus import needed, prometheus
from tests.servers import eventually
from yarl import URL

from kubekit.kube.clock import SystemClock
from kubekit.kube.config import ClusterConfig, load
from kubesandbox.apiserver.server import ApiServer
from runup.checks.decide.declarative import declared_check
from runup.facts.target_release import TargetRelease
from runup.process.read_only_client import ReadOnlyClient
from runup.report.report import Report, read
from runup.target.process import PreflightTarget, TargetRequest

CHECK = declared_check(
    {
        "apiVersion": "preflight.runup.dev/v1alpha1",
        "kind": "PreflightCheck",
        "metadata": {"name": "slow-disks"},
        "spec": {
            "component": "etcd",
            "promql": {"query": "max(disk_seconds) > bool 1"},
            "risk": {"name": "SlowDisks", "message": "Disks are slow."},
        },
    },
    file="slow.yaml",
)
# The task that sends what is due.
QUERIES = "prometheus"


@pytest.fixture
async def config(tmp_path: Path) -> AsyncIterator[ClusterConfig]:
    """An empty cluster."""
    async with ApiServer(tmp_path / "data") as server:
        yield load(str(server.kubeconfig))


def request(url: str) -> TargetRequest:
    """A preflight whose checks may ask `url`."""
    return TargetRequest(
        target_version="5.2.0", source_version="5.0.0", preflight_id="p1", namespace=NAMESPACE, prometheus_url=url
    )


def verdict(report: Report) -> tuple[str, str]:
    """What the one check came to, and why."""
    return report.checks[0].result, " ".join(risk.message for risk in report.risks)


@needed
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(3.0, ("Applies", "Disks are slow."), id="slow"),
        pytest.param(0.2, ("Clear", ""), id="fast"),
        pytest.param(
            None, ("Unknown", "invalid PromQL result length must be one, but is 0"), id="nobody measures"
        ),
    ],
)  # fmt: skip
@pytest.mark.slow
async def test_prometheus_decides(
    config: ClusterConfig, tmp_path: Path, value: float | None, expected: tuple[str, str]
) -> None:
    """The first complete report has its answer, not that there is none yet."""
    (tmp_path / "prometheus").mkdir()
    with prometheus(tmp_path / "prometheus", []) as real:
        if value is not None:
            real.series["disk_seconds"] = value
            ask = "/api/v1/query?query=disk_seconds"
            eventually(lambda: real.get(ask)["data"]["result"], "the series is there")
        reports = Reports(tmp_path / "report.json")
        async with Running(config, reports, checks=[CHECK], request=request(real.url)):
            report = await reports.until(lambda found: found.execution_status == "completed")
    result, said = verdict(report)
    assert result == expected[0]
    assert expected[1] in said


async def test_nobody_answers(config: ClusterConfig, tmp_path: Path) -> None:
    """Asked once, as from a laptop: Unknown, with the address and why."""
    path = tmp_path / "report.json"
    reports = Reports(path)
    async with ReadOnlyClient(config, namespace=NAMESPACE) as client:
        target = PreflightTarget(
            client=client,
            request=request("http://127.0.0.1:9"),
            release=TargetRelease(),
            sink=reports,
            clock=SystemClock(),
            log=Log(),
            builtin=[CHECK],
        )
        await target.run(once=True)
    result, said = verdict(read(path.read_bytes()))
    assert result == "Unknown"
    assert "http://127.0.0.1:9" in said
    assert reports.statuses == ["completed"]


async def test_only_what_checks_ask_is_asked(config: ClusterConfig, tmp_path: Path) -> None:
    """Alerts are none of a target's business: each of its queries is one of a check, and is sent once."""
    async with scripted_api() as served:
        served.answers(reply({"status": "success", "data": {"resultType": "vector", "result": []}}))
        async with ReadOnlyClient(config, namespace=NAMESPACE) as client:
            reports = Reports(tmp_path / "report.json")
            target = PreflightTarget(
                client=client,
                request=request(served.url),
                release=TargetRelease(),
                sink=reports,
                clock=SystemClock(),
                log=Log(),
                builtin=[CHECK],
            )
            await target.run(once=True)
        asked = [URL(each.partition(" ")[2]) for each in served.targets]
    assert [(each.path, each.query["query"]) for each in asked] == [("/api/v1/query", "max(disk_seconds) > bool 1")]


async def test_what_is_asked_ends_with_the_process(config: ClusterConfig, tmp_path: Path) -> None:
    """A query that nobody answers is not waited for by anybody who has ended."""
    async with scripted_api() as served:
        served.answers(silence)
        before = {task.get_name() for task in asyncio.all_tasks()}
        assert QUERIES not in before
        async with Running(config, Reports(tmp_path / "report.json"), checks=[CHECK], request=request(served.url)):
            await served.until_requests(1)
            assert QUERIES in {task.get_name() for task in asyncio.all_tasks()}
        assert QUERIES not in {task.get_name() for task in asyncio.all_tasks()}
