"""The operator as a process: one of two leads, another takes over, and a stop is obeyed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.kernelmodules.control.world import (
    MODULES,
    NAMESPACES,
    OPTIONS,
    VALIDATIONS,
    cluster_with_kernel_modules,
    ko,
    module,
    push,
    running,
    validation,
)
from tests.kubekit.oci.registries import sandbox_registry

from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Lease
from kubekit.kube import calls
from runup.api.kmm_v1beta2 import PreflightValidationStatus
from runup.kernelmodules.control.process import NAMESPACE, Process
from runup.process.leader_election import Election

START = "import sys; from runup.cli.operator.entry import kernel_modules; sys.exit(kernel_modules())"
# Nobody loses such a lease because a machine is busy. A leader that ends gives it back if it can in two seconds;
# otherwise it runs out before anybody here has waited too long.
ELECTED = replace(OPTIONS, leader_elect=True, election=Election(45, 40, 0.2))
OWN = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def writes(process: Process) -> float:
    labels = {"kind": "PreflightValidation"}
    return process.metrics.registry.get_sample_value("kernel_module_preflight_writes_total", labels) or 0.0


def leading(process: Process) -> float | None:
    return process.metrics.registry.get_sample_value("kernel_module_preflight_leading")


def is_verified(status: PreflightValidationStatus) -> bool:
    return bool(status.modules) and status.modules[0].verification_status == "Success"


@pytest.mark.slow
def test_one_leads_and_another_takes_over(tmp_path: Path) -> None:
    """Two replicas, one writer; the second continues where the first left off."""

    async def story(host: str) -> None:
        good = push(tmp_path, host, "drivers/good:good", ko("good"))
        async with cluster_with_kernel_modules(tmp_path) as made:
            await made.create(NAMESPACES, OWN)
            await made.create(MODULES, module("good", good))
            async with running(made, ELECTED) as first:
                await made.create(VALIDATIONS, validation())
                await made.until(is_verified)
                async with running(made, ELECTED) as second:
                    await made.create(VALIDATIONS, validation("another"))
                    await made.until(is_verified, "another")
                    assert writes(first) > 0
                    assert writes(second) == 0
                    assert (leading(first), leading(second)) == (1, 0)
                    first.stop()
                    await made.create(VALIDATIONS, validation("third"))
                    await made.until(lambda status: is_verified(status) and writes(second), "third")
                    assert (leading(first), leading(second)) == (0, 1)

    with sandbox_registry(tmp_path) as host:
        asyncio.run(story(host))


@pytest.mark.slow
def test_the_program_works_and_obeys_a_stop(tmp_path: Path) -> None:
    """As its image starts it: it leads, verifies, and ends with 0 when it is told to; its log is JSON, line by line."""

    async def story(host: str) -> None:
        good = push(tmp_path, host, "drivers/good:good", ko("good"))
        async with cluster_with_kernel_modules(tmp_path) as made:
            await made.create(NAMESPACES, OWN)
            await made.create(MODULES, module("good", good))
            await made.create(VALIDATIONS, validation())
            with (tmp_path / "log").open("wb") as log:
                child = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-c",
                    START,
                    f"--kubeconfig={made.kubeconfig}",
                    f"--inner-registry={host}",
                    env=os.environ,
                    stderr=log,
                )
            try:
                await made.until(is_verified)
                child.send_signal(signal.SIGTERM)
                assert await asyncio.wait_for(child.wait(), 90) == 0
            finally:
                if child.returncode is None:
                    child.kill()
                    await child.wait()
            shown = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
            done = [line for line in shown if line["event"] == "module" and line["status"] == "Success"]
            assert [(line["module"], line["stage"]) for line in done] == [("drivers/good", "Done")]
            lease = await made.send(calls.get_raw(resource_of(Lease), "kernel-module-preflight", NAMESPACE))
            assert not lease["spec"].get("holderIdentity")

    with sandbox_registry(tmp_path) as host:
        asyncio.run(story(host))


@pytest.mark.slow
def test_what_it_cannot_use_is_said_in_one_line() -> None:
    """The flag is named, and the exit code is 1."""

    async def story() -> None:
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", START, "--lease=1,2,3", stderr=asyncio.subprocess.PIPE, env=os.environ
        )
        _, error = await child.communicate()
        assert child.returncode == 1
        assert error.decode().startswith("error: --lease 1,2,3: three falling numbers of seconds are needed")
        assert len(error.decode().splitlines()) == 1

    asyncio.run(story())
