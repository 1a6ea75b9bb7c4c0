"""Boards of every state that a cluster can be in, and the pages of the console made from them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace
from tests.cli.preflight.render import samples
from tests.cli.updatestatus.render.test_html import NOW as STATUS_NOW
from tests.cli.updatestatus.render.test_html import USUAL
from tests.console.decide.test_graph_ways import TWO
from tests.rehearse.drained import budget, cluster, node, pod

from kubekit.api import codec
from kubekit.api.core_v1 import Event, ObjectReference
from kubekit.api.meta_v1 import Condition, ObjectMeta
from kubekit.lang.gotext import to_ns
from runup.api.config_v1 import ConditionalUpdate, ConditionalUpdateRisk, Release
from runup.api.update_policy_v1alpha1 import (
    ApprovalGate,
    Candidate,
    Notification,
    PausedPool,
    PolicyGates,
    PolicyTarget,
    RunDecision,
    RunGate,
    RunHop,
    UpdatePolicy,
    UpdatePolicySpec,
    UpdatePolicyStatus,
    UpdateRun,
    UpdateRunSpec,
    UpdateRunStatus,
)
from runup.cli.console.pages import ConsolePages
from runup.cli.console.render.frame import Site
from runup.console.control.statuses import ClusterStatus
from runup.console.decide.asked_actions import (
    ACCEPT,
    APPROVE,
    HOLD,
    RESUME,
    START,
    ActionResult,
    ClusterState,
    RequestedAction,
    RunState,
    asked_of,
)
from runup.console.decide.board import (
    Board,
    Evaluation,
    Evidence,
    Offered,
    failed_findings,
    unknown_evaluation,
    with_evaluation,
    with_members,
)
from runup.console.decide.outlook import Outlook
from runup.fleet.decide.members import Member
from runup.fleet.decide.trend import Change, ReportStep
from runup.rehearse.decide.drains.drained_cluster import DrainSettings
from runup.rehearse.decide.drains.simulation import simulate
from runup.rehearse.decide.update_forecast import Forecast, ForecastPart, NodeProgress, Range
from runup.rollout.control.policy_reading import PolicyReading
from runup.rollout.decide.calendar import Period
from runup.rollout.decide.explain import ExplainedOpening, Explanation, StartPreview
from runup.rollout.decide.gates.gate import Gate
from runup.updatestatus.control.status_reading import StatusReading

NOW = samples.WHEN + timedelta(hours=1)
# What somebody may call an object: markup, quotes, line ends, marks of writing direction.
EVIL = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>\n</pre></textarea>\u202egpj\u2066"
STEPS = tuple(
    ReportStep(
        cluster="harbour",
        observed=datetime(2026, 11, day, tzinfo=UTC),
        target="5.2.0",
        completed=day != 12,
        applies=3,
        unknown=1,
        first=day == 10,
        came=came,
        went=(),
    )
    for day, came in ((10, ()), (12, ()), (20, (Change("NodeCordoned", ("Node worker-7",), whole=True),)))
)
MEMBERS = (
    Member(name="harbour", context="harbour", labels={"env": "production"}),
    Member(name="lighthouse", dump="dumps/light house"),
    Member(name="orchard", context="orchard"),
    Member(name="apps/island:6443/admin", kubeconfig="k", context="island"),
    Member(name="ruin", problem="no such file"),
)
OLD = replace(samples.CLEAR, observed=NOW - timedelta(days=2))
TO_COME = Evaluation(findings=replace(samples.CLEAR, observed=NOW + timedelta(days=2)))


def _evaluations() -> dict[str, Evaluation]:
    evidence = (
        Evidence("Node worker-0", ("MachineConfigPoolPaused-infra",), "kind: Node\nmetadata:\n  name: worker-0\n"),
        Evidence("Secret apps/db", ("DualStackIncompatible",), why="Secrets are never shown."),
    )
    return {
        "harbour": Evaluation(
            findings=samples.FOUND,
            notes=("a note",),
            offered=Offered(origin="5.0.0", channel="stable-5"),
            evidence=evidence,
            steps=STEPS,
        ),
        "lighthouse": Evaluation(findings=replace(samples.CLEAR, of_dump=True), collect="runup dump collect more"),
        "orchard": Evaluation(findings=OLD),
        "ruin": Evaluation(findings=failed_findings("no such file")),
    }


def board(**more: Evaluation) -> Board:
    """Every state: risks, clear, too old, not evaluated yet, could not be evaluated."""
    made = with_members(Board(), MEMBERS, ("context b leads to the server of a",))
    for name, evaluated in {**_evaluations(), **more}.items():
        made = with_evaluation(made, name, evaluated=evaluated, size=1000, now=NOW)
    return made


def hostile() -> tuple[Board, str]:
    """A board on which somebody else wrote every text, and the name of its cluster."""
    name = f"c{EVIL}"
    risk = samples.risk(
        f"R{EVIL}", EVIL, fix=EVIL, because=EVIL, url=f"javascript:{EVIL}", resources=(_resource(),), reason=EVIL
    )
    found = replace(samples.FOUND, risks=(risk,), source=EVIL, target=EVIL, image=EVIL)
    evaluated = Evaluation(
        findings=found,
        notes=(EVIL,),
        collect=EVIL,
        offered=Offered(origin=f"5.0.0{EVIL}", channel=EVIL),
        evidence=(Evidence(EVIL, (EVIL,), EVIL), Evidence(EVIL, (EVIL,), why=EVIL)),
        steps=(
            ReportStep(
                cluster=name,
                observed=NOW,
                target=EVIL,
                completed=True,
                applies=1,
                unknown=1,
                first=False,
                came=(Change(EVIL, (EVIL,), whole=True),),
                went=(),
            ),
        ),
        history_notes=(EVIL,),
    )
    made = with_members(
        Board(), (Member(name=name, context=EVIL, kubeconfig=EVIL), Member(name="other", problem=EVIL)), (EVIL,)
    )
    made = with_evaluation(made, name, evaluated=evaluated, size=100, now=NOW)
    return with_evaluation(made, "other", evaluated=Evaluation(findings=failed_findings(EVIL)), size=100, now=NOW), name


def _resource() -> Any:
    return replace(samples.PAUSED.resources[0], name=EVIL, namespace=EVIL, kind=EVIL)


def reading(**changes: Any) -> StatusReading:
    """An update under way, as a cluster tells it."""
    status = {"kind": "UpdateStatus", "metadata": {"name": "cluster"}, "status": codec.to_dict(USUAL)}
    return StatusReading(obj=status, now_ns=to_ns(STATUS_NOW), **changes)


MANY = Evaluation(
    findings=samples.CLEAR,
    steps=tuple(
        ReportStep(cluster="harbour", observed=NOW - timedelta(days=day), target="5.2.0", completed=True)
        for day in range(201)
    ),
    history_notes=("left out: 1.json",),
)
ONE_STEP = Evaluation(
    findings=samples.FOUND,
    offered=Offered(
        origin="5.0.0",
        channel="stable-5.0",
        channels=("stable-5.0", "stable-5.2"),
        available=(Release(version="5.0.1"),),
        conditional=(
            ConditionalUpdate(
                release=Release(version="5.1.0"),
                risks=(
                    ConditionalUpdateRisk(name="SlowBoot", message="Nodes boot slowly.", url="https://e.example/1"),
                ),
            ),
        ),
    ),
)
SEEN = ClusterStatus(reading(), count=1)
UNDATED = replace(reading(), now_ns=0)
SLOW = simulate(
    cluster(
        node("worker-0"),
        node("worker-1"),
        node("worker-2"),
        pods=(
            pod("db-0", "worker-1", owner="StatefulSet/db", labels={"app": "db"}),
            pod("db-1", "worker-2", owner="StatefulSet/db", labels={"app": "db"}),
        ),
        budgets=(budget("db", "db", maxUnavailable=0),),
    ),
    DrainSettings(),
    STATUS_NOW,
)


def _node_event(name: str, reason: str, minutes_ago: int) -> Event:
    return Event(
        metadata=ObjectMeta(name=f"{name}.{reason}"),
        involved_object=ObjectReference(kind="Node", name=name),
        reason=reason,
        last_timestamp=STATUS_NOW - timedelta(minutes=minutes_ago),
    )


OUTLOOK = Outlook(
    now=STATUS_NOW,
    forecast=Forecast(
        total=Range(3000, 6000),
        parts=(
            ForecastPart("control plane", Range(1800, 3600), ("the last 2 updates took 30 min and 1 h",)),
            ForecastPart("worker", Range(1200, None), ("simulated drains",)),
        ),
        unknown=("pool infra is paused: it stays as it is",),
    ),
    slow=SLOW,
    under_way=(
        NodeProgress(
            node="worker-1",
            pool="worker",
            since=STATUS_NOW - timedelta(minutes=10),
            elapsed_s=600,
            expected_s=480,
            late_s=120,
        ),
    ),
    events=(
        *(
            _node_event("worker-0", reason, minutes)
            for reason, minutes in (("Cordon", 40), ("Drain", 39), ("OSUpdateStarted", 30), ("Reboot", 25))
        ),
        _node_event("worker-0", "Uncordon", 20),
        _node_event("worker-1", "Drain", 9),
    ),
    why_no_events="of events the dump has only a part",
    notes=("a note",),
)
FORECAST = ClusterStatus(OUTLOOK, count=1)
PAGES = ConsolePages(max_age=timedelta(hours=24), loaded_graph=TWO, stored=True)


SITE = Site(has_sessions=True, acts=True)
ACTING = ConsolePages(max_age=timedelta(hours=24), site=SITE)
TRUTH = ClusterState(
    cluster="prod-x7k2p",
    server="api.prod.example:6443",
    user="ann",
    release="5.0.0",
    accepted=("DualStackIncompatible",),
    progress="Cluster version is 5.0.0",
    offered=("5.1.0", "5.2.0"),
    risks=("DualStackIncompatible", "NodeCordoned"),
)
DONE = ActionResult(truth=replace(TRUTH, requested="5.2.0"), said=("Requested update to 5.2.0",), done=True)
REFUSED = ActionResult(truth=TRUTH, refused="clusterversions is forbidden", status=403)


def _asked(action: str, target: str = "", **more: str) -> RequestedAction:
    return asked_of(action, MEMBERS[0], {"risk": target, "to": target, **more}, "")


def _run(name: str, **status: Any) -> UpdateRun:
    target = Candidate(version="5.2.0", image=f"example.com/release@sha256:{'2' * 64}")
    gates = PolicyGates(approvals=(ApprovalGate(name="cab"), ApprovalGate(name="owners")))
    return UpdateRun(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}"),
        spec=UpdateRunSpec(target=target, gates=gates, requested_by=status.pop("by", "")),
        status=UpdateRunStatus(**status),
    )


WAITING = _run(
    "5.2.0-ff4b4c",
    from_="5.0.3",
    gates=(
        RunGate(
            name="preflight",
            state="Closed",
            reason="PreflightRisks",
            message="NodeCordoned (warning) applies.",
            evidence={"report": "sha256:77"},
        ),
        RunGate(name="approval cab", state="Closed", reason="ApprovalMissing", message="0 of 1 given."),
        RunGate(name="approval owners", state="Open", reason="Approved", message="Approved by ann.", until=NOW),
        RunGate(name="alerts", state="Unknown", reason="AlertsUnknown", message="no answer"),
    ),
    decisions=(RunDecision(at=NOW, step="Waiting", reason="TurnUsedUp", evidence={"turn": "t1"}),),
)
ENDED_RUN = _run(
    "5.1.0-aa11bb",
    step="Failed",
    started=NOW - timedelta(hours=5),
    hops=(RunHop(version="5.1.0", image="i", started=NOW - timedelta(hours=5), completed=NOW),),
    paused_pools=(PausedPool(name="infra", since=NOW - timedelta(hours=6), resource_version="7", resumed=NOW),),
    decisions=(RunDecision(at=NOW, step="Failed", reason="PoolDegraded", message="pool infra is degraded"),),
)
POLICY = UpdatePolicy(
    metadata=ObjectMeta(name="cluster"),
    spec=UpdatePolicySpec(
        target=PolicyTarget(follow="Minor"),
        calendars=("nights",),
        gates=PolicyGates(approvals=(ApprovalGate(name="cab"),)),
        notify=(Notification(url="https://hooks.example/T0/secret-path"),),
    ),
    status=UpdatePolicyStatus(
        next_opening=NOW + timedelta(hours=2),
        conditions=(Condition(type="Ready", status="True", reason="AsExpected"),),
    ),
)
_WINDOW = Gate(name="forecast", state="Closed", reason="DoesNotFit", message="The update takes up to 400 min.")
POLICY_READING = PolicyReading(
    now=NOW,
    policy=POLICY,
    runs=(WAITING, ENDED_RUN),
    shown=StartPreview(
        version="5.2.0",
        stopped="",
        explanation=Explanation(
            openings=(
                ExplainedOpening(Period(NOW, NOW + timedelta(hours=1)), (_WINDOW,), None),
                ExplainedOpening(Period(NOW + timedelta(days=1), NOW + timedelta(days=2)), (), NOW + timedelta(days=1)),
            ),
            closed_now=(Gate(name="alerts", state="Unknown", reason="AlertsUnknown", message="no answer"),),
            open_now=False,
        ),
    ),
    approvers={"5.2.0-ff4b4c": ("Group cab", "User jane")},
)
STOPPED = replace(
    POLICY_READING,
    shown=StartPreview(
        version="",
        stopped="No release is chosen: the update service does not answer",
        explanation=Explanation(openings=(), closed_now=(), open_now=False),
    ),
    runs=(),
)
EVIL_RUN = _run(
    f"r{EVIL}",
    from_=EVIL,
    by=EVIL,
    gates=(RunGate(name=EVIL, state="Closed", reason=EVIL, message=EVIL, evidence={EVIL: EVIL}),),
    hops=(RunHop(version=EVIL, image=EVIL),),
    decisions=(RunDecision(at=NOW, step="Waiting", reason=EVIL, message=EVIL, evidence={EVIL: EVIL}),),
)
EVIL_POLICY = replace(POLICY_READING, runs=(EVIL_RUN,), approvers={f"r{EVIL}": (EVIL,)})


def policy_status(reading: Any) -> ClusterStatus:
    """A reading of a policy, as the console keeps it."""
    return ClusterStatus(reading, count=1)


RUN_TRUTH = RunState(cluster="harbour", server="api.prod.example:6443", user="ann", run=WAITING)


def pages() -> dict[str, str]:
    """Each page, in each of its states, by what it shows."""
    whole, kept = board(), replace(board(), kept=True)
    return {
        "a fleet": PAGES.fleet(whole, NOW),
        "a fleet, filtered": PAGES.fleet(whole, NOW, {"severity": "critical", "group": "env", "area": "x"}),
        "a fleet of nothing yet": PAGES.fleet(with_members(Board(), MEMBERS), NOW),
        "a preflight with everything": PAGES.cluster(whole, "harbour", NOW),
        "a preflight of a dump": PAGES.cluster(whole, "lighthouse", NOW),
        "a preflight that is too old": PAGES.cluster(whole, "orchard", NOW),
        "a preflight to come": PAGES.cluster(board(harbour=TO_COME), "harbour", NOW),
        "a fleet with a preflight to come": PAGES.fleet(board(orchard=TO_COME), NOW),
        "a kept preflight": PAGES.cluster(kept, "harbour", NOW),
        "a cluster that was not evaluated yet": PAGES.cluster(whole, "apps/island:6443/admin", NOW),
        "a cluster that cannot be judged": PAGES.cluster(whole, "ruin", NOW),
        "a cluster that could be judged before": PAGES.cluster(
            with_evaluation(
                whole, "harbour", evaluated=Evaluation(findings=failed_findings("no route")), size=5, now=NOW
            ),
            "harbour",
            NOW,
        ),
        "an update under way": PAGES.update(whole, "harbour", SEEN, outlook=None, now=NOW),
        "an update with its forecast": PAGES.update(whole, "harbour", SEEN, outlook=FORECAST, now=NOW),
        "an update without a forecast": PAGES.update(
            whole, "harbour", SEEN, outlook=ClusterStatus("no route", count=1), now=NOW
        ),
        "a forecast": PAGES.forecast(whole, "harbour", FORECAST, NOW),
        "a forecast that cannot be computed": PAGES.forecast(whole, "harbour", ClusterStatus("no node", count=1), NOW),
        "a forecast that was not computed yet": PAGES.forecast(whole, "harbour", None, NOW),
        "a forecast of a kept report": PAGES.forecast(kept, "harbour", None, NOW),
        "an update that cannot be read": PAGES.update(
            whole, "harbour", ClusterStatus("no route", count=1), outlook=None, now=NOW
        ),
        "an update that was not read yet": PAGES.update(whole, "harbour", None, outlook=None, now=NOW),
        "an update of a dump": PAGES.update(whole, "lighthouse", SEEN, outlook=None, now=NOW),
        "an update of a dump to come": PAGES.update(whole, "lighthouse", None, outlook=None, now=NOW),
        "an update without a time": PAGES.update(
            whole, "lighthouse", replace(SEEN, value=UNDATED), outlook=None, now=NOW
        ),
        "an update of a kept report": PAGES.update(kept, "harbour", None, outlook=None, now=NOW),
        "a policy": PAGES.policy(whole, "harbour", policy_status(POLICY_READING), NOW),
        "a policy where clusters can be changed": ACTING.policy(whole, "harbour", policy_status(POLICY_READING), NOW),
        "a policy that starts nothing": PAGES.policy(whole, "harbour", policy_status(STOPPED), NOW),
        "a policy whose approvers are not known": PAGES.policy(
            whole,
            "harbour",
            policy_status(replace(POLICY_READING, approvers={"5.2.0-ff4b4c": "clusterroles is forbidden"})),
            NOW,
        ),
        "a cluster without a policy": PAGES.policy(whole, "harbour", policy_status(PolicyReading(now=NOW)), NOW),
        "a policy that cannot be read": PAGES.policy(whole, "harbour", policy_status("no route"), NOW),
        "a policy that was not read yet": PAGES.policy(whole, "harbour", None, NOW),
        "a policy of a dump": PAGES.policy(whole, "lighthouse", None, NOW),
        "a policy of a kept report": PAGES.policy(kept, "harbour", None, NOW),
        "runs to hold": ACTING.action(
            _asked(HOLD),
            ActionResult(truth=replace(RUN_TRUTH, run=None, choices=((WAITING.metadata.name, ""),))),
            "key",
            NOW,
        ),
        "no run to resume": ACTING.action(_asked(RESUME), ActionResult(truth=replace(RUN_TRUTH, run=None)), "key", NOW),
        "a run to be held": ACTING.action(_asked(HOLD, run="5.2.0-ff4b4c"), ActionResult(truth=RUN_TRUTH), "key", NOW),
        "a run that was resumed": ACTING.action(
            _asked(RESUME, run="5.2.0-ff4b4c"), ActionResult(truth=RUN_TRUTH, said=("so",), done=True), "key", NOW
        ),
        "approvals to give": ACTING.action(
            _asked(APPROVE),
            ActionResult(truth=replace(RUN_TRUTH, run=None, choices=((WAITING.metadata.name, "cab"),))),
            "key",
            NOW,
        ),
        "an approval to be confirmed": ACTING.action(
            _asked(APPROVE, run="5.2.0-ff4b4c", gate="cab"), ActionResult(truth=RUN_TRUTH), "key", NOW
        ),
        "a way": PAGES.graph(whole, "harbour", NOW),
        "a way of one update": ConsolePages(max_age=timedelta(hours=24)).graph(board(harbour=ONE_STEP), "harbour", NOW),
        "a way that is not known": PAGES.graph(whole, "ruin", NOW),
        "a history": PAGES.history(whole, "", NOW, weeks=False),
        "a history by week": PAGES.history(whole, "", NOW, weeks=True),
        "a history of a cluster": PAGES.history(whole, "harbour", NOW, weeks=False),
        "a history of nothing yet": PAGES.history(with_members(Board(), MEMBERS), "", NOW, weeks=False),
        "a history of a cluster of nothing yet": PAGES.history(
            with_members(Board(), MEMBERS), "harbour", NOW, weeks=False
        ),
        "a history of no cluster yet": PAGES.history(Board(), "", NOW, weeks=False),
        "a fleet of no cluster yet": PAGES.fleet(Board(), NOW),
        "a history of an empty store": PAGES.history(replace(whole, notes=()), "orchard", NOW, weeks=False),
        "a history that is lost": PAGES.history(
            board(harbour=unknown_evaluation("no route"), ruin=unknown_evaluation("no route")), "", NOW, weeks=False
        ),
        "a history of many reports": PAGES.history(board(harbour=MANY), "harbour", NOW, weeks=False),
        "a history of many days": PAGES.history(board(harbour=MANY), "", NOW, weeks=False),
        "no history": ConsolePages(max_age=timedelta(hours=24)).history(whole, "", NOW, weeks=False),
        "a login": PAGES.login("", "/"),
        "a login that was refused": PAGES.login("the API server does not know this token", "/history"),
        "the end of a login": ACTING.logout("ann", "key"),
        "the end of who came by the address": ACTING.logout("", "key"),
        "a cluster that can be changed": ACTING.cluster(whole, "harbour", NOW),
        "a dump where clusters can be changed": ACTING.cluster(whole, "lighthouse", NOW),
        "a kept report where clusters can be changed": ACTING.cluster(kept, "harbour", NOW),
        "risks to accept": ACTING.action(_asked(ACCEPT), ActionResult(truth=TRUTH), "key", NOW),
        "updates to start": ACTING.action(_asked(START), ActionResult(truth=TRUTH), "key", NOW),
        "no update to start": ACTING.action(_asked(START), ActionResult(truth=replace(TRUTH, offered=())), "key", NOW),
        "a risk to be confirmed": ACTING.action(
            _asked(ACCEPT, "NodeCordoned"), ActionResult(truth=TRUTH, said=("so",)), "key", NOW
        ),
        "an update to be confirmed": ACTING.action(_asked(START, "5.2.0"), ActionResult(truth=TRUTH), "key", NOW),
        "an update that was started": ACTING.action(_asked(START, "5.2.0"), DONE, "key", NOW),
        "an update that was refused": ACTING.action(_asked(START, "5.2.0"), REFUSED, "key", NOW),
        "an update of which nothing is known": ACTING.action(
            _asked(START, "5.2.0"), replace(DONE, truth=None, unread="no route"), "key", NOW
        ),
        "a cluster that does not say": ACTING.action(_asked(START, "5.2.0"), ActionResult(), "key", NOW),
        "a login where clusters can be changed": ACTING.login("", "/"),
        "an error": PAGES.problem(404, "there is no such page or cluster"),
    }
