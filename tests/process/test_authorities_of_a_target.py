"""The authorities of Prometheus that a target is given: those of the operator's mounted file, as they are now."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.applying.control.applied_world import eventually, there
from tests.operator.operator_world import NAMESPACE, Cluster, cluster, running

from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Deployment
from runup.preflight.decide import preflight_deployment
from runup.process.ca_file import MAX_BYTES, Authorities

CA = "PREFLIGHT_PROMETHEUS_CA"
FIRST, SECOND = "-----BEGIN CERTIFICATE-----\nfirst\n", "-----BEGIN CERTIFICATE-----\nthe second\n"


def mounted(folder: Path, text: str) -> Path:
    """The file with that text, as a mounted ConfigMap is changed: another file in its place at once."""
    new = folder / "new"
    new.write_text(text)
    path = folder / "service-ca.crt"
    new.replace(path)
    return path


async def has(world: Cluster, text: str) -> bool:
    """Whether the target's container is given `text`."""
    found = await there(world, resource_of(Deployment), preflight_deployment.NAME, NAMESPACE)
    if found is None:
        return False
    (container,) = found["spec"]["template"]["spec"]["containers"]
    return {each["name"]: each.get("value", "") for each in container["env"]}.get(CA, "") == text


async def test_a_file_that_comes_late_and_is_changed(tmp_path: Path) -> None:
    """The service CA's operator writes it after this one started, and rotates it while a target runs."""
    path = tmp_path / "service-ca.crt"
    async with cluster(tmp_path / "world") as (world, make), running(make(prometheus_ca=str(path))):
        await world.ask({"mode": "Preflight", "version": "5.2.0"})
        await world.started("5.2.0")
        await eventually(lambda: has(world, ""), "a target without authorities")
        for text in (FIRST, SECOND):
            mounted(tmp_path, text)
            # Files are looked at when something happens.
            await world.patch_spec({"channel": f"stable-{len(text)}"})
            await eventually(lambda text=text: has(world, text), "a target with those of the file")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        pytest.param(lambda path: path.unlink(), "No such file", id="it is gone"),
        pytest.param(lambda path: path.write_bytes(b"\xff\xfe"), "ascii", id="it is not text"),
        pytest.param(lambda path: path.write_text("x" * (MAX_BYTES + 1)), "at most", id="it is far too long"),
    ],
)
def test_a_file_that_cannot_be_read_any_more(tmp_path: Path, spoil: object, why: str) -> None:
    """What was read last counts, and the log says why, once."""
    authorities = Authorities(str(mounted(tmp_path, FIRST)))
    assert authorities.pem() == FIRST
    spoil(tmp_path / "service-ca.crt")  # type: ignore[operator]
    with capture_logs() as said:
        assert [authorities.pem(), authorities.pem()] == [FIRST, FIRST]
    assert [why in line["error"] for line in said] == [True]
    mounted(tmp_path, SECOND)
    assert authorities.pem() == SECOND


def test_no_file_is_no_authority() -> None:
    """Where the installation names none."""
    assert Authorities("").pem() == ""
