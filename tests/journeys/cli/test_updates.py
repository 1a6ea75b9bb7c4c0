"""Releases that are really applied: an install, updates, one that is taken back, and components that do not behave."""

from __future__ import annotations

from typing import Any

import pytest
from tests.journeys.conftest import Sandbox
from tests.servers import eventually

from kubekit.api.conditions import find
from kubekit.api.scheme import resource_of
from kubekit.api.workloads_v1 import Deployment
from kubekit.kube import calls
from kubekit.kube.api_errors import NotFound
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.api.update_v1alpha1 import NAME, ClusterVersionInsight, UpdateStatus

# Two loaded cores may take minutes for what takes half of one otherwise.
UPDATE_S = 240.0
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
JSON = dict[str, Any]
NAMESPACE = "openshift-cluster-version-operator"


def completed(sandbox: Sandbox, version: str) -> None:
    """Wait until the cluster is at `version`, and see that everything is."""
    eventually(lambda: _newest(sandbox) == ("Completed", version), f"{version} is Completed", UPDATE_S)
    operators = sandbox.client.list_all(ClusterOperator)[0]
    said = {co.metadata.name: v.version for co in operators for v in co.status.versions if v.name == "operator"}
    assert len(said) == 14
    assert set(said.values()) == {version}, said
    cluster = sandbox.cluster_version()
    assert _condition(cluster, "Progressing") == ("False", f"Cluster version is {version}")
    assert _condition(cluster, "Failing")[0] == "False"
    image = cluster.status.desired.image
    assert _operators_image(sandbox) == image


def _newest(sandbox: Sandbox) -> tuple[str, str]:
    history = sandbox.cluster_version().status.history
    return (history[0].state, history[0].version) if history else ("", "")


def _condition(cluster: ClusterVersion, name: str) -> tuple[str, str]:
    found = find(cluster.status.conditions, name)
    return (found.status, found.message) if found else ("", "")


def _operators_image(sandbox: Sandbox) -> str:
    found = sandbox.client.send(calls.get_raw(resource_of(Deployment), "cluster-version-operator", NAMESPACE))
    image: str = found["spec"]["template"]["spec"]["containers"][0]["image"]
    return image


def insights(sandbox: Sandbox, since: str) -> list[ClusterVersionInsight]:
    """Returns the control-plane insights of UpdateStatus since that version of it, in order."""
    found = []
    for event in sandbox.client.watch(UpdateStatus, resource_version=since, timeout_seconds=2):
        status = event.object.status if event.type != "BOOKMARK" else None
        informers = status.control_plane.informers if status and status.control_plane else ()
        found += [i.cluster_version for each in informers for i in each.insights if i.cluster_version is not None]
    return found


def _version_of_the_report(sandbox: Sandbox) -> str:
    try:
        return sandbox.client.send(calls.get(UpdateStatus, NAME)).metadata.resource_version
    except NotFound:  # the operator has only just installed what writes it
        return ""


@pytest.mark.xdist_group("updates")
def test_installed_updated_and_taken_back(updates: Sandbox) -> None:
    """By its own operator from nothing to 5.0.0, to 5.1.0 and 5.1.1, back by that patch, and to 5.2.0."""
    completed(updates, "5.0.0")
    assert [entry.version for entry in updates.cluster_version().status.history] == ["5.0.0"]
    eventually(lambda: updates.cluster_version().status.available_updates, "the update service has answered")

    before = eventually(lambda: _version_of_the_report(updates), "there is a report")
    assert updates.run("upgrade", "--to=5.1.0").out == "Requested update to 5.1.0\n"
    eventually(lambda: _newest(updates) == ("Partial", "5.1.0"), "the update has begun", UPDATE_S)
    said = "Cleared the update field\nThe update to 5.1.0 has begun and continues. "
    assert updates.run("upgrade", "--clear").out.startswith(said)
    completed(updates, "5.1.0")
    done = "Update to 5.1.0 successfully completed"
    eventually(lambda: done in updates.run("upgrade", "status").out, "the report says so, too")
    shown = [each for each in insights(updates, before) if each.versions and each.versions.target.version == "5.1.0"]
    assert {"Progressing", "Completed"} <= {each.assessment for each in shown}
    percent = [each.completion for each in shown]
    assert percent == sorted(percent), "it never goes back"
    assert (percent[0], percent[-1]) == (0, 100)

    image = updates.cluster_version().status.desired.image
    eventually(lambda: _offered(updates, "5.1.1"), "the patch is offered")
    assert updates.run("upgrade", "--to=5.1.1").code == 0
    completed(updates, "5.1.1")
    back = updates.run("upgrade", f"--to-image={image}", "--allow-explicit-upgrade")
    assert back.code == 0, back.err
    completed(updates, "5.1.0")

    eventually(lambda: _offered(updates, "5.2.0"), "the next minor release is offered")
    assert updates.run("upgrade", "--to=5.2.0").code == 0
    completed(updates, "5.2.0")
    history = [(entry.state, entry.version) for entry in updates.cluster_version().status.history]
    assert history == [("Completed", v) for v in ("5.2.0", "5.1.0", "5.1.1", "5.1.0", "5.0.0")]


def _offered(sandbox: Sandbox, version: str) -> bool:
    updates_ = sandbox.cluster_version().status.available_updates or ()
    return version in {release.version for release in updates_}


@pytest.mark.xdist_group("troubled")
def test_components_in_trouble(troubled: Sandbox) -> None:
    """The update says whom it waits for, and continues by itself, or with the release that has them fixed."""
    eventually(lambda: _offered(troubled, "5.0.1"), "the patches are offered")
    assert troubled.run("upgrade", "--to=5.0.1").code == 0
    completed(troubled, "5.0.1")

    for version, state in (("5.0.2", "degraded"), ("5.0.3", "stuck"), ("5.0.4", "crashing")):
        eventually(lambda v=version: _offered(troubled, v), f"{version} is offered")  # type: ignore[misc]
        asked = troubled.run("upgrade", f"--to={version}", "--allow-upgrade-with-warnings")
        assert asked.code == 0, f"{state}: {asked.err}"
        eventually(lambda v=version: _waits_for_storage(troubled, v), f"{state}: storage is named", UPDATE_S)  # type: ignore[misc]
        assert _newest(troubled) == ("Partial", version), state
        eventually(lambda s=state: _status_shows(troubled, s), f"{state}: the report says so", UPDATE_S)  # type: ignore[misc]

    eventually(lambda: _offered(troubled, "5.0.5"), "the mended release is offered")
    assert troubled.run("upgrade", "--to=5.0.5", "--allow-upgrade-with-warnings").code == 0
    completed(troubled, "5.0.5")


def _status_shows(sandbox: Sandbox, state: str) -> bool:
    """Whether `upgrade status` reports it; of an operator that crashes there is nothing but its old version.

    What is degraded is counted at once, and named when it has been so for minutes.
    """
    words = {"degraded": "Available but degraded", "stuck": "storage"}.get(state, "")
    return words in sandbox.run("upgrade", "status", "--details=operators").out


def _waits_for_storage(sandbox: Sandbox, version: str) -> bool:
    cluster = sandbox.cluster_version()
    status, message = _condition(cluster, "Progressing")
    return status == "True" and version in message and "storage" in message
