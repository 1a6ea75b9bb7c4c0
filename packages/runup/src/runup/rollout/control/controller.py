"""The controller of update policies: observes the cluster, decides each run's next step, and carries it out.

A pass rereads everything, and its writes are conditional: a run's status on the run's resourceVersion, and
ClusterVersion on the resourceVersion whose risks were evaluated. So a pass that was killed, an answer that was lost, or
another leader cannot start an update twice. Writes go through a client that refuses them without the lease.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import structlog
from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import NamespacedName, Object
from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.api_errors import AlreadyExists, BadRequest, Conflict, Forbidden, Invalid, NotFound
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.kube.request import Call
from runup.advice.decide.graph import Graph
from runup.api.config_v1 import ClusterVersion, Update
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.api.update_policy_v1alpha1 import (
    FINALIZER,
    PAUSED_BY,
    Candidate,
    ClusterReference,
    ObjectField,
    RunDecision,
    UpdatePolicy,
    UpdatePolicyStatus,
    UpdateRun,
    UpdateRunStatus,
)
from runup.api.update_v1alpha1 import UpdateStatus
from runup.process.clusterversion_client import CLUSTER_VERSION, NAME
from runup.process.leader_election import repeat_passes
from runup.process.plan import Event, PatchStatus, Plan
from runup.process.plan_executor import Executor
from runup.process.threads import in_thread
from runup.rollout.control.metrics import Metrics
from runup.rollout.control.notifier import Notifier
from runup.rollout.control.observe import ClusterInputs, effective_run, observe_run, seen_cluster, updater_of
from runup.rollout.control.turn_writer import TurnWriter
from runup.rollout.decide import policy as policies
from runup.rollout.decide.assemble import read_calendars
from runup.rollout.decide.candidate import Choice, choice_of, choose, offered_releases
from runup.rollout.decide.gates.all_gates import evaluate, evaluate_resumption
from runup.rollout.decide.hops import NOT_RESOLVED, Path, current_target, find_path, needs_path, offered_path
from runup.rollout.decide.metric_samples import is_warning
from runup.rollout.decide.notifications import Notice, notices_of
from runup.rollout.decide.pools import next_pools, risk_of
from runup.rollout.decide.run_steps import FINISHED, Act, Situation, decide
from runup.rollout.decide.status_insight import informer_operations, why_nothing_starts
from runup.rollout.decide.turns import newly_used_up
from runup.rollout.decide.updaters import ANNOTATION, FIELD_MANAGER, PUT_BACK, UpdaterObject, apply_body, to_put_back

log = structlog.get_logger("rollout")
POLICIES, RUNS, POOLS = resource_of(UpdatePolicy), resource_of(UpdateRun), resource_of(MachineConfigPool)
UPDATE_STATUS = resource_of(UpdateStatus)
# Changes ClusterVersion or a pool when a run ends whose start, or whose pause, may be on its way.
ENDED = "update.runup.dev/ended-run"
# Seconds between passes: while a run is not finished, and otherwise.
ACTIVE_S, IDLE_S = 30.0, 300.0
# At most twenty attempts a minute to write what was decided.
_RETRY_S = 3.0
# Server and monotonic time may differ by this much between two passes before time gates close, and for how long.
_SKEW_S, _SKEW_LASTS = 60.0, timedelta(minutes=10)
_REFUSED_LASTS = timedelta(minutes=5)


class PolicyController:
    """Carries out the policy of one cluster; `read` observes it in a thread, `leader` names this process.

    `graph` returns the graph of the update service for paths of several hops, or the reason for its absence.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        read: Callable[[], ClusterInputs],
        *,
        leader: str,
        graph: Callable[[ClusterVersion, Sequence[Node]], Awaitable[Graph | str]] | None = None,
        metrics: Metrics | None = None,
        notifier: Notifier | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._read = read
        self._leader = leader
        self._graph = graph
        self._metrics = metrics or Metrics()
        self._notifier = notifier
        self._executor = Executor(client, clock, component=FIELD_MANAGER)
        self._turns = TurnWriter(client, self._executor)
        self._last_times: tuple[datetime, float] | None = None
        self._skew_until: datetime | None = None
        # What the server refused to write, and until when that closes the gate.
        self._refused: dict[ObjectField | ClusterReference, tuple[str, datetime]] = {}

    async def run(self) -> None:
        """Makes passes until cancelled. Raises Fenced if the lease is lost."""
        await repeat_passes(self.make_pass, self._clock, retry_s=ACTIVE_S)

    async def make_pass(self) -> float:
        """Makes one pass, and returns the seconds until the next one. Raises KubeError, DecodeError or InputError."""
        inputs = self._with_refusals(await in_thread(self._read, "observe the cluster"))
        self._notice_clock(inputs.now)
        policy = inputs.policies[0] if inputs.policies else None
        choice, created, policy_status = Choice(), False, None
        if policy is not None:
            choice, created, policy_status = await self._follow(policy, inputs)
        else:
            self._metrics.observe_policy(None)
        inputs = replace(inputs, paths=await self._find_paths(inputs))
        active = policies.active_run(inputs.runs)
        acted = await self._put_back(inputs)
        for run in inputs.runs:
            if policies.needs_finalizer(run) != (FINALIZER in run.metadata.finalizers):
                # The next pass continues on the version that this writes.
                await self._write_finalizer(run)
                acted = True
            elif run.status.step not in FINISHED:
                acted = await self._advance(effective_run(run, inputs), inputs, choice) or acted
        await self._report(inputs, policy_status)
        acted = await self._turns.follow(inputs, self._skew_until) or acted
        names = active.spec.calendars if active is not None else ()
        pools = inputs.objects.known_pools
        self._metrics.observe_runs(inputs.runs, inputs.now, read_calendars(names, inputs.calendars)[0], pools)
        if created or acted:
            return _RETRY_S if active is not None and active.status.step == "Committing" else 0.1
        return ACTIVE_S if active is not None else IDLE_S

    async def _follow(self, policy: UpdatePolicy, inputs: ClusterInputs) -> tuple[Choice, bool, UpdatePolicyStatus]:
        """Creates and deletes the policy's runs, and writes its status; returns choice, if a run is new, and status."""
        cluster, runs, now = inputs.objects.cluster, inputs.runs, inputs.now
        offered = offered_releases(policy, cluster, now)
        choice = choose(policy.spec.target, cluster, now, offered, plain=inputs.objects.plain)
        if policy.spec.target.max_hops > 1 and choice.reason == "NoPath":
            target = policy.spec.target
            wanted = Candidate(version=target.version, image=target.image)
            path = await self._find_path(inputs, wanted, max_hops=target.max_hops, blocked=target.block_versions)
            choice = choice_of(path)
        new = policies.new_run(policy, choice, runs, now)
        if new is not None:
            await self._create_run(new, inputs)
        for run in policies.surplus_runs(policy, choice, runs, offered=offered):
            with suppress(NotFound, Conflict):
                await self._client.send(calls.delete(RUNS, run.metadata.name, uid=run.metadata.uid))
        status = policies.policy_status(
            policy,
            choice,
            runs,
            now,
            calendars=inputs.calendars,
            offered=offered,
            may_pause=inputs.objects.may_pause,
        )
        await self._patch_status(POLICIES, policy, codec.to_dict(policy.status), codec.to_dict(status))
        self._metrics.observe_policy(status)
        return choice, new is not None, status

    async def _report(self, inputs: ClusterInputs, policy_status: UpdatePolicyStatus | None) -> None:
        """Writes to UpdateStatus why no update starts, if that has changed."""
        document = inputs.update_status
        finding = why_nothing_starts(policy_status, inputs.runs)
        operations = informer_operations((document or {}).get("status"), finding, inputs.now)
        if document is None or not operations:
            return
        version = document["metadata"]["resourceVersion"]
        operations = [{"op": "replace", "path": "/metadata/resourceVersion", "value": version}, *operations]
        call = calls.json_patch(
            UPDATE_STATUS, document["metadata"]["name"], operations, subresource="status", field_manager=FIELD_MANAGER
        )
        try:
            await self._client.send(call)
        except (BadRequest, Conflict, Forbidden, Invalid, NotFound) as error:
            log.info("UpdateStatus was not written", error=error.message)

    async def _find_paths(self, inputs: ClusterInputs) -> dict[str, Path]:
        """Returns the paths of runs that have to choose one, by UID."""
        paths = {}
        for run in inputs.runs:
            if needs_path(run):
                spec = effective_run(run, inputs).spec
                paths[run.metadata.uid] = await self._find_path(
                    inputs, spec.target, max_hops=spec.max_hops, blocked=spec.block_versions
                )
        return paths

    async def _find_path(
        self, inputs: ClusterInputs, target: Candidate, *, max_hops: int, blocked: Sequence[str]
    ) -> Path:
        """Returns the path from the running release to `target`. The graph is read unless the target is offered."""
        cluster = inputs.objects.cluster
        if inputs.objects.plain is not None:
            return Path(hops=(target,))
        offered = offered_path(cluster, target)
        if offered is not None or self._graph is None:
            return offered or NOT_RESOLVED
        graph = await self._graph(cluster, inputs.objects.nodes)
        if isinstance(graph, str):
            return Path(problem=graph, unknown=True)
        origin = cluster.status.desired.version
        return find_path(graph, origin, target, max_hops=max_hops, block_versions=blocked)

    async def _write_finalizer(self, run: UpdateRun) -> None:
        """Adds the finalizer of a run, or removes it. A conflict is decided again in the next pass."""
        others = [each for each in run.metadata.finalizers if each != FINALIZER]
        finalizers = [*others, FINALIZER] if policies.needs_finalizer(run) else others
        patch = {"metadata": {"finalizers": finalizers, "resourceVersion": run.metadata.resource_version}}
        with suppress(NotFound, Conflict):
            await self._client.send(calls.merge_patch(RUNS, run.metadata.name, patch, field_manager=FIELD_MANAGER))

    async def _advance(self, run: UpdateRun, inputs: ClusterInputs, choice: Choice) -> bool:
        """Stores the next status of a run, and then carries out its act; returns whether anything was written."""
        observed, pools = observe_run(run, inputs, self._skew_until), inputs.objects.known_pools
        waiting = next_pools(run, pools) if run.status.step == "Pools" and not isinstance(pools, str) else ()
        cluster, owns_request = seen_cluster(run, inputs)
        situation = Situation(
            cluster=cluster,
            verdict=evaluate(observed, inputs.now),
            health=observed.health,
            # Only runs of the policy follow its choice.
            candidate=choice.candidate if policies.is_of_policy(run) else None,
            leader=self._leader,
            owns_request=owns_request,
            pools=pools,
            nodes=inputs.objects.nodes,
            path=inputs.paths.get(run.metadata.uid, Path()),
            resumption={name: evaluate_resumption(observed, name, inputs.now) for name in waiting},
            used_up_turns=newly_used_up(run, inputs.turns, inputs.now),
        )
        outcome = decide(run, situation, inputs.now)
        # A new run has no status yet, to which fields could be added.
        before = codec.to_dict(run.status) if run.status != UpdateRunStatus() else {}
        after = codec.to_dict(outcome.status)
        changed = await self._patch_status(RUNS, run, before, after)
        notices = notices_of(run.status, outcome.status, inputs.now)
        self._notify(replace(run, status=outcome.status), inputs, notices)
        for decision in outcome.status.decisions:
            if decision not in run.status.decisions:
                await self._record_event(run, decision)
        after_run = replace(run, status=outcome.status)
        act, updater = outcome.act, updater_of(run, inputs)
        if updater is not None:
            # Only ClusterVersion can be asked for a preflight.
            act = act if act in ("commit", "fence") and not updater.problem else ""
            if act:
                await self._write_updater(act, after_run, updater, inputs.now)
        elif outcome.pools:
            pools_of_act = [pool for pool in inputs.objects.pools if pool.metadata.name in outcome.pools]
            await self._act_on_pools(act, after_run, pools_of_act)
        elif act:
            await self._act(act, after_run, inputs, accepts=observed.run_acceptances)
        return (changed and outcome.status.step != run.status.step) or bool(act)

    async def _write_updater(self, act: Act, run: UpdateRun, found: UpdaterObject, now: datetime) -> None:
        """Writes the object of an updater on the version that was evaluated, and never by force."""
        target = run.spec.field if run.spec.actuator == "Field" else run.spec.cluster
        if target is None or found.resource is None:
            return
        try:
            if act == "commit" and isinstance(target, ObjectField):
                body = apply_body(target, run.spec.target.version, found.resource_version, now)
                call = calls.apply(found.resource, body, field_manager=FIELD_MANAGER, field_validation="Strict")
            else:
                fields: Mapping[str, str | None] = {ANNOTATION: None} if act == "commit" else {ENDED: run.metadata.uid}
                call = _annotate(found.resource, target, fields, found.resource_version)
            await self._client.send(call)
        except Conflict as error:
            log.info("the updater's object has changed, or somebody else manages the field", error=error.message)
        except (BadRequest, Forbidden, Invalid, NotFound) as error:
            log.error("the server refused to write the updater's object", object=found.text, error=error.message)
            self._refused[target] = (error.message, now + _REFUSED_LASTS)
        else:
            log.info("wrote the updater's object", object=found.text, act=act, run=run.metadata.name)

    def _with_refusals(self, inputs: ClusterInputs) -> ClusterInputs:
        """Returns the inputs in which an object that the server refused to write lately has that as its problem."""
        updaters = dict(inputs.updaters)
        for target, (message, until) in self._refused.items():
            if target in updaters and inputs.now < until:
                updaters[target] = replace(updaters[target], problem=f"the server refused the write: {message}")
        return replace(inputs, updaters=updaters)

    async def _put_back(self, inputs: ClusterInputs) -> bool:
        """Puts the annotation back on a Cluster after the update, once; returns whether anything was written."""
        run = to_put_back(inputs.runs)
        found = updater_of(run, inputs) if run is not None else None
        if run is None or run.spec.cluster is None or found is None or found.resource is None:
            return False
        target = run.spec.cluster
        try:
            if not found.annotated:
                fields = {ANNOTATION: "set by runup; the next update waits for its gates"}
                await self._client.send(_annotate(found.resource, target, fields, found.resource_version))
            patch = {"metadata": {"annotations": {PUT_BACK: "true"}, "resourceVersion": run.metadata.resource_version}}
            await self._client.send(calls.merge_patch(RUNS, run.metadata.name, patch, field_manager=FIELD_MANAGER))
        except (Conflict, NotFound):
            return True
        except (BadRequest, Forbidden, Invalid) as error:
            log.error("the server refused to put the annotation back", object=found.text, error=error.message)
            return False
        return True

    async def _act_on_pools(self, act: Act, run: UpdateRun, pools: Sequence[MachineConfigPool]) -> None:
        """Pauses, resumes or touches pools, each on the version that was evaluated."""
        for pool in pools:
            name, version = pool.metadata.name, pool.metadata.resource_version
            patch = pool_patch(act, run, version)
            try:
                await self._client.send(calls.merge_patch(POOLS, name, patch, field_manager=FIELD_MANAGER))
            except (Conflict, NotFound):
                log.info("a pool has changed since it was evaluated", act=act, run=run.metadata.name, pool=name)
            else:
                log.info("wrote a pool", act=act, run=run.metadata.name, pool=name)

    async def _act(self, act: Act, run: UpdateRun, inputs: ClusterInputs, *, accepts: Sequence[str]) -> None:
        """Writes ClusterVersion on the version that was evaluated. A conflict is decided again in the next pass.

        `accepts` are the names of risks that the run accepts.
        """
        cluster = inputs.objects.cluster
        if act == "fence":
            with suppress(Conflict):
                await self._client.send(fence(run, cluster, FIELD_MANAGER))
            return
        wanted = desired_update(act, run, cluster.spec.desired_update, runs=inputs.runs, accepts=accepts)
        operations = conditional_operations(wanted, cluster)
        try:
            # A server that does not know a field drops it: a preflight without its mode would be an update.
            kept = await self._patch_cluster_version(operations, dry_run=True)
            if wanted and not _is_kept(wanted, kept):
                log.error("the server drops fields of spec.desiredUpdate", act=act, wanted=wanted)
                return
            await self._patch_cluster_version(operations)
        except Conflict:
            log.info("ClusterVersion has changed since it was evaluated", act=act, run=run.metadata.name)
        except (BadRequest, Invalid) as error:
            log.error("the server refused the request", act=act, run=run.metadata.name, error=error.message)
        else:
            log.info("wrote ClusterVersion", act=act, run=run.metadata.name, image=current_target(run).image)

    async def _patch_cluster_version(
        self, operations: list[dict[str, Any]], *, dry_run: bool = False
    ) -> dict[str, Any]:
        call = calls.json_patch(
            CLUSTER_VERSION, NAME, operations, dry_run=dry_run, field_validation="Strict", field_manager=FIELD_MANAGER
        )
        answer = await self._client.send(call)
        desired: dict[str, Any] = answer.get("spec", {}).get("desiredUpdate") or {}
        return desired

    def _notify(self, run: UpdateRun, inputs: ClusterInputs, notices: Sequence[Notice]) -> None:
        """Queues the notices for the addresses of the policy."""
        if self._notifier is not None and inputs.policies:
            cluster_id = inputs.objects.cluster.spec.cluster_id
            self._notifier.add(inputs.policies[0].spec.notify, run, notices, cluster_id=cluster_id)

    async def _create_run(self, run: UpdateRun, inputs: ClusterInputs) -> None:
        """Creates a run of the policy."""
        try:
            created = await self._client.send(calls.create(RUNS, codec.to_dict(run), field_manager=FIELD_MANAGER))
        except AlreadyExists:
            return
        stored = codec.convert(UpdateRun, created)
        await self._record_event(stored, RunDecision(at=inputs.now, step="Waiting", reason="Planned"))
        self._notify(stored, inputs, [Notice(kind="planned", reason="Planned", message="", at=inputs.now)])

    async def _patch_status(
        self, resource: Resource, obj: Object, before: dict[str, Any], after: dict[str, Any]
    ) -> bool:
        """Writes a status if it has changed."""
        if before == after:
            return False
        key = NamespacedName("", obj.metadata.name)
        gone = tuple(name for name in before if name not in after)
        patch = PatchStatus(
            resource=resource,
            key=key,
            fields=after,
            gone=gone,
            resource_version=obj.metadata.resource_version,
            fresh=not before,
        )
        await self._executor.execute(Plan((patch,)))
        return True

    async def _record_event(self, run: UpdateRun, decision: RunDecision) -> None:
        """Creates the event of a decision: a warning if a person has to look at it."""
        key = NamespacedName("", run.metadata.name)
        detail = f" ({decision.message})" if decision.message else ""
        event = Event(
            resource=RUNS,
            key=key,
            type="Warning" if is_warning(decision) else "Normal",
            reason=decision.reason,
            message=f"Update to {run.spec.target.version}: {decision.reason}{detail}",
            uid=run.metadata.uid,
        )
        await self._executor.execute(Plan((event,)))

    def _notice_clock(self, now: datetime) -> None:
        """Closes time gates for a while if the cluster's clock jumped since the last pass."""
        monotonic = self._clock.monotonic()
        if self._last_times is not None:
            then, then_monotonic = self._last_times
            if abs((now - then).total_seconds() - (monotonic - then_monotonic)) > _SKEW_S:
                self._skew_until = now + _SKEW_LASTS
                log.warning("the cluster's clock jumped", now=str(now))
        self._last_times = (now, monotonic)


def _annotate(
    resource: Resource, target: ObjectField | ClusterReference, fields: Mapping[str, str | None], resource_version: str
) -> Call[dict[str, Any]]:
    """Returns the call that sets or removes annotations of an updater's object."""
    patch = {"metadata": {"annotations": fields, "resourceVersion": resource_version}}
    namespace = target.namespace if resource.namespaced else ""
    return calls.merge_patch(resource, target.name, patch, namespace, field_manager=FIELD_MANAGER)


def fence(run: UpdateRun, cluster: ClusterVersion, manager: str) -> Call[dict[str, Any]]:
    """Returns the call that changes ClusterVersion, so that a start for this version of it is refused."""
    ended = {"annotations": {ENDED: run.metadata.uid}, "resourceVersion": cluster.metadata.resource_version}
    return calls.merge_patch(CLUSTER_VERSION, NAME, {"metadata": ended}, field_manager=manager)


def conditional_operations(wanted: dict[str, Any], cluster: ClusterVersion) -> list[dict[str, Any]]:
    """Returns the JSON patch that sets `spec.desiredUpdate` of this version of ClusterVersion; empty removes it."""
    change = {"op": "add", "value": wanted} if wanted else {"op": "remove"}
    return [
        {"op": "replace", "path": "/metadata/resourceVersion", "value": cluster.metadata.resource_version},
        {**change, "path": "/spec/desiredUpdate"},
    ]


def desired_update(
    act: Act, run: UpdateRun, current: Update | None, *, runs: Sequence[UpdateRun] = (), accepts: Sequence[str] = ()
) -> dict[str, Any]:
    """Returns the `spec.desiredUpdate` to write; empty to remove it. `force` is never set.

    Names of accepted risks are kept, except those that finished `runs` added. The names of the run's own pauses and
    acceptances, of which `accepts` count now, are accepted from its start to its end.
    """
    own = _added_names(run)
    finished = [other for other in runs if other.status.step in FINISHED and other.status.started is not None]
    ended = {name for other in finished for name in _added_names(other)}
    names = [name for name in (current.accepted_names if current is not None else ()) if name not in ended]
    # A preflight has the names that people accepted.
    if act == "forget" or (act == "withdraw" and current is not None and not current.mode):
        names = [name for name in names if name not in own]
    elif act == "commit":
        pauses = [risk_of(each.name) for each in run.status.paused_pools]
        names = list(dict.fromkeys([*names, *pauses, *accepts]))
    kept: dict[str, Any] = {"acceptRisks": [{"name": name} for name in names]} if names else {}
    if act == "withdraw":
        return kept
    release = current_target(run)
    target = {"version": release.version, "image": release.image}
    return {**target, **({"mode": "Preflight"} if act == "preflight" else {}), **kept}


def _added_names(run: UpdateRun) -> set[str]:
    """Returns the names of risks that a run adds to ClusterVersion."""
    return {risk_of(each.name) for each in run.status.paused_pools} | {each.name for each in run.spec.accept_risks}


def pool_patch(act: Act, run: UpdateRun, version: str) -> dict[str, Any]:
    """Returns the patch of a pool that has this resourceVersion. The annotation changes together with the pause."""
    if act == "fence-pools":
        return {"metadata": {"annotations": {ENDED: run.metadata.uid}, "resourceVersion": version}}
    annotation = run.metadata.uid if act == "pause" else None
    metadata = {"annotations": {PAUSED_BY: annotation}, "resourceVersion": version}
    return {"metadata": metadata, "spec": {"paused": act == "pause"}}


def _is_kept(wanted: dict[str, Any], answer: dict[str, Any]) -> bool:
    """Reports whether the server would store exactly what is wanted, without force."""
    return not answer.get("force") and {key: value for key, value in answer.items() if value} == wanted
