"""The command as a managing operator runs it: a process, its exit code and its streams."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubesandbox.apiserver.server import ApiServer
from runup.checks.catalogue import CHECKS
from runup.checks.decide.cluster_kinds import ClusterKind, checks_for_cluster
from runup.report.report import read

MAIN = "import sys; from runup.cli.operator.main import main; sys.exit(main())"
DEADLINE_S = 60


@pytest.fixture
async def kubeconfig(tmp_path: Path) -> AsyncIterator[Path]:
    """An empty cluster's."""
    async with ApiServer(tmp_path / "data") as server:
        yield server.kubeconfig


async def start(*args: str, **env: str) -> asyncio.subprocess.Process:
    """The command in a process, its environment free of preflight settings except for `env`."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PREFLIGHT_", "PAYLOAD_"))}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        MAIN,
        *args,
        env=clean | {"KUBECONFIG": "/nonexistent", **env},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def finished(*args: str, **env: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    process = await start(*args, **env)
    async with asyncio.timeout(DEADLINE_S):
        out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["preflight", "--format=v2"], 'error: unknown format "v2"; this release writes preflight-v1-json\n'),
        (
            ["preflight", "--once", "--release-dir=nowhere"],
            "error: --release-dir nowhere holds neither a folder preflight-checks nor release-manifests\n",
        ),
        (["frobnicate", "--x"], 'error: unknown command "frobnicate" for "cluster-version-operator"\n'),
    ],
    ids=["an unknown format", "a folder of no release", "an unknown command"],
)
async def test_refusals(args: list[str], error: str) -> None:
    """One line says what is wrong, and nothing is written."""
    assert await finished(*args) == (1, "", error)


@pytest.mark.slow
async def test_once_prints_a_report(kubeconfig: Path, tmp_path: Path) -> None:
    """`--once` on a laptop: one report on stdout, the log on stderr, exit code 0."""
    (tmp_path / "preflight-checks").mkdir()
    code, out, err = await finished(
        "preflight", "--once", "--to=5.2.0", "--from=5.0.0", f"--release-dir={tmp_path}", f"--kubeconfig={kubeconfig}"
    )
    assert code == 0, err
    report = read(out.encode())
    assert (report.execution_status, report.source_version, report.target_version) == ("completed", "5.0.0", "5.2.0")
    assert len(report.checks) == len(checks_for_cluster(CHECKS, ClusterKind.OPENSHIFT))
    assert all(json.loads(line)["event"] for line in err.splitlines())


@pytest.mark.slow
async def test_as_the_managing_operator_runs_it(kubeconfig: Path, tmp_path: Path) -> None:
    """Settings come from the environment; SIGTERM ends the process with 0 and leaves a whole report."""
    path = tmp_path / "preflight" / "p7" / "report.json"
    process = await start(
        "preflight",
        "--format=preflight-v1-json",
        KUBECONFIG=str(kubeconfig),
        PAYLOAD_OVERRIDE=str(tmp_path),
        PREFLIGHT_ID="p7",
        PREFLIGHT_SOURCE_VERSION="5.0.0",
        PREFLIGHT_TARGET_VERSION="5.2.0",
        PREFLIGHT_TARGET_IMAGE="registry/release@sha256:1",
        PREFLIGHT_REPORT=str(path),
    )
    assert process.stderr is not None
    async with asyncio.timeout(DEADLINE_S):
        while json.loads(await process.stderr.readline()).get("status") != "completed":
            pass
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0
    report = read(path.read_bytes())
    assert (report.preflight_id, report.target_image) == ("p7", "registry/release@sha256:1")
    assert report.engine_version


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["--to=latest"], "error: the target version 'latest' is not a semantic version such as 5.2.0"),
        (["--to="], "error: the target version '' is not a semantic version"),
        (["--to=5.2.0", "--from=old"], "error: the source version 'old' is not a semantic version"),
        (["--to=5.2.0"], "error: the source version '' is not a semantic version"),
    ],
    ids=["a target that is no version", "no target", "a source that is no version", "a cluster without ClusterVersion"],
)
@pytest.mark.slow
async def test_versions_that_are_none(kubeconfig: Path, tmp_path: Path, args: list[str], error: str) -> None:
    """Exit code 1, the version and the option are named, and the report says so too."""
    report = tmp_path / "report.json"
    (tmp_path / "release-manifests").mkdir()
    code, _, err = await finished(
        "preflight", "--once", f"--report={report}", f"--kubeconfig={kubeconfig}", f"--release-dir={tmp_path}", *args
    )
    assert code == 1
    assert err.splitlines()[-1].startswith(error)
    assert "--from" in err or "--to" in err
    if "source" in error:
        written = read(report.read_bytes())
        assert written.execution_status == "failed"
        assert f"error: {written.message}" == err.splitlines()[-1]
