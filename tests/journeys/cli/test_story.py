"""The main job as typed: check, fix, accept, be stopped, update."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from bench.releases_world import events
from tests.journeys.conftest import COMMAND_S, RUNUP, Sandbox
from tests.servers import eventually

from kubekit.api.conditions import find
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Deployment
from kubekit.kube import calls
from runup.api.config_v1 import ConditionalUpdate
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.preflight.decide import cluster_run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

NAMESPACE = "openshift-cluster-version-operator"
PREFLIGHT = "cluster-version-operator-preflight"
# What the scenario puts in the way, in the scenario's own words, and that nobody offers or makes the hop.
EXPECTED = {
    "ClusterVersionGiantHop",
    "DualStackIncompatible",
    "MachineConfigPoolPaused-infra",
    "NodeCordoned",
    "PodDisruptionBudgetBlocksDrain",
    "UpdatePathNotOffered",
}


def _updates(sandbox: Sandbox) -> tuple[ConditionalUpdate, ...]:
    return sandbox.cluster_version().status.conditional_updates


def _names(sandbox: Sandbox, version: str) -> set[str]:
    return {risk.name for update in _updates(sandbox) if update.release.version == version for risk in update.risks}


def _deployments(sandbox: Sandbox) -> set[str]:
    return {item.metadata.name for item in sandbox.client.list_all(Deployment, NAMESPACE)[0]}


def _accepted(sandbox: Sandbox) -> tuple[str, str]:
    found = find(sandbox.cluster_version().status.conditions, "ReleaseAccepted")
    return (found.status, found.reason) if found else ("", "")


@pytest.mark.xdist_group("skip-level")
def test_the_main_job(skip_level: Sandbox) -> None:
    """Every step of the first page of the documentation, on one cluster, in order."""
    done = skip_level.run("upgrade", "--mode=preflight", "--to=5.2.0", "--wait")
    assert done.code == 2, done.out + done.err
    assert _names(skip_level, "5.2.0") >= EXPECTED
    for name in EXPECTED:
        assert name in done.out

    pool = resource_of(MachineConfigPool)
    skip_level.client.send(calls.merge_patch(pool, "infra", {"spec": {"paused": False}}))
    eventually(lambda: "MachineConfigPoolPaused-infra" not in _names(skip_level, "5.2.0"), "the fix was seen")

    explained = skip_level.run("preflight", "explain", "DualStackIncompatible", "-o", "json")
    target = json.loads(explained.out)["targets"][0]
    assert (target["target"], target["applies"], target["accepted"]) == ("5.2.0", "True", False)
    assert target["remediation"]

    why = ("--reason", "network team, CHG-7712")
    assert skip_level.run("upgrade", "accept", "DualStackIncompatible", *why).code == 0
    page = skip_level.run("preflight", "show", "-o", "html")
    assert page.code == 2, page.err
    for said in ("Preflight of 5.2.0 from 5.0.0", "runup-x7k2p (api.runup.example)", "Accepted (1)", why[1]):
        assert said in page.out
    assert str(skip_level.data) not in page.out
    refused = skip_level.run("upgrade", "--to=5.2.0", "--allow-not-recommended")
    assert (refused.code, refused.out) == (1, "")
    assert "the update service does not offer 5.2.0" in refused.err
    image = next(u.release.image for u in _updates(skip_level) if u.release.version == "5.2.0")
    requested = skip_level.run("upgrade", f"--to-image={image}", "--allow-explicit-upgrade")
    # The preflight that checks the image knows its version.
    assert requested.out == "Requested update to 5.2.0\n", requested.err
    eventually(lambda: _accepted(skip_level) == ("False", "UnacceptedRisks"), "unaccepted risks block")
    shown = skip_level.run("upgrade").out
    assert "ReleaseAccepted=False\n\n  Reason: UnacceptedRisks\n" in shown
    assert "NodeCordoned" in shown
    assert skip_level.cluster_version().status.desired.version == "5.0.0"

    rest = ",".join(sorted(_names(skip_level, "5.2.0") - {"DualStackIncompatible"}))
    accepted = skip_level.run("upgrade", "accept", rest)
    assert accepted.code == 0
    assert "warning: accepting ClusterVersionGiantHop does not lift it for 5.2.0" in accepted.err
    eventually(lambda: _accepted(skip_level) == ("False", "PreconditionChecks"), "the hop itself is refused")
    assert "5.2.0" not in {release.version for release in skip_level.cluster_version().status.available_updates or ()}
    assert skip_level.run("upgrade", "--to=5.0.3").out == "Requested update to 5.0.3\n"
    skip_level.until(lambda cluster: cluster.status.desired.version == "5.0.3", "the update starts")
    eventually(lambda: PREFLIGHT not in _deployments(skip_level), "the preflight's Deployment goes")
    assert "mode" not in (skip_level.desired_update() or {})


@pytest.mark.xdist_group("skip-level")
def test_who_asked(skip_level: Sandbox) -> None:
    """Operator and target are ServiceAccounts to the server, over TLS; only people and the cluster are more."""
    skip_level.run("upgrade", "--preflight", "--to=5.2.0", "--wait")
    agents = ("ClusterVersionOperator/", "runup-preflight/")
    ours = [
        event for event in events(skip_level.data / "audit.log", 0) if event.get("userAgent", "").startswith(agents)
    ]
    assert {event["userAgent"].partition("/")[0] + "/" for event in ours} == set(agents)
    account = f"system:serviceaccount:{NAMESPACE}:cluster-version-operator"
    # The Jobs of another test's preflights in the cluster have accounts in a separate namespace.
    jobs = f"system:serviceaccount:{cluster_run.NAMESPACE}:"
    assert {name for event in ours if not (name := event["user"]["username"]).startswith(jobs)} == {account}
    assert skip_level.client.config.server.startswith("https://")


@pytest.mark.xdist_group("clean")
def test_nothing_found(clean: Sandbox) -> None:
    """Exit code 0, and the condition says that nothing was found, as opposed to not looked at."""
    done = clean.run("upgrade", "--preflight", "--to=5.1.0", "--wait")
    assert (done.code, done.verdict) == (0, "Verdict: nothing blocks an update to 5.1.0.")
    completed = find(clean.cluster_version().status.conditions, "PreflightCompleted")
    assert completed is not None
    assert (completed.status, completed.reason) == ("True", "NoRisksFound")
    history = json.loads(clean.run("preflight", "history", "-o", "json").out)
    assert [report["targetVersion"] for report in history] == ["5.1.0"]


@pytest.mark.xdist_group("clean")
def test_ending_a_preflight(clean: Sandbox) -> None:
    """The Deployment goes, a second time there is nothing to do, and no update was started by it."""
    clean.run("upgrade", "--preflight", "--to=5.1.0", "--wait")
    assert PREFLIGHT in _deployments(clean)
    assert clean.run("upgrade", "--clear-preflight").out == "Ended the preflight of 5.1.0\n"
    eventually(lambda: PREFLIGHT not in _deployments(clean), "the Deployment was removed")
    assert clean.run("upgrade", "--clear-preflight").out == "info: No preflight is requested\n"
    cluster = clean.cluster_version()
    assert (cluster.status.desired.version, len(cluster.status.history)) == ("5.0.0", 1)


@pytest.mark.xdist_group("clean")
def test_an_unknown_mode_updates_nothing(clean: Sandbox) -> None:
    """The server's schema refuses it; the command does so before."""
    with pytest.raises(Exception, match="Unsupported value"):
        clean.patch(mode="Frobnicate", version="5.1.0")
    assert clean.run("upgrade", "--mode=Frobnicate", "--to=5.1.0").code == 1
    assert clean.cluster_version().status.desired.version == "5.0.0"


@pytest.mark.xdist_group("misbehaving")
def test_two_administrators(misbehaving: Sandbox) -> None:
    """Whoever waits for a target that somebody replaces is reported by what, and exits 1."""
    misbehaving.run("upgrade", "--clear-preflight")
    words = [*RUNUP, "upgrade", "--preflight", "--to=5.1.3", "--wait"]
    waiting = subprocess.Popen(
        words, env=misbehaving.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    eventually(lambda: (misbehaving.desired_update() or {}).get("version") == "5.1.3", "the first one asked")
    other = misbehaving.run("upgrade", "--preflight", "--to=5.1.0")
    assert other.err == "warning: this takes the place of the preflight of 5.1.3\n"
    _, err = waiting.communicate(timeout=COMMAND_S)
    assert waiting.returncode == 1
    assert err == "error: the preflight of 5.1.3 was replaced: somebody now asks for a preflight of 5.1.0\n"


@pytest.mark.xdist_group("misbehaving")
def test_leaving_with_ctrl_c(misbehaving: Sandbox) -> None:
    """The preflight continues; 130, and how to end it."""
    import signal

    words = [*RUNUP, "upgrade", "--preflight", "--to=5.1.3", "--wait"]
    waiting = subprocess.Popen(
        words, env=misbehaving.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert waiting.stdout is not None
    assert waiting.stdout.readline()
    waiting.send_signal(signal.SIGINT)
    _, err = waiting.communicate(timeout=COMMAND_S)
    assert waiting.returncode == 130
    assert "The preflight of 5.1.3 continues." in err
    assert "--clear-preflight" in err
    assert "Traceback" not in err
    assert (misbehaving.desired_update() or {})["mode"] == "Preflight"
    misbehaving.run("upgrade", "--clear-preflight")


@pytest.mark.xdist_group("pruned")
def test_a_server_that_would_prune_the_mode(pruned: Sandbox) -> None:
    """Nothing is changed, and the error says what brings the field."""
    before: Any = pruned.cluster_version().metadata.generation
    done = pruned.run("upgrade", "--mode=preflight", "--to=4.23.0", "--wait")
    assert (done.code, done.out) == (1, "")
    assert "Nothing was changed." in done.err
    assert "ClusterUpdatePreflight" in done.err
    assert pruned.cluster_version().metadata.generation == before
    assert pruned.desired_update() is None
