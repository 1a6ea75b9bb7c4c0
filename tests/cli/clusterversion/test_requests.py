"""`upgrade` with flags, against an API server: what is asked for, what is refused, what stays untouched."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cli.clusterversion.between import Between
from tests.cli.commands import Ran, Run, Server, cluster, eventually
from tests.factories import condition_json

from kubekit.api.core_v1 import ConfigMap
from kubekit.api.scheme import resource_of
from kubekit.error_types import InputError
from kubekit.kube import calls
from kubekit.kube.api_errors import Invalid
from runup.cli.clusterversion import actions
from runup.cli.clusterversion.actions import UpgradeRequest, parse_timeout
from runup.clusterversion.decide.upgrade_request import check_target, notes
from runup.clusterversion.decide.upgrade_target import Flags
from runup.preflight.decide import stored_reports
from runup.preflight.decide.stored_reports import History
from runup.report.report import FORMAT, Report, ReportedCheck

IMAGE = "quay.io/ocp/release@sha256:" + "a" * 64
OFFERED = {"desired": {"version": "5.0.0", "image": "x"}, "availableUpdates": [{"version": "5.1.0", "image": IMAGE}]}
ACCEPTED = [{"name": "RiskA"}]


def _spec(server: Server) -> Any:
    return server.cluster_version()["spec"].get("desiredUpdate")


def _upgrade(run: Run, server: Server, *words: str) -> Ran:
    return run("upgrade", "--kubeconfig", server.kubeconfig, *words)


def test_an_update_is_requested(run: Run, server: Server) -> None:
    """Version and image of the list are asked for, and accepted risks stay accepted."""
    server.set_cluster_version(status=OFFERED, spec={"desiredUpdate": {"acceptRisks": ACCEPTED}})
    ran = _upgrade(run, server, "--to=5.1.0")
    assert (ran.code, ran.out, ran.err) == (0, "Requested update to 5.1.0\n", "")
    expected = {"architecture": "", "version": "5.1.0", "image": IMAGE, "force": False, "acceptRisks": ACCEPTED}
    assert _spec(server) == expected


def test_starting_an_update_drops_the_mode(run: Run, server: Server) -> None:
    """Without that the merge patch would leave the preflight in place."""
    server.set_cluster_version(status=OFFERED, spec={"desiredUpdate": {"version": "5.1.0", "mode": "Preflight"}})
    ran = _upgrade(run, server, "--to=5.1.0")
    assert (ran.code, ran.out) == (0, "Requested update to 5.1.0\n")
    assert _spec(server) == {"architecture": "", "version": "5.1.0", "image": IMAGE, "force": False}


def test_a_preflight_is_requested(run: Run, server: Server) -> None:
    """Also of a version that no list has: the operator decides where it can be found (docs/decisions/0072 D2)."""
    server.set_cluster_version(status=OFFERED, spec={"desiredUpdate": {"acceptRisks": ACCEPTED}})
    ran = _upgrade(run, server, "--mode=preflight", "--to=5.2.0")
    follow = "Follow it: runup upgrade --mode=preflight --to=5.2.0 --wait, or see how far it is: runup upgrade\n"
    assert (ran.code, ran.out, ran.err) == (0, f"Requested preflight of 5.2.0\n{follow}", "")
    expected = {"architecture": "", "version": "5.2.0", "image": "", "force": False}
    assert _spec(server) == {**expected, "mode": "Preflight", "acceptRisks": ACCEPTED}


def test_a_preflight_by_image_is_followed_by_it(run: Run, server: Server) -> None:
    """As it was asked for; for programs the target is the image."""
    server.set_cluster_version(status=OFFERED)
    ran = _upgrade(run, server, "--preflight", f"--to-image={IMAGE}")
    assert ran.out.splitlines()[1] == (
        f"Follow it: runup upgrade --mode=preflight --to-image={IMAGE} --wait, or see how far it is: runup upgrade"
    )
    shown = json.loads(_upgrade(run, server, "--preflight", f"--to-image={IMAGE}", "-o", "json").out)
    assert shown == {"requested": {"mode": "Preflight", "target": IMAGE}}


@pytest.mark.parametrize("words", [("--to=5.1.0",), ("--to-multi-arch",)], ids=["an update", "another architecture"])
def test_a_preflight_that_somebody_asks_for_at_the_same_moment(
    server: Server, capfd: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    """The request joins theirs, so it checks and updates nothing: the output says nothing of a request."""
    server.set_cluster_version(status=OFFERED)

    def other() -> None:
        server.patch_spec(desiredUpdate={"mode": "Preflight", "version": "5.2.0"})

    connection: Any = SimpleNamespace(client=lambda: Between(other, ("PATCH", "clusterversions"), server.client.config))
    flags = Flags(to="5.1.0") if words == ("--to=5.1.0",) else Flags(to_multi_arch=True)
    with pytest.raises(InputError) as refused:
        actions.run(UpgradeRequest(flags=flags), connection)
    assert refused.value.message == (
        "somebody asked for a preflight at the same moment, so no update was requested; run the command again"
    )
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("word", ["--preflight", "--mode=Preflight"])
def test_spellings_of_the_mode(word: str, run: Run, server: Server) -> None:
    """The short flag, and the API's own spelling."""
    server.set_cluster_version(status=OFFERED)
    assert _upgrade(run, server, word, f"--to-image={IMAGE}").code == 0
    assert (_spec(server)["mode"], _spec(server)["image"]) == ("Preflight", IMAGE)


@pytest.mark.slow
def test_a_server_that_does_not_know_the_mode(run: Run, old_server: Server) -> None:
    """It would drop the field and start the update: the command says so and changes nothing."""
    before = old_server.set_cluster_version(status=OFFERED)
    ran = _upgrade(run, old_server, "--mode=preflight", "--to=5.1.0")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: a preflight cannot be run on 5.0.0 with the feature set ")
    for words in ("Nothing was changed.", "ClusterUpdatePreflight", "DevPreviewNoUpgrade"):
        assert words in ran.err
    assert old_server.cluster_version()["metadata"]["generation"] == before["metadata"]["generation"]
    assert _spec(old_server) is None


@pytest.mark.slow
def test_a_server_that_refuses_the_mode(run: Run, closed_server: Server) -> None:
    """Our own definition says why, the command in its words; a patch by hand is refused, and nothing starts.

    Source: docs/decisions/0072 D22.
    """
    before = closed_server.set_cluster_version(status=OFFERED)
    ran = _upgrade(run, closed_server, "--mode=preflight", "--to=5.1.0")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: a preflight cannot be run on 5.0.0 with the feature set ")
    for words in ("refuses spec.desiredUpdate.mode", "Nothing was changed.", "DevPreviewNoUpgrade"):
        assert words in ran.err
    with pytest.raises(Invalid, match="nothing was started: a preflight takes the feature gate"):
        closed_server.patch_spec(desiredUpdate={"mode": "Preflight", "version": "5.1.0"})
    assert closed_server.cluster_version()["metadata"]["generation"] == before["metadata"]["generation"]
    assert _spec(closed_server) is None


def test_a_second_target_takes_the_place_of_the_first(run: Run, server: Server) -> None:
    """Two administrators: the second one is reported whose preflight ends."""
    server.set_cluster_version(status=OFFERED)
    _upgrade(run, server, "--preflight", "--to=5.1.0")
    ran = _upgrade(run, server, "--preflight", "--to=5.2.0")
    assert (ran.code, ran.err) == (0, "warning: this takes the place of the preflight of 5.1.0\n")
    assert _spec(server)["version"] == "5.2.0"


def test_a_target_that_was_asked_for_meanwhile_is_replaced_knowingly(
    server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    """The warning is about what the request replaced, not about what was read before."""
    server.set_cluster_version(status=OFFERED)

    def other() -> None:
        server.patch_spec(desiredUpdate={"mode": "Preflight", "version": "5.1.0"})

    connection: Any = SimpleNamespace(client=lambda: Between(other, ("PATCH", "clusterversions"), server.client.config))
    actions.run(UpgradeRequest(flags=Flags(to="5.2.0"), preflight=True), connection)
    assert capfd.readouterr().err == "warning: this takes the place of the preflight of 5.1.0\n"
    assert _spec(server)["version"] == "5.2.0"


def test_asking_again_changes_nothing(run: Run, server: Server) -> None:
    """The same request twice is one request."""
    server.set_cluster_version(status=OFFERED)
    _upgrade(run, server, "--preflight", "--to=5.1.0")
    before = server.cluster_version()["metadata"]["generation"]
    ran = _upgrade(run, server, "--preflight", "--to=5.1.0")
    assert (ran.code, ran.err) == (0, "")
    assert server.cluster_version()["metadata"]["generation"] == before


def test_a_tag_cannot_be_preflighted(run: Run, server: Server) -> None:
    """With or without force, since what runs must be what was verified."""
    ran = _upgrade(run, server, "--preflight", "--force", "--to-image=quay.io/ocp/release:5.1.0")
    assert ran.code == 1
    assert "error: --to-image must be a by-digest pull spec: a preflight runs exactly the image" in ran.err


def test_clear_preflight(run: Run, server: Server) -> None:
    """Mode, version and image go, accepted risks stay; a second time there is nothing to do."""
    wanted = {"version": "5.1.0", "mode": "Preflight", "acceptRisks": ACCEPTED}
    server.set_cluster_version(status=OFFERED, spec={"desiredUpdate": wanted})
    ran = _upgrade(run, server, "--clear-preflight")
    assert (ran.code, ran.out) == (0, "Ended the preflight of 5.1.0; accepted risks are kept: RiskA\n")
    assert _spec(server) == {"architecture": "", "version": "", "image": "", "force": False, "acceptRisks": ACCEPTED}
    ran = _upgrade(run, server, "--clear-preflight")
    assert (ran.code, ran.out) == (0, "info: No preflight is requested\n")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param(None, 900, id="none: a quarter of an hour"),
        pytest.param("90s", 90, id="seconds"),
        pytest.param("0.5s", 0.5, id="a part of one"),
        pytest.param("15m", 900, id="minutes"),
        pytest.param("2h", 7200, id="hours"),
        pytest.param("1h30m10s", 5410, id="all of them"),
        pytest.param("1h1s", 3601, id="two that are apart"),
    ],
)
def test_how_long_is_waited(text: str | None, seconds: float) -> None:
    """As Go writes durations."""
    assert parse_timeout(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "1d", "s", "1m1h", "-1s", "1.5m"])
def test_durations_that_are_none(text: str) -> None:
    """The error has what was typed."""
    with pytest.raises(InputError) as refused:
        parse_timeout(text)
    assert refused.value.message == f'--timeout must be a duration such as 90s, 15m or 1h30m, not "{text}"'


def test_what_a_preflight_may_be_of() -> None:
    """One release by version, by digest, or of all architectures."""
    for flags in (Flags(to="5.2.0"), Flags(to_image=IMAGE), Flags(to_multi_arch=True)):
        check_target(flags)
    for flags in (Flags(to_latest=True), Flags(to="5.2.0", to_latest=True), Flags(), Flags(to_image="quay.io/o/r:1")):
        with pytest.raises(InputError):
            check_target(flags)


WAITED_FOR = "warning: an update is in progress; what is found now may be different when it is done\n"
FORCED = (
    "warning: --force runs the target's image without verifying its signature, with an account that reads what "
    "the image's checks declare\n"
)
PLACES: dict[str, tuple[dict[str, Any], str, Flags, list[str]]] = {
    "nothing was asked for": ({}, "False", Flags(to="5.2.0"), []),
    "the same": ({"version": "5.2.0", "mode": "Preflight"}, "False", Flags(to="5.2.0"), []),
    "another version": (
        {"version": "5.1.0", "mode": "Preflight"},
        "False",
        Flags(to="5.2.0"),
        ["warning: this takes the place of the preflight of 5.1.0\n"],
    ),
    "the version by an image": (
        {"version": "5.2.0", "image": IMAGE, "mode": "Preflight"},
        "False",
        Flags(to="5.2.0"),
        ["warning: this takes the place of the preflight of 5.2.0\n"],
    ),
    "an installation under way": ({}, "True", Flags(to="5.2.0"), [WAITED_FOR]),
    "whether an update is under way is not known": ({}, "Unknown", Flags(to="5.2.0"), []),
    "a signature is not asked for": ({}, "False", Flags(to="5.2.0", force=True), [FORCED]),
}


@pytest.mark.parametrize("name", PLACES)
def test_what_is_said_before_a_preflight(name: str) -> None:
    """Whose place it takes, what continues, what is waived."""
    asked, progressing, flags, lines = PLACES[name]
    conditions = [condition_json("Progressing", progressing, "R", "m")]
    seen = cluster({"spec": {"desiredUpdate": asked} if asked else {}, "status": {**OFFERED, "conditions": conditions}})
    assert notes(seen, flags) == tuple(("err", line) for line in lines)


def test_clear_preflight_leaves_an_update_alone(run: Run, server: Server) -> None:
    """It ends a check, never an update."""
    server.set_cluster_version(status=OFFERED, spec={"desiredUpdate": {"version": "5.1.0", "image": IMAGE}})
    ran = _upgrade(run, server, "--clear-preflight")
    assert (ran.code, ran.out) == (0, "info: No preflight is requested\n")
    assert _spec(server) == {"version": "5.1.0", "image": IMAGE}


def test_clear(run: Run, server: Server) -> None:
    """oc's texts for an update; a preflight is called one, and nothing is left of it."""
    server.set_cluster_version(status=OFFERED)
    assert _upgrade(run, server, "--clear").out == "info: No update in progress\n"
    server.patch_spec(desiredUpdate={"version": "5.1.0", "mode": "Preflight"})
    assert _upgrade(run, server, "--clear").out == "Ended the preflight of 5.1.0\n"
    assert _spec(server) is None


def test_multi_arch(run: Run, server: Server) -> None:
    """The current version's multi-architecture image, and an error when it is asked for already."""
    server.set_cluster_version(status=OFFERED)
    assert _upgrade(run, server, "--to-multi-arch").out == "Requested update to multi cluster architecture\n"
    assert _spec(server) == {"architecture": "Multi", "version": "5.0.0", "image": "", "force": False}
    ran = _upgrade(run, server, "--to-multi-arch")
    assert ran.err == "error: info: Update to multi cluster architecture has already been requested\n"


MULTI = {"architecture": "Multi", "version": "5.0.0", "image": "", "force": False}


def test_a_preflight_of_the_multi_architecture_image(run: Run, server: Server) -> None:
    """It is one like any other: asked for by version and architecture, cleared like the others."""
    server.set_cluster_version(status=OFFERED, spec={"desiredUpdate": {"acceptRisks": ACCEPTED}})
    ran = _upgrade(run, server, "--mode=preflight", "--to-multi-arch")
    follow = "Follow it: runup upgrade --mode=preflight --to-multi-arch --wait, or see how far it is: runup upgrade\n"
    assert (ran.code, ran.out, ran.err) == (0, f"Requested preflight of 5.0.0 (multi-architecture)\n{follow}", "")
    assert _spec(server) == {**MULTI, "mode": "Preflight", "acceptRisks": ACCEPTED}
    assert _upgrade(run, server, "--mode=preflight", "--to-multi-arch").err == ""
    ran = _upgrade(run, server, "--preflight", "--to-multi-arch", "-o", "json")
    assert json.loads(ran.out) == {"requested": {"mode": "Preflight", "target": "5.0.0", "architecture": "Multi"}}
    _upgrade(run, server, "--clear-preflight")
    assert _spec(server) == {**MULTI, "architecture": "", "version": "", "acceptRisks": ACCEPTED}


def test_one_image_of_a_version_takes_the_place_of_another(run: Run, server: Server) -> None:
    """The same version is not the same target."""
    server.set_cluster_version(status=OFFERED)
    _upgrade(run, server, "--preflight", "--to-multi-arch")
    ran = _upgrade(run, server, "--preflight", "--to=5.0.0")
    assert ran.err == "warning: this takes the place of the preflight of 5.0.0 (multi-architecture)\n"


def test_a_multi_architecture_cluster_needs_no_such_preflight(run: Run, server: Server) -> None:
    """Nothing is asked for."""
    server.set_cluster_version(status={"desired": {"version": "5.0.0", "image": "x", "architecture": "Multi"}})
    ran = _upgrade(run, server, "--preflight", "--to-multi-arch")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "error: the cluster runs the multi-architecture image of 5.0.0 already\n"
    assert _spec(server) is None


def test_an_update_by_image_resets_the_architecture(run: Run, server: Server) -> None:
    """The four keys are always sent: image and architecture together would be refused by the server."""
    server.set_cluster_version(status=OFFERED, spec={"desiredUpdate": {"architecture": "Multi", "version": "5.0.0"}})
    image = "quay.io/ocp/x@sha256:" + "b" * 64
    ran = _upgrade(run, server, f"--to-image={image}", "--allow-explicit-upgrade")
    assert (ran.code, ran.out) == (0, f"Requested update to release image {image}\n")
    assert _spec(server) == {"architecture": "", "version": "", "image": image, "force": False}


def _conditions(running: str, completed: str, failed: str, reason: str, message: str) -> list[dict[str, str]]:
    states = {"PreflightRunning": running, "PreflightCompleted": completed, "PreflightFailed": failed}
    return [condition_json(type_, status, reason, message) for type_, status in states.items()]


@pytest.fixture
def stored_report(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The operator has stored the report of 5.2.0, so the command need not wait for it."""
    monkeypatch.setenv("CVO_NAMESPACE", "default")
    report = Report(
        format=FORMAT,
        preflight_id="preflight-1",
        source_version="5.0.0",
        target_version="5.2.0",
        target_image=IMAGE,
        execution_status="completed",
        checks=(ReportedCheck(name="KubeletSkew", result="Clear"),),
    )
    server.client.send(
        calls.create(resource_of(ConfigMap), stored_reports.config_map(History(reports=(report,)), "default"))
    )
    yield
    server.client.send(calls.delete(resource_of(ConfigMap), stored_reports.NAME, "default"))


class Waiting:
    """`--wait` in a thread of this process, while the test plays the operator."""

    def __init__(self, run: Run, server: Server, *words: str) -> None:
        self.result: Ran | None = None

        def go() -> None:
            self.result = _upgrade(run, server, "--preflight", "--to=5.2.0", "--wait", "--timeout=90s", *words)

        self.thread = threading.Thread(target=go, daemon=True)
        self.thread.start()
        eventually(lambda: (_spec(server) or {}).get("mode"), "the preflight was requested")
        self.generation = server.cluster_version()["metadata"]["generation"]

    def ended(self) -> Ran:
        self.thread.join(120)
        assert self.result is not None, "still waiting"
        return self.result


def _risk(name: str, status: str) -> dict[str, Any]:
    return {
        "name": name,
        "message": f"Preflight=5.2.0: About {name}.",
        "url": f"https://example.com/{name}",
        "matchingRules": [{"type": "Always"}],
        "conditions": [condition_json("Applies", status, "PreflightValidation", "m")],
    }


def _entry(*risks: dict[str, Any]) -> dict[str, Any]:
    return {
        "release": {"version": "5.2.0", "image": IMAGE},
        "risks": list(risks),
        "riskNames": sorted(risk["name"] for risk in risks),
        "conditions": [condition_json("Recommended", "False", "R", "m")],
    }


OUTCOMES: dict[str, tuple[list[dict[str, Any]], int, str]] = {
    "nothing found": ([], 0, "Verdict: nothing blocks an update to 5.2.0."),
    "one applies": (
        [_entry(_risk("Bad", "True"))],
        2,
        "Verdict: 1 risk applies. Fix them, or accept them by name: runup upgrade accept Bad",
    ),
    "one could not be shown": (
        [_entry(_risk("Dim", "Unknown"), _risk("Off", "False"))],
        3,
        "Verdict: 1 unknown. Fix them, or accept them by name: runup upgrade accept Dim",
    ),
    "both": (
        [_entry(_risk("Bad", "True"), _risk("Dim", "Unknown"))],
        2,
        "Verdict: 1 risk applies, 1 unknown. Fix them, or accept them by name: runup upgrade accept Bad,Dim",
    ),
}


@pytest.mark.usefixtures("stored_report")
@pytest.mark.parametrize("name", OUTCOMES)
def test_waiting_for_the_result(name: str, run: Run, server: Server) -> None:
    """Progress as plain lines in a pipe, then a table and a verdict; the exit code says what it came to."""
    updates, code, verdict = OUTCOMES[name]
    server.set_cluster_version(status=OFFERED)
    waiting = Waiting(run, server)
    going = _conditions("True", "False", failed="False", reason="ChecksRunning", message="4 of 7 checks done")
    server.patch_status(observedGeneration=waiting.generation, conditions=going)
    done = _conditions("True", "True", failed="False", reason="RisksFound", message="7 checks done")
    server.patch_status(conditions=done, conditionalUpdates=updates)
    ran = waiting.ended()
    assert (ran.code, ran.err) == (code, "")
    assert ran.out.splitlines()[0] == "waiting for the cluster-version operator to take up the request"
    assert ran.out.splitlines()[-1] == verdict


def test_an_earlier_result_does_not_count(run: Run, server: Server) -> None:
    """Conditions that the operator wrote before it saw this request say nothing about it."""
    done = _conditions("True", "True", failed="False", reason="NoRisksFound", message="of another target")
    server.set_cluster_version(status={**OFFERED, "conditions": done})
    waiting = Waiting(run, server)
    failed = _conditions(
        "False", "False", failed="True", reason="TargetUnsupported", message="5.2.0 has no preflight command"
    )
    server.patch_status(observedGeneration=waiting.generation, conditions=failed)
    ran = waiting.ended()
    assert ran.code == 1
    assert ran.out.splitlines()[-1].startswith(
        "Verdict: the preflight could not run. TargetUnsupported: 5.2.0 has no preflight command. "
    )


REPLACED: dict[str, tuple[Any, str]] = {
    "by another preflight": ({"version": "5.1.0"}, "somebody now asks for a preflight of 5.1.0"),
    "by an update": ({"version": "5.1.0", "mode": None}, "somebody now asks for an update to 5.1.0"),
    "by nothing": (None, "somebody cleared the request"),
}


@pytest.mark.parametrize("name", REPLACED)
def test_replaced_while_waiting(name: str, run: Run, server: Server) -> None:
    """Somebody else's request ends the waiting, with exit code 1 and what is asked for now."""
    request, instead = REPLACED[name]
    server.set_cluster_version(status=OFFERED)
    waiting = Waiting(run, server)
    server.patch_spec(desiredUpdate=request)
    ran = waiting.ended()
    assert (ran.code, ran.err) == (1, f"error: the preflight of 5.2.0 was replaced: {instead}\n")


@pytest.mark.usefixtures("stored_report")
def test_accepting_while_waiting_is_no_replacement(run: Run, server: Server) -> None:
    """The target stays the same."""
    server.set_cluster_version(status=OFFERED)
    waiting = Waiting(run, server)
    server.patch_spec(desiredUpdate={"acceptRisks": [{"name": "Bad"}]})
    done = _conditions("True", "True", failed="False", reason="RisksFound", message="7 checks done")
    updates = [_entry(_risk("Bad", "True"))]
    server.patch_status(observedGeneration=waiting.generation + 1, conditions=done, conditionalUpdates=updates)
    ran = waiting.ended()
    assert (ran.code, ran.out.splitlines()[-1]) == (
        0,
        "Verdict: nothing blocks an update to 5.2.0 (1 accepted).",
    )


@pytest.mark.usefixtures("stored_report")
def test_the_machine_form(run: Run, server: Server) -> None:
    """With -o only the result is on stdout; progress goes to stderr."""
    import json

    server.set_cluster_version(status=OFFERED)
    waiting = Waiting(run, server, "-o", "json")
    done = _conditions("True", "True", failed="False", reason="RisksFound", message="7 checks done")
    updates = [_entry(_risk("Bad", "True"))]
    server.patch_status(observedGeneration=waiting.generation, conditions=done, conditionalUpdates=updates)
    ran = waiting.ended()
    found = json.loads(ran.out)
    assert (found["result"], found["exitCode"], ran.code) == ("RisksApply", 2, 2)
    assert [(risk["name"], risk["applies"], risk["message"]) for risk in found["risks"]] == [
        ("Bad", "True", "About Bad.")
    ]
    assert "7 checks done" in ran.err


@pytest.mark.usefixtures("stored_report")
@pytest.mark.parametrize(
    ("form", "begins"), [("html", "<!DOCTYPE html>"), ("yaml", "result: "), ("wide", "waiting for the")]
)
def test_other_forms_of_the_result(form: str, begins: str, run: Run, server: Server) -> None:
    """A page and data alone, with progress elsewhere; with more columns after progress."""
    server.set_cluster_version(status=OFFERED)
    waiting = Waiting(run, server, "-o", form)
    done = _conditions("True", "True", failed="False", reason="RisksFound", message="7 checks done")
    updates = [_entry(_risk("Bad", "True"))]
    server.patch_status(observedGeneration=waiting.generation, conditions=done, conditionalUpdates=updates)
    ran = waiting.ended()
    assert (ran.code, ran.out.startswith(begins) or f"\n{begins}" in ran.out) == (2, True)
    assert ("7 checks done" in ran.err) is (form != "wide")
    assert ("REASON" in ran.out) is (form == "wide")


def test_time_is_up(run: Run, server: Server) -> None:
    """The preflight continues, and how to see and end it is reported."""
    server.set_cluster_version(status=OFFERED)
    ran = _upgrade(run, server, "--preflight", "--to=5.2.0", "--wait", "--timeout=0s")
    assert (ran.code, ran.out.splitlines()) == (
        1,
        ["waiting for the cluster-version operator to take up the request"],
    )
    assert ran.err == (
        "error: timed out waiting for the preflight, which continues: waiting for the cluster-version operator to take "
        "up the request. See it with `runup upgrade`, end it with `runup upgrade --clear-preflight`.\n"
    )
    assert _spec(server)["mode"] == "Preflight"


def test_the_section_after_oc(run: Run, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """`upgrade` prints a preflight's risks after all of oc's output; an expired acceptance does not count."""
    monkeypatch.setenv("CVO_NAMESPACE", "default")
    done = _conditions("True", "True", failed="False", reason="RisksFound", message="7 checks done")
    server.set_cluster_version(
        spec={"desiredUpdate": {"version": "5.2.0", "mode": "Preflight", "acceptRisks": [{"name": "Dim"}]}},
        status={
            **OFFERED,
            "conditions": done,
            "conditionalUpdates": [_entry(_risk("Bad", "True"), _risk("Dim", "Unknown"))],
        },
    )
    ran = _upgrade(run, server)
    assert ran.out.partition("\nPreflight of ")[2] == (
        "5.2.0 from 5.0.0: completed; 1 risk applies, 1 accepted\n"
        "\n"
        "1. Bad: About Bad.\n"
        "Accepted: Dim\n"
        "\n"
        "Every check: runup preflight show -v. Details of one risk: runup preflight explain NAME. "
        "End the preflight: runup upgrade --clear-preflight\n"
    )
    ended = {"Dim": json.dumps({"name": "Dim", "until": "2020-01-01T00:00:00Z"})}
    metadata = {"name": "accepted-risks", "namespace": "default"}
    server.client.send(calls.create(resource_of(ConfigMap), {"metadata": metadata, "data": ended}))
    try:
        shown = _upgrade(run, server).out
    finally:
        server.client.send(calls.delete(resource_of(ConfigMap), "accepted-risks", "default"))
    assert "completed; 1 risk applies, 1 unknown\n" in shown
    assert "Accepted: " not in shown


def test_without_a_preflight_there_is_no_section(run: Run, server: Server) -> None:
    """Then the output is oc's and nothing else."""
    server.set_cluster_version(status=OFFERED)
    assert "reflight" not in _upgrade(run, server).out


@pytest.mark.parametrize(
    ("words", "warning"),
    [
        pytest.param(
            ("--to=5.1.0", "--force"),
            "warning: --force overrides cluster verification of your supplied release image",
            id="an update",
        ),
        pytest.param(
            ("--to-multi-arch", "--force"),
            "warning: --force overrides cluster verification of your supplied release image",
            id="another architecture",
        ),
        pytest.param(
            ("--mode=preflight", f"--to-image={IMAGE}", "--force"),
            "warning: --force runs the target's image without verifying its signature",
            id="a preflight",
        ),
    ],
)
def test_force_is_never_silent(run: Run, server: Server, words: tuple[str, ...], warning: str) -> None:
    """The flag's effect is reported where it is used, and nowhere else."""
    server.set_cluster_version(status=OFFERED)
    ran = _upgrade(run, server, *words)
    assert ran.code == 0, ran.err
    assert ran.err.count(warning) == 1
    assert _spec(server)["force"] is True
    server.set_cluster_version(status=OFFERED)
    ran = _upgrade(run, server, *(word for word in words if word != "--force"))
    assert (ran.code, ran.err) == (0, "")
    assert _spec(server)["force"] is False


@pytest.mark.parametrize("words", [("-o", "html"), ("-o", "html", "--include-not-recommended")], ids=" ".join)
def test_a_page_needs_a_preflight(run: Run, server: Server, words: tuple[str, ...]) -> None:
    """Which is how to get one; where one is asked for there is a page of it, whatever it came to."""
    server.set_cluster_version(status=OFFERED)
    ran = _upgrade(run, server, *words)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: no preflight is asked for, so there is nothing to make a page of. Ask for one: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(("--to=5.0.0",), "info: Cluster is already at version 5.0.0\n", id="by its version"),
        pytest.param((f"--to-image={IMAGE}",), f"info: Cluster is already at {IMAGE}\n", id="by its image"),
    ],
)
def test_what_the_cluster_has_is_not_asked_for(run: Run, server: Server, words: tuple[str, ...], said: str) -> None:
    """No error, and no request."""
    server.set_cluster_version(status={**OFFERED, "desired": {"version": "5.0.0", "image": IMAGE}})
    ran = _upgrade(run, server, *words)
    assert (ran.code, ran.out) == (0, said)
    assert _spec(server) is None
