"""`--clear-preflight` knows about what still runs, and ends it also where no mode is left to be cleared."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cli.commands import Run, Server, cluster

from kubekit.api.core_v1 import ConfigMap, Namespace
from kubekit.api.scheme import resource_of
from kubekit.kube import calls
from runup.clusterversion.decide.upgrade_request import end_preflight
from runup.preflight.decide import stored_reports
from runup.preflight.decide.attempt import END_ANNOTATION, Attempt
from runup.preflight.decide.stored_reports import History

IMAGE = f"quay.io/ocp/release@sha256:{'b' * 64}"
ID = "preflight-7-0123456789"
ATTEMPT = Attempt(id=ID, source_version="5.0.4", target_version="5.0.5", target_image=IMAGE)
END = {"metadata": {"annotations": {END_ANNOTATION: ID}}}
NONE = "info: No preflight is requested\n"
REMOVED = "info: The preflight of 5.0.5 is not requested any more; the operator removes what still runs of it\n"
ENDED = "Ended the preflight of 5.0.5; the update to it continues without it\n"
CASES: dict[str, tuple[dict[str, Any] | None, Attempt | None, str | None, Any, str]] = {
    "nothing runs": (None, None, None, None, NONE),
    "an update that no preflight preceded": ({"version": "5.0.5"}, None, None, None, NONE),
    "an update that waits, by version": ({"version": "5.0.5"}, ATTEMPT, "5.0.5", END, ENDED),
    "an update that waits, by image": ({"image": IMAGE}, ATTEMPT, "5.0.5", END, ENDED),
    "an update that waits while nothing runs yet": ({"version": "5.0.5"}, ATTEMPT, None, END, ENDED),
    "the mode is gone, and the operator is behind": (None, ATTEMPT, "5.0.5", None, REMOVED),
    "an update to another release": ({"version": "5.0.6"}, ATTEMPT, "5.0.5", None, REMOVED),
    "only its Deployment is left": (None, None, "5.0.5", None, REMOVED),
    "it is requested": (
        {"mode": "Preflight", "version": "5.0.5"},
        ATTEMPT,
        "5.0.5",
        {"spec": {"desiredUpdate": None}},
        "Ended the preflight of 5.0.5\n",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_clear_preflight_does(name: str) -> None:
    """The patch, and what is so."""
    asked, attempt, still_runs, patch, said = CASES[name]
    seen = cluster({"spec": {"clusterID": "x", **({"desiredUpdate": asked} if asked else {})}})
    found = end_preflight(seen, attempt, still_runs)
    assert (found.patch, "".join(text for _, text in found.said)) == (patch, said)


def test_it_is_ended_once() -> None:
    """A second time there is only the operator to wait for."""
    seen = cluster({"metadata": {"annotations": {END_ANNOTATION: ID}}, "spec": {"desiredUpdate": {"version": "5.0.5"}}})
    assert [text for _, text in end_preflight(seen, ATTEMPT, "5.0.5").said] == [REMOVED]


def test_on_a_server(run: Run, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The update's request stays as it is."""
    monkeypatch.setenv("CVO_NAMESPACE", "still-runs")
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "still-runs"}}
    server.client.send(calls.create(resource_of(Namespace), body))
    stored = stored_reports.config_map(History(attempt=ATTEMPT), "still-runs")
    server.client.send(calls.apply(resource_of(ConfigMap), stored, field_manager="test", force=True))
    asked = {"version": "5.0.5", "image": IMAGE}
    server.set_cluster_version(spec={"desiredUpdate": asked})
    ran = run("upgrade", "--kubeconfig", server.kubeconfig, "--clear-preflight")
    assert (ran.code, ran.out) == (0, ENDED)
    assert server.cluster_version()["metadata"]["annotations"][END_ANNOTATION] == ID
    assert server.cluster_version()["spec"]["desiredUpdate"] == asked
