"""No report can freeze the status: whatever comes in, what is written fits the schema that our releases carry."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace as with_fields
from tests.clusterversion.decide import hostile
from tests.clusterversion.decide.world import World, image, risk
from tests.documents import document

from kubekit.api import codec
from kubekit.api.core_v1 import ConfigMap
from kubekit.api.meta_v1 import Condition
from kubekit.kube.clock import SystemClock
from kubekit.lang.text import is_hazardous
from kubesandbox.apiserver.schema.crd import compile_crd
from kubesandbox.apiserver.schema.object_schema import Schema
from runup.advice.decide import service
from runup.advice.decide.candidates import MAX_RISKS_AN_UPDATE
from runup.api.config_v1 import ClusterVersionStatus, UpdateHistory
from runup.clusterversion.decide import size_limits
from runup.clusterversion.decide import status as statuses
from runup.clusterversion.decide.work import RetrieveUpdates
from runup.preflight.control.report_reader import parse
from runup.preflight.decide import stored_reports as histories
from runup.preflight.decide.outcome import BadReportSeen
from runup.process.plan import Apply, PatchStatus
from runup.report import report as reports
from runup.sandbox import crds

# Each case comes of its own seed, which a failure shows: there is nothing in a seed that could be made smaller.
CASES = int(os.environ.get("RUNUP_FIT_CASES", "300"))
SEED = os.environ.get("RUNUP_FIT_SEED", "1")
A_TEST = 60
# One request to etcd has at most 1.5 MiB; the server adds what it keeps of who owns which field.
MAX_OBJECT = 1_200_000


@cache
def definition() -> dict[str, Any]:
    """ClusterVersion's definition, as the releases carry it whose gates are open."""
    (path,) = (path for path in crds.files() if path.name.endswith("clusterversions-CustomNoUpgrade.crd.yaml"))
    return document(path)


@cache
def schema() -> Schema:
    """The same, compiled by the sandbox's own engine."""
    faults, versions = compile_crd(definition())
    assert not faults
    return versions["v1"]


class Stored:
    """ClusterVersion as an API server has it: every patch is validated as a write would be."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.obj: dict[str, Any] = {
            "apiVersion": "config.openshift.io/v1",
            "kind": "ClusterVersion",
            "metadata": {"name": "version"},
            "spec": {"clusterID": "6f1c1a4e-1b5a-4f0e-9d5e-0f2b9f6f7a11"},
            "status": statuses.patch(ClusterVersionStatus(), world.version.status, fresh=True)[0],
        }
        self.writes = 0

    def step(self) -> bool:
        """One pass, checked; whether anything was planned."""
        plan = self.world.step()
        for action in plan.actions:
            if isinstance(action, PatchStatus):
                self._patch(action)
            elif isinstance(action, Apply) and action.resource.kind == "ConfigMap":
                check_config_map(action.object)
        return bool(plan)

    def settle(self) -> None:
        """Passes until nothing is planned."""
        for _ in range(12):
            if not self.step():
                return
        raise AssertionError("it never settles")

    def _patch(self, action: PatchStatus) -> None:
        status = {**self.obj["status"], **action.fields}
        for name in action.gone:
            status.pop(name, None)
        after = {**self.obj, "status": json.loads(codec.encode(status))}
        kept, unknown = schema().prune(after)
        assert not unknown
        assert [str(error)[:300] for error in schema().validate(schema().drop_nulls(kept), self.obj)] == []
        text = json.dumps(after, ensure_ascii=False)
        assert not is_hazardous(text)
        assert len(text.encode()) + 5 * sum(map(text.count, "<>&")) <= MAX_OBJECT
        self.obj = after
        self.writes += 1


def check_config_map(obj: dict[str, Any]) -> None:
    """What a real API server refuses a ConfigMap for, and what people could not print."""
    assert sum(len(value.encode()) for value in obj["data"].values()) < 1 << 20
    assert all(key.endswith(".json") and len(key) < 253 for key in obj["data"])
    assert sum(len(v.encode()) for v in obj["metadata"].get("annotations", {}).values()) < 256 << 10
    assert not is_hazardous(json.dumps(obj, ensure_ascii=False))


def reported(world: World, data: bytes) -> bool:
    """The target writes `data`; whether the reader takes it."""
    seen = parse(data, world.attempt_id, SystemClock())
    world.change(report=seen)
    return not isinstance(seen.content, BadReportSeen)


def limits(node: Any, path: str = "") -> dict[str, Any]:
    """Every limit in a part of the schema, by path."""
    found = {}
    for key, value in node.items() if isinstance(node, dict) else ():
        if key in ("maxItems", "maxLength", "minLength", "pattern") and not isinstance(value, dict):
            found[f"{path}.{key}"] = value
        elif key != "description":
            found |= limits(value, path if key in ("properties", "items") else f"{path}.{key}")
    return found


def test_the_limits_are_the_schemas() -> None:
    """The constants by which the status is cut are those of the definition that our releases carry."""
    (version,) = definition()["spec"]["versions"]
    found = limits(version["schema"]["openAPIV3Schema"]["properties"]["status"])
    assert {path: value for path, value in found.items() if ".max" in path and "type" not in path} == {
        ".conditionalUpdates.maxItems": size_limits.MAX_UPDATES,
        ".conditionalUpdates.risks.maxItems": MAX_RISKS_AN_UPDATE,
        ".conditionalUpdates.risks.conditions.maxItems": 8,
        ".conditionalUpdates.risks.conditions.reason.maxLength": size_limits.MAX_REASON,
        ".conditionalUpdates.risks.conditions.message.maxLength": size_limits.MAX_MESSAGE,
        ".conditionalUpdates.riskNames.maxItems": size_limits.MAX_RISKS,
        ".conditionalUpdates.riskNames.maxLength": reports.MAX_NAME,
        ".conditionalUpdates.conditions.reason.maxLength": size_limits.MAX_REASON,
        ".conditionalUpdates.conditions.message.maxLength": size_limits.MAX_MESSAGE,
        ".conditionalUpdateRisks.maxItems": size_limits.MAX_RISKS,
        ".conditionalUpdateRisks.conditions.maxItems": 8,
        ".conditionalUpdateRisks.conditions.reason.maxLength": size_limits.MAX_REASON,
        ".conditionalUpdateRisks.conditions.message.maxLength": size_limits.MAX_MESSAGE,
    }
    assert {value for path, value in found.items() if path.endswith("reason.pattern")} == {
        f"^{size_limits.REASON.pattern}$"
    }


def _honest(world: World) -> bytes:
    found = [risk(f"Operator{index}NotReady", message="m" * 150) for index in range(180)]
    world.report(*found)
    assert world.observed.report is not None
    return reports.encode(world.observed.report.content)


def _document(world: World, **changes: Any) -> bytes:
    base = {
        "format": reports.FORMAT,
        "preflightID": world.attempt_id,
        "sourceVersion": "5.0.0",
        "targetVersion": "5.2.0",
        "targetImage": image("5.2.0"),
        "executionStatus": "completed",
    }
    return json.dumps(base | changes).encode()


FREEZING = [
    ("180 risks of 150 characters", _honest, "True", "RisksFound"),
    (
        "one long message",
        lambda world: _document(world, risks=[{"name": "Long", "message": "m" * 1_000_000}]),
        "True",
        "RisksFound",
    ),
    ("a format of a megabyte", lambda world: _document(world, format="f" * 1_000_000), "False", "UnknownFormat"),
    (
        "a URL that the API refuses",
        lambda world: _document(world, risks=[{"name": "X", "message": "x", "url": "https://example.com/%zz"}]),
        "False",
        "InvalidRiskURL",
    ),
    (
        "a failure that is a megabyte long",
        lambda world: _document(world, executionStatus="failed", message="f" * 1_000_000),
        "False",
        "TargetFailed",
    ),
]


@pytest.mark.parametrize(("write", "status", "reason"), [row[1:] for row in FREEZING], ids=[row[0] for row in FREEZING])
def test_no_report_freezes_the_status(write: Any, status: str, reason: str) -> None:
    """The overflow is reported, fits, and status writes continue after the deadline, the clearing and a restart."""
    stored = Stored(World.new().ask_preflight())
    stored.settle()
    reported(stored.world, write(stored.world))
    stored.settle()
    assert stored.world.condition("PreflightCompleted") == (status, reason)
    stored.world.pass_time(700)
    stored.settle()
    stored.world.ask(None)
    stored.settle()
    before = stored.writes
    restarted = Stored(stored.world)
    restarted.world.ask_preflight("5.3.0")
    restarted.settle()
    assert (before > 1, restarted.writes >= 1) == (True, True)


def test_joined_texts_say_how_many_are_missing() -> None:
    """180 risks at 150 characters are more than a condition's message holds."""
    stored = Stored(World.new().ask_preflight())
    stored.settle()
    reported(stored.world, _honest(stored.world))
    stored.settle()
    (update,) = (u for u in stored.world.version.status.conditional_updates if u.release.version == "5.2.0")
    (verdict,) = update.conditions
    words = verdict.message.split("\n\n")
    whole, more = words[:-1], words[-1]
    assert all(part.startswith("Preflight=5.2.0: ") for part in whole if "mmm" in part)
    assert more == f"... and {len(update.risks) - len(whole)} more"
    assert 30_000 < len(verdict.message) <= size_limits.MAX_MESSAGE
    assert len(update.risks) >= 180


def test_what_an_update_cannot_carry_is_counted_once() -> None:
    """199 risks and one that represents 101, next to four others: 199 of 304 stay, 105 are counted, not 5 nor 101."""
    world = World.new(progressing="True").ask_preflight()
    stored = Stored(world)
    stored.settle()
    found = [risk(f"ClusterOperatorDegraded-{index:03}") for index in range(199)]
    world.report(*found, risk(reports.OMITTED), risks_omitted=101)
    stored.settle()
    (update,) = (u for u in world.version.status.conditional_updates if u.release.version == "5.2.0")
    omitted = next(entry for entry in update.risks if entry.name == reports.OMITTED)
    assert len(update.risks) == 200
    assert "UpdatePathNotOffered" in update.risk_names
    assert "105 more risks were found than an update can carry: ClusterOperatorDegraded-195, " in omitted.message


def test_stored_reports_are_checked_as_new_ones() -> None:
    """What somebody put into the ConfigMap by hand counts only where a target could have written it."""
    world = World.new().ask_preflight().settle()
    good = reports.Report(
        format=reports.FORMAT,
        preflight_id="preflight-1-abc",
        source_version="5.0.0",
        target_version="5.1.0",
        target_image=image("5.1.0"),
        execution_status="completed",
        risks=(risk("Stays"),),
    )
    bad = [
        with_fields(good, preflight_id="under another key"),
        with_fields(good, preflight_id="bad-url", risks=(risk("BadUrl", url="http://["),)),
        with_fields(good, preflight_id="bad-version", target_version="v5"),
        with_fields(good, preflight_id="bad-image", target_image="a\x1bb"),
    ]
    data = {f"{entry.preflight_id}.json".replace(" ", ""): reports.encode(entry).decode() for entry in (good, *bad)}
    assert world.observed.history is not None
    world.change(history=with_fields(world.observed.history, data=data))
    stored = Stored(world)
    stored.settle()
    names = {entry.name for entry in world.version.status.conditional_update_risks}
    assert ("Stays" in names, "BadUrl" in names) == (True, False)
    assert not any(is_hazardous(u.release.image) for u in world.version.status.conditional_updates)


def test_history_and_conditions_of_years_fit() -> None:
    """A hundred updates with long lists of what was taken, and conditions of others with control characters."""
    world = World.new()
    status = world.version.status
    entry = status.history[0]
    past = tuple(with_fields(entry, version=f"4.{i}.0", accepted_risks="<r>" * 20_000) for i in range(100))
    theirs = Condition(type="Failing", status="True", reason="X", message="\x9bboom", last_transition_time=world.now)
    words = with_fields(status, history=past, conditions=(theirs, theirs, *status.conditions))
    world.change(cluster_version=with_fields(world.version, status=words))
    fitted = size_limits.status(words)
    assert len(codec.encode(fitted)) < 300_000
    kept = [len(item.accepted_risks) for item in fitted.history]
    assert (kept[0] > 1000, max(kept[-50:]) <= size_limits.TEXT_LIMITS[-1]) == (True, True)
    assert size_limits.status(fitted) == fitted
    assert [c.message for c in fitted.conditions if c.type == "Failing"] == ["\\x9bboom"]
    assert all(isinstance(item, UpdateHistory) and "more characters" in item.accepted_risks for item in fitted.history)


def _settled(random: Random) -> Stored:
    gates = random.choice((("ClusterUpdatePreflight", "ClusterUpdateAcceptRisks"), ("ClusterUpdatePreflight",)))
    world = World.new(gates=gates, progressing=random.choice(("True", "False")))
    world.graph = hostile.graph(random)
    world.observed = replace(world.observed, operators=hostile.operators(random))
    return Stored(world)


def _in_parts(cases: int) -> pytest.MarkDecorator:
    """As tests of a few seconds each: many of them show how far they are; `make test` runs the first."""
    starts = range(0, cases, A_TEST)
    parts = [
        pytest.param(
            range(start, min(start + A_TEST, cases)),
            id=f"from case {start} on",
            marks=[pytest.mark.slow] if start else [],
        )
        for start in starts
    ]
    return pytest.mark.parametrize("numbers", parts)


@_in_parts(CASES)
def test_the_api_server_takes_whatever_comes_of_it(numbers: range) -> None:
    """Any report that the reader accepts, any answer of the update service, any operators: what is written fits."""
    for number in numbers:
        _is_taken(f"{SEED}/{number}")


def _is_taken(seed: str) -> None:
    random = Random(seed)
    stored = _settled(random)
    world = stored.world
    question = service.query_for(
        world.version.spec, world.version.status.desired, configured_url="", architecture="amd64"
    )
    world.do_work(RetrieveUpdates(question))
    data = hostile.report(random, "preflight-1-0123456789")
    config_map = ConfigMap(data={"preflight-1-0123456789.json": data.decode()})
    for taken in histories.read(config_map).reports:
        check_config_map(histories.config_map(histories.with_report(histories.History(), taken), "somewhere"))
    world.change(history=config_map)
    stored.step()
    assert stored.writes == 1
    names = {entry.name for entry in world.version.status.conditional_update_risks}
    shown = {name for update in world.version.status.conditional_updates for name in update.risk_names}
    assert names == shown


@pytest.mark.slow
@_in_parts(max(CASES // 20, 1))
def test_it_does_so_from_the_request_to_its_end(numbers: range) -> None:
    """The same through a whole preflight: asked for, reported, accepted, late, cleared; and it comes to rest."""
    for number in numbers:
        _comes_to_rest(f"{SEED}/{number}")


def _comes_to_rest(seed: str) -> None:
    random = Random(seed)
    stored = _settled(random)
    world = stored.world.ask_preflight()
    stored.settle()
    assert world.observed.deployment is not None
    reported(world, hostile.report(random, world.attempt_id))
    stored.settle()
    if random.random() < 0.3:
        world.accept(*(entry.name for entry in world.version.status.conditional_update_risks))
        stored.settle()
    if random.random() < 0.3:
        world.pass_time(700)
        stored.settle()
    world.ask(None)
    stored.settle()
    assert not world.step()
