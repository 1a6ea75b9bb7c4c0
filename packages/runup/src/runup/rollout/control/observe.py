"""Reads what the gates of an update are evaluated on from a cluster, with reads only."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from kubekit.api import codec
from kubekit.api.conditions import find
from kubekit.api.core_v1 import Node
from kubekit.api.scheme import Resource, resource_of
from kubekit.error_types import InputError
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, KubeError, NotFound
from kubekit.kube.reviews import may_they
from runup.api.config_v1 import ClusterOperator, ClusterVersion
from runup.api.machineconfig_v1 import MachineConfigPool
from runup.api.update_policy_v1alpha1 import (
    ClusterReference,
    HealthExpression,
    ObjectField,
    UpdateCalendar,
    UpdatePolicy,
    UpdatePolicySpec,
    UpdateRun,
    UpdateTurn,
)
from runup.api.update_v1alpha1 import NAME as UPDATE_STATUS
from runup.api.update_v1alpha1 import UpdateStatus
from runup.checks.decide.reads import namespace_of
from runup.preflight.control import cluster_records
from runup.preflight.decide import cluster_run
from runup.process import clusterversion_client
from runup.rehearse.control import drain_source
from runup.rehearse.control.drain_source import DrainSource, forecast_of
from runup.rollout.control import policy_objects
from runup.rollout.decide.approvals import CONTROLLER, FoundApprovals, approvals_of
from runup.rollout.decide.assemble import RIGHTS_NOT_READ, ClusterObjects, observe
from runup.rollout.decide.expressions import Listed, compile_expression
from runup.rollout.decide.gates.observed import Holds, Observed
from runup.rollout.decide.hops import NOT_RESOLVED, Path, current_target, needs_path
from runup.rollout.decide.plain_cluster import PlainCluster, cluster_version_of, plain_cluster
from runup.rollout.decide.policy import active_run, is_of_hub, is_of_policy
from runup.rollout.decide.pools import is_paused_by, own_pauses
from runup.rollout.decide.run_acceptances import known_since, own_acceptances
from runup.rollout.decide.run_steps import FINISHED, PASSIVE, TARGET_WITHDRAWN
from runup.rollout.decide.stricter import with_policy
from runup.rollout.decide.turns import turn_of
from runup.rollout.decide.updaters import (
    FIELD_MANAGER,
    UpdaterObject,
    cluster_of,
    field_of,
    request_of,
    text_of,
    to_put_back,
    updater_gate,
)
from runup.updatestatus.control import thanos

if TYPE_CHECKING:
    from kubekit.kube.client_sync import SyncClient
    from runup.rehearse.decide.update_forecast import Forecast

CLUSTER_API = "cluster.x-k8s.io"
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)


class ClusterInputs(msgspec.Struct, frozen=True, kw_only=True):
    """The observed state: the objects of the cluster, its policies, calendars and runs, and its time.

    `owns_request`: the reader's field manager wrote the image in ClusterVersion's `spec.desiredUpdate`. `paths`
    are the paths that were found for runs without one, by UID. `updaters` are the objects that runs write where no
    ClusterVersion starts an update. `update_status` is the object UpdateStatus; None if the cluster has no such object,
    or it cannot be read. `turns` are those that a hub gave, `claim` the value of the ClusterClaim that asks for them.
    """

    objects: ClusterObjects
    policies: tuple[UpdatePolicy, ...] = ()
    calendars: tuple[UpdateCalendar, ...] = ()
    now: datetime
    notes: tuple[str, ...] = ()
    runs: tuple[UpdateRun, ...] = ()
    approvals: FoundApprovals = FoundApprovals()
    owns_request: bool = False
    paths: Mapping[str, Path] = {}
    updaters: dict[ObjectField | ClusterReference, UpdaterObject] = {}
    update_status: dict[str, Any] | None = None
    turns: tuple[UpdateTurn, ...] = ()
    claim: str = ""


def read_cluster(
    client: SyncClient,
    node_s: tuple[int, int] | None,
    *,
    with_policy: bool,
    expressions: Sequence[HealthExpression] = (),
    manager: str = FIELD_MANAGER,
) -> ClusterInputs:
    """Reads a live cluster; `with_policy` also its policy, calendars and runs.

    Also the objects that the expressions of these read, and `expressions` of another policy. `manager` is the field
    manager whose request for an update counts as owned. A cluster without a ClusterVersion has the reports of `runup
    preflight run --in-cluster`. Raises KubeError or DecodeError.
    """
    # ClusterVersion comes first: a start is refused if it has changed since.
    try:
        raw = clusterversion_client.read_raw(client)
    except clusterversion_client.NoClusterVersion:
        raw = None
    policy = policy_objects.policy(client) if with_policy else None
    approvals = policy_objects.approvals(client) if with_policy else FoundApprovals()
    runs = policy_objects.runs(client) if with_policy else ()
    # So do the objects of updaters, which are written on the version that was read.
    updaters = {each: _read_updater(client, each) for each in _updaters_of(runs)}
    source = drain_source.read_cluster_objects(client)
    nodes = source.objects.get("Node", [])
    plain = _read_plain(client, nodes) if raw is None else None
    cluster = (
        codec.convert(ClusterVersion, raw) if raw is not None else cluster_version_of(plain or PlainCluster(server=""))
    )
    namespace = clusterversion_client.namespace() if plain is None else cluster_run.NAMESPACE
    operators: list[ClusterOperator] = []
    unreadable = missing_kinds(source)
    try:
        operators = client.list_all(ClusterOperator)[0] if plain is None else []
    except (ApiError, codec.DecodeError) as error:
        unreadable = (*unreadable, f"ClusterOperator: {error}")
    objects = ClusterObjects(
        cluster=cluster,
        history=cluster_records.read_history(client, namespace),
        accepted=cluster_records.read_accepted(client, cluster),
        operators=operators,
        pools=source.objects.get(drain_source.OPENSHIFT, []),
        nodes=nodes,
        alerts=thanos.alerts(client, client.now()),
        forecast=forecast_or_reason(_with_resumed_pools(source, runs), client.now(), node_s),
        unreadable=unreadable,
        lists=_read_lists(client, [*expressions, *_expressions_of(policy, runs)]),
        why_pools_unknown=source.missing.get(drain_source.OPENSHIFT, ""),
        may_pause=_may_pause(client, policy, runs),
        plain=plain,
    )
    return ClusterInputs(
        objects=objects,
        policies=(policy,) if policy is not None else (),
        calendars=policy_objects.calendars(client) if runs or policy is not None else (),
        runs=runs,
        now=client.now(),
        approvals=approvals,
        owns_request=raw is not None and owns_request(raw, manager),
        updaters=updaters,
        update_status=_read_update_status(client) if with_policy else None,
        turns=policy_objects.turns(client) if runs else (),
        claim=policy_objects.claim(client) if any(run.spec.needs_turn for run in runs) else "",
    )


def read_versions(client: SyncClient) -> tuple[ClusterVersion, PlainCluster | None]:
    """Returns the ClusterVersion, or on a cluster without one its versions in that form. Raises KubeError."""
    try:
        return codec.convert(ClusterVersion, clusterversion_client.read_raw(client)), None
    except clusterversion_client.NoClusterVersion:
        plain = _read_plain(client, client.list_all(Node)[0])
        return cluster_version_of(plain), plain


def _read_update_status(client: SyncClient) -> dict[str, Any] | None:
    """Returns the UpdateStatus, which only informs: nothing waits for it."""
    try:
        return client.send(calls.get_raw(resource_of(UpdateStatus), UPDATE_STATUS))
    except (ApiError, codec.DecodeError):
        return None


def _with_resumed_pools(source: DrainSource, runs: Iterable[UpdateRun]) -> DrainSource:
    """Returns the objects with the pools that unfinished runs keep paused as they are after their resumption."""
    unfinished = [run for run in runs if run.status.step not in FINISHED]
    pools: list[MachineConfigPool] = source.objects.get(drain_source.OPENSHIFT, [])
    resumed = [
        replace(pool, spec=replace(pool.spec, paused=False))
        if any(is_paused_by(pool, run) for run in unfinished)
        else pool
        for pool in pools
    ]
    return dataclasses.replace(source, objects={**source.objects, drain_source.OPENSHIFT: resumed})


def _may_pause(client: SyncClient, policy: UpdatePolicy | None, runs: Iterable[UpdateRun]) -> bool | str:
    """Returns whether the controller may pause pools, or why that is not known. Only where a policy or run needs it."""
    settings = [run.spec.pools for run in runs if run.status.step not in FINISHED]
    settings += [policy.spec.pools] if policy is not None else []
    if all(each.when == "Together" for each in settings):
        return RIGHTS_NOT_READ
    try:
        return client.send(may_they(CONTROLLER, "patch", resource_of(MachineConfigPool))).allowed
    except ApiError as error:
        return f"the rights of the controller: {error}"


def _read_plain(client: SyncClient, nodes: Sequence[Node]) -> PlainCluster:
    """Returns the versions of a cluster without a ClusterVersion. Raises KubeError or DecodeError."""
    system = client.send(calls.get_raw(NAMESPACES, "kube-system"))
    return plain_cluster(client.send(calls.server_version()), nodes, str(system["metadata"].get("uid", "")))


def _updaters_of(runs: Iterable[UpdateRun]) -> Iterator[ObjectField | ClusterReference]:
    """Yields the objects that runs write: those of unfinished runs, and the one whose annotation is put back."""
    finished = to_put_back(tuple(runs))
    for run in runs:
        if run.status.step in FINISHED and run is not finished:
            continue
        if run.spec.actuator == "Field" and run.spec.field is not None:
            yield run.spec.field
        if run.spec.actuator == "RemoveAnnotation" and run.spec.cluster is not None:
            yield run.spec.cluster


def _read_updater(client: SyncClient, target: ObjectField | ClusterReference) -> UpdaterObject:
    """Returns the object that a run writes; one that cannot be read has the reason."""
    try:
        resource = _updater_resource(client, target)
        obj = client.send(calls.get_raw(resource, target.name, target.namespace if resource.namespaced else ""))
    except (KubeError, codec.DecodeError, InputError, ValueError) as error:
        return UpdaterObject(text=text_of(target), problem=str(error))
    found = field_of(target, obj) if isinstance(target, ObjectField) else cluster_of(target, obj)
    return replace(found, resource=resource)


def _updater_resource(client: SyncClient, target: ObjectField | ClusterReference) -> Resource:
    """Returns the resource of an updater's object. Raises InputError if the server has no such kind, or KubeError."""
    versions: tuple[str, ...]
    if isinstance(target, ObjectField):
        kind, versions = target.kind, (target.api_version,)
    else:
        kind, versions = "Cluster", client.send(calls.list_versions(CLUSTER_API))
    for version in versions:
        found = next((each for each in client.send(calls.list_kinds(version)) if each.kind == kind), None)
        if found is not None:
            return found
    raise InputError(f"the cluster has no kind {kind} of {', '.join(versions)}")


def _expressions_of(policy: UpdatePolicy | None, runs: Iterable[UpdateRun]) -> Iterator[HealthExpression]:
    """Yields the health expressions that count now."""
    if policy is not None:
        yield from policy.spec.gates.health.expressions
    for run in runs:
        if run.status.step not in FINISHED:
            yield from run.spec.gates.health.expressions


def _read_lists(client: SyncClient, expressions: Iterable[HealthExpression]) -> dict[Resource, Listed]:
    """Returns the objects that the expressions read; those of an expression that is invalid are not read."""
    lists: dict[Resource, Listed] = {}
    for each in dict.fromkeys(expressions):
        try:
            reads = compile_expression(each).reads
        except InputError:
            continue
        for read in reads:
            if read not in lists:
                lists[read] = _read_list(client, read)
    return lists


def _read_list(client: SyncClient, read: Resource) -> Listed:
    try:
        listing = client.listing_raw(read, namespace_of(read))
    except NotFound:
        return Listed(problem="the cluster has no such kind", absent=True)
    except (ApiError, codec.DecodeError) as error:
        return Listed(problem=str(error))
    return Listed(objects=tuple(listing.items), problem="; ".join(listing.incomplete))


def owns_request(cluster: dict[str, Any], manager: str = FIELD_MANAGER) -> bool:
    """Reports whether the field manager wrote the image in `spec.desiredUpdate`."""
    for entry in cluster.get("metadata", {}).get("managedFields") or ():
        spec = (entry.get("fieldsV1") or {}).get("f:spec") or {}
        if entry.get("manager") == manager and "f:image" in (spec.get("f:desiredUpdate") or {}):
            return True
    return False


def missing_kinds(source: DrainSource) -> tuple[str, ...]:
    """Returns why the cluster's health is not known: its nodes or pools could not be read."""
    return tuple(
        f"{kind}: {source.missing[kind]}" for kind in ("Node", drain_source.OPENSHIFT) if kind in source.missing
    )


def forecast_or_reason(source: DrainSource, now: datetime, node_s: tuple[int, int] | None) -> Forecast | str:
    """Returns the forecast, or why there is none."""
    try:
        return forecast_of(source, now, node_s)[0]
    except InputError as error:
        return error.message


def effective_run(run: UpdateRun, inputs: ClusterInputs) -> UpdateRun:
    """Returns a run behind everything that counts for it: what the policy blocks, and for others' runs its gates."""
    if not inputs.policies:
        return run
    policy = inputs.policies[0].spec
    if not is_of_policy(run):
        return with_policy(run, policy)
    blocked = tuple(dict.fromkeys((*run.spec.block_versions, *policy.target.block_versions)))
    return replace(run, spec=replace(run.spec, block_versions=blocked))


def seen_cluster(run: UpdateRun, inputs: ClusterInputs) -> tuple[ClusterVersion, bool]:
    """Returns the ClusterVersion as a run sees it, and if the controller wrote its request.

    Without a ClusterVersion the versions of the cluster and the updater's object take its place.
    """
    plain = inputs.objects.plain
    if plain is None:
        return inputs.objects.cluster, inputs.owns_request
    request = request_of(run, updater_of(run, inputs))
    begun = run.status.started is not None
    return cluster_version_of(plain, run.spec.target.version, request, begun=begun), request.is_ours


def updater_of(run: UpdateRun, inputs: ClusterInputs) -> UpdaterObject | None:
    """Returns the object that the run writes; None if its actuator writes none."""
    actuator, is_plain = run.spec.actuator, inputs.objects.plain is not None
    if actuator in PASSIVE or (actuator == "ClusterVersion" and not is_plain):
        return None
    if actuator == "ClusterVersion":
        return UpdaterObject(text="ClusterVersion", problem="the cluster lacks it; use another spec.actuator")
    target = run.spec.field if actuator == "Field" else run.spec.cluster
    if target is None:
        missing = "field" if actuator == "Field" else "cluster"
        return UpdaterObject(text=f"The object of actuator {actuator}", problem=f"the policy has no spec.{missing}")
    if not is_plain:
        problem = "the cluster has a ClusterVersion, which alone starts its updates; use actuator ClusterVersion"
        return UpdaterObject(text=text_of(target), problem=problem)
    return inputs.updaters.get(target, UpdaterObject(text=text_of(target), problem="it was not read"))


def observe_run(run: UpdateRun, inputs: ClusterInputs, clock_skew_until: datetime | None = None) -> Observed:
    """Returns what the gates of an effective run are evaluated on. Nothing is read."""
    policy = inputs.policies[0].spec if inputs.policies else UpdatePolicySpec()
    active = active_run(inputs.runs)
    older = "" if active is None or active.metadata.uid == run.metadata.uid else active.metadata.name
    holds = Holds(
        control=run.spec.control,
        permit_until=run.spec.permit_until,
        older_run=older,
        # Without its policy nobody can pause a run of the policy.
        no_policy=not inputs.policies and is_of_policy(run),
        denied=policy.remote == "Deny" and is_of_hub(run),
        clock_skew_until=clock_skew_until,
        turn=turn_of(run, inputs.turns),
    )
    running = inputs.objects.cluster.status.desired.version
    # The policy's pauses count at once, in the run's own copy of everything else.
    target = replace(policy.target, block_versions=run.spec.block_versions)
    release = current_target(run)
    offered = inputs.policies[0].status.offered if inputs.policies else ()
    path = inputs.paths.get(run.metadata.uid, NOT_RESOLVED) if needs_path(run) else Path()
    # Only a path has another release to begin after one was withdrawn.
    withdrawn = find(run.status.conditions, TARGET_WITHDRAWN) if run.status.hop else None
    observed = observe(
        inputs.objects,
        replace(
            policy,
            target=target,
            gates=run.spec.gates,
            calendars=run.spec.calendars,
            pools=run.spec.pools,
            actuator=run.spec.actuator,
        ),
        inputs.calendars,
        inputs.now,
        version=release.version,
        image=release.image,
        approvals=approvals_of(run, inputs.approvals),
        holds=holds,
        own_pauses=own_pauses(run, inputs.objects.known_pools),
        accepted_since=known_since(run, release, inputs.runs, offered),
        acceptances=own_acceptances(run, release, inputs.now),
        hop_digests=[each.image.partition("@")[2] for each in run.status.hops],
    )
    return replace(
        observed,
        hop=run.status.hop,
        path_problem=path.problem,
        path_unknown=path.unknown,
        withdrawn=run.status.hops[run.status.hop - 1].version if withdrawn is not None else "",
        updater=updater_gate(run, updater_of(run, inputs), inputs.runs, running=running, now=inputs.now),
    )
