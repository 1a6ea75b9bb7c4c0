"""`upgrade channel` and `upgrade rollback`: texts, refusals and patches as oc has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.commands import Run, Server

from kubekit.error_types import InputError
from runup.api import clusterversion_json as facts
from runup.clusterversion.decide import upgrade_request


def _facts(now: str = "", known: tuple[str, ...] = ()) -> facts.Facts:
    desired = {"version": "5.0.0", "channels": list(known)}
    return facts.read({"spec": {"channel": now}, "status": {"desired": desired}})


CLEARING = 'warning: Clearing channel "{}"; cluster will no longer request available update recommendations.\n'
ANYWAY = (
    'warning: The requested channel "c" is not one of the available channels (a, b). You have used '
    '--allow-explicit-channel to proceed anyway. Setting the update channel to "c".\n'
)
UNKNOWN = (
    'warning: No channels known to be compatible with the current version "5.0.0"; unable to validate "c". Setting '
    'the update channel to "c" anyway.\n'
)
CHANNELS: dict[str, tuple[str, tuple[str, ...], str, bool, str, str, str | None]] = {
    "clear already": ("", (), "", False, "info: Cluster channel is already clear (no change)\n", "", None),
    "the same": ("a", ("a",), "a", False, "info: Cluster is already in a (no change)\n", "", None),
    "another that is known": ("a", ("a", "b"), "b", False, "", "", "b"),
    "another that is not, insisted on": ("a", ("a", "b"), "c", True, "", ANYWAY, "c"),
    "none is known": ("a", (), "c", False, "", UNKNOWN, "c"),
    "clearing where none is known": ("a", (), "", False, "", CLEARING.format("a"), ""),
    "clearing one that is not known": ("x", ("a",), "", False, "", CLEARING.format("x"), ""),
    "clearing a known one, insisted on": ("a", ("a",), "", True, "", CLEARING.format("a"), ""),
}


@pytest.mark.parametrize("name", CHANNELS)
def test_channels(name: str) -> None:
    """Returns the text of each stream, and the patch."""
    now, known, new, explicit, out, err, sent = CHANNELS[name]
    found = upgrade_request.plan_channel(_facts(now, known), new, explicit=explicit)
    assert "".join(text for stream, text in found.said if stream == "out") == out
    assert "".join(text for stream, text in found.said if stream == "err") == err
    assert found.patch == (None if sent is None else {"spec": {"channel": sent}})


CHANNELS_REFUSED = {
    "clearing a known one": (
        ("a", ("a",), ""),
        'You are requesting to clear the update channel. The current channel "a" is one of the available channels, '
        "you must pass --allow-explicit-channel to continue\n",
    ),
    "one that is not known": (
        ("a", ("a", "b"), "c"),
        'the requested channel "c" is not one of the available channels (a, b), you must pass '
        "--allow-explicit-channel to continue\n",
    ),
}


@pytest.mark.parametrize("name", CHANNELS_REFUSED)
def test_channels_refused(name: str) -> None:
    """The way out is in the text."""
    (now, known, new), text = CHANNELS_REFUSED[name]
    with pytest.raises(InputError) as caught:
        upgrade_request.plan_channel(_facts(now, known), new, explicit=False)
    assert caught.value.message == text


@pytest.mark.slow
def test_a_channel_on_a_server(run: Run, server: Server) -> None:
    """A change prints nothing; `-o json` says what was sent."""
    server.set_cluster_version(spec={"channel": "a"})

    def typed(*words: str) -> Any:
        return run("upgrade", "channel", *words, "--kubeconfig", server.kubeconfig)

    ran = typed("c")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("warning: No channels known to be compatible with the current version")
    assert server.cluster_version()["spec"]["channel"] == "c"
    assert json.loads(typed("c", "-o", "json").out) == {
        "action": "channel",
        "changed": False,
        "patch": None,
        "messages": ["info: Cluster is already in c (no change)"],
        "channel": "c",
    }
    assert typed().err == CLEARING.format("c")
    assert server.cluster_version()["spec"].get("channel", "") == ""
    ran = typed("a", "b")
    assert ran.err.startswith("error: multiple positional arguments given\nSee 'runup upgrade channel -h'")
    server.remove_cluster_version()
    assert typed("a").err.startswith("error: no cluster version information available - you must be connected to an ")


def test_a_dump_that_is_in_no_channel(run: Run, tmp_path: Path) -> None:
    """As text it is said; for programs it is empty."""
    document = {"kind": "ClusterVersion", "status": {"desired": {"version": "5.0.0", "channels": ["a"]}}}
    (tmp_path / "cv.json").write_text(json.dumps(document))
    words = ("upgrade", "channel", "--dump", tmp_path / "cv.json")
    assert run(*words).out == "Channel: none, so no updates are offered\n"
    shown = {"channel": "", "channels": ["a"], "version": "5.0.0"}
    assert json.loads(run(*words, "-o", "json").out) == shown


HERE, BEFORE = "quay.io/ocp@sha256:" + "b" * 64, "quay.io/ocp@sha256:" + "a" * 64
STILL = {"type": "Progressing", "status": "False", "reason": "", "message": ""}


def _history(*entries: tuple[str, str], version: str = "5.0.2", conditions: Any = (STILL,), mode: str = "") -> Any:
    shown = [{"version": number, "image": image, "state": "Completed"} for number, image in entries]
    status = {"desired": {"version": version, "image": HERE}, "history": shown, "conditions": [*conditions]}
    spec = {"desiredUpdate": {"version": "5.1.0", "mode": mode}} if mode else {}
    return facts.read({"spec": spec, "status": status})


UPDATE = {"architecture": "", "version": "5.0.1", "image": BEFORE, "force": False}


@pytest.mark.parametrize(
    ("found", "update"),
    [
        pytest.param(_history(("5.0.2", HERE), ("5.0.1", BEFORE)), UPDATE, id="the entry before"),
        pytest.param(_history(("5.0.1", BEFORE), ("5.0.2", HERE)), UPDATE, id="the first that is another"),
        pytest.param(
            _history(("5.0.2", HERE), ("5.0.1", BEFORE), ("5.0.0", HERE)), UPDATE, id="not the one before that"
        ),
        pytest.param(
            _history(("5.0.2", HERE), ("5.0.1", HERE)),
            {**UPDATE, "image": HERE},
            id="another version by the same image",
        ),
        pytest.param(
            _history(("5.0.1", BEFORE), mode="Preflight"), {**UPDATE, "mode": None}, id="a preflight's mode is dropped"
        ),
    ],
)
def test_rollbacks(found: facts.Facts, update: dict[str, Any]) -> None:
    """oc's four keys; accepted risks are not sent, so they stay as they are."""
    assert upgrade_request.plan_rollback(found).patch == {"spec": {"desiredUpdate": update}}


ROLLBACKS_REFUSED = {
    "no version": (
        _history(version="5.0"),
        "invalid ClusterVersion status.desired.version: No Major.Minor.Patch elements found",
    ),
    "no history": (
        _history(("5.0.2", HERE)),
        f"no previous version found in ClusterVersion's status.history besides the current 5.0.2 ({HERE}).",
    ),
    "a previous one that is no version": (
        _history(("x.1.2", BEFORE)),
        'previous version "x.1.2" invalid SemVer: Invalid character(s) found in major number "x"',
    ),
    "a later one": (
        _history(("5.0.3", BEFORE)),
        f"previous version 5.0.3 ({BEFORE}) is greater than or equal to current version 5.0.2 ({HERE}).  Use "
        "'oc adm upgrade ...' to update, and not this rollback command.",
    ),
    "the same by another image": (
        _history(("5.0.2", BEFORE)),
        f"previous version 5.0.2 ({BEFORE}) is greater than or equal to current version 5.0.2 ({HERE}).  Use "
        "'oc adm upgrade ...' to update, and not this rollback command.",
    ),
    "another minor": (
        _history(("4.9.9", BEFORE)),
        "4.9.9 is less than the current target 5.0.2 and matches the cluster's previous version, but rollbacks that "
        "change major or minor versions are not recommended.",
    ),
    "another minor of the same major": (
        _history(("5.0.2", BEFORE), version="5.1.2"),
        "5.0.2 is less than the current target 5.1.2 and matches the cluster's previous version, but rollbacks that "
        "change major or minor versions are not recommended.",
    ),
    "another major": (
        _history(("4.0.2", BEFORE)),
        "4.0.2 is less than the current target 5.0.2 and matches the cluster's previous version, but rollbacks that "
        "change major or minor versions are not recommended.",
    ),
    "whether an update is under way is not known": (
        _history(("5.0.1", BEFORE), conditions=({**STILL, "status": "Unknown", "reason": "R", "message": "M"},)),
        "unable to rollback while an update is Progressing=Unknown: R: M.",
    ),
    "nothing known of progress": (
        _history(("5.0.1", BEFORE), conditions=()),
        "no current Progressing info, see `oc describe clusterversion` for more details.\n",
    ),
    "an update under way": (
        _history(("5.0.1", BEFORE), conditions=({**STILL, "status": "True", "reason": "R", "message": "M"},)),
        "unable to rollback while an update is Progressing=True: R: M.",
    ),
}


@pytest.mark.parametrize("name", ROLLBACKS_REFUSED)
def test_rollbacks_refused(name: str) -> None:
    """In oc's order: versions, direction, minor, progress."""
    found, text = ROLLBACKS_REFUSED[name]
    with pytest.raises(InputError) as caught:
        upgrade_request.plan_rollback(found)
    assert caught.value.message == text


@pytest.mark.slow
def test_a_rollback_on_a_server(run: Run, server: Server) -> None:
    """Asked for by version and image; what was accepted stays."""
    since = "2026-01-14T09:30:00Z"
    entries = [
        {
            "version": v,
            "image": i,
            "state": "Completed",
            "startedTime": since,
            "completionTime": since,
            "verified": True,
        }
        for v, i in (("5.0.2", HERE), ("5.0.1", BEFORE))
    ]
    server.set_cluster_version(
        spec={"desiredUpdate": {"acceptRisks": [{"name": "A"}]}},
        status={
            "desired": {"version": "5.0.2", "image": HERE},
            "history": entries,
            "conditions": [{**STILL, "lastTransitionTime": since}],
        },
    )
    ran = run("upgrade", "rollback", "--kubeconfig", server.kubeconfig)
    assert (ran.code, ran.out, ran.err) == (0, "Requested rollback from 5.0.2 to 5.0.1\n", "")
    asked = server.cluster_version()["spec"]["desiredUpdate"]
    assert asked == {"acceptRisks": [{"name": "A"}], **UPDATE}
    server.patch_spec(desiredUpdate=None)
    shown = json.loads(run("upgrade", "rollback", "-o", "json", "--kubeconfig", server.kubeconfig).out)
    assert shown == {
        "action": "rollback",
        "changed": True,
        "patch": {"spec": {"desiredUpdate": UPDATE}},
        "messages": ["Requested rollback from 5.0.2 to 5.0.1"],
        "version": "5.0.1",
        "image": BEFORE,
    }
    ran = run("upgrade", "rollback", "now", "--kubeconfig", server.kubeconfig)
    assert ran.err == "error: unknown command \"now\"\nSee 'runup upgrade rollback -h' for help and examples\n"
