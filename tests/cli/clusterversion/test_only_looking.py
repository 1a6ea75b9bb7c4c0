"""For a user without write access, each command names its request, quotes the server, and changes nothing."""

from __future__ import annotations

import pytest
from tests.cli.commands import Run, Server
from tests.cli.rights import LOOKER, let_looker_read

IMAGE = "quay.io/ocp/release@sha256:" + "a" * 64
OLDER = "quay.io/ocp/release@sha256:" + "b" * 64
SINCE = "2026-01-14T09:30:00Z"
HISTORY = [
    {
        "state": "Completed",
        "version": "5.0.2",
        "image": IMAGE,
        "startedTime": SINCE,
        "completionTime": SINCE,
        "verified": True,
    },
    {
        "state": "Completed",
        "version": "5.0.1",
        "image": OLDER,
        "startedTime": SINCE,
        "completionTime": SINCE,
        "verified": True,
    },
]
FORBIDDEN = "Error from server (Forbidden): "
STATUS = {
    "desired": {"version": "5.0.2", "image": IMAGE, "channels": ["stable-5.0"]},
    "availableUpdates": [{"version": "5.1.0", "image": IMAGE}],
    "history": HISTORY,
    "conditions": [
        {"type": "Progressing", "status": "False", "reason": "R", "message": "m", "lastTransitionTime": SINCE},
    ],
}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("--to=5.1.0",), "error: Unable to upgrade: ", id="an update"),
        pytest.param(("--to-multi-arch",), "error: Unable to upgrade: ", id="to all architectures"),
        pytest.param(("--clear",), "error: Unable to cancel current rollout: ", id="taking it back"),
        pytest.param(("channel", "stable-5.0"), "error: unable to set channel: ", id="a channel"),
        pytest.param(("rollback",), "error: Unable to rollback: ", id="the release before"),
        pytest.param(("--mode=preflight", "--to=5.2.0"), FORBIDDEN, id="a preflight"),
        pytest.param(("--clear-preflight",), FORBIDDEN, id="no preflight any more"),
        pytest.param(("accept", "RiskA"), "error: ", id="a risk"),
    ],
)
def test_what_may_not_be_written(run: Run, server: Server, words: tuple[str, ...], said: str) -> None:
    """One error, and no success before it."""
    wanted = {"version": "5.0.2", "image": IMAGE}
    if words == ("--clear-preflight",):
        wanted["mode"] = "Preflight"
    before = server.set_cluster_version(spec={"channel": "fast-5.0", "desiredUpdate": wanted}, status=STATUS)
    let_looker_read(server.client)
    ran = run("upgrade", *words, "--kubeconfig", server.kubeconfig, "--as", LOOKER)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.splitlines()[-1].startswith(said), ran.err
    assert 'User "looker" cannot patch resource "clusterversions"' in ran.err
    assert server.cluster_version()["spec"] == before["spec"]
