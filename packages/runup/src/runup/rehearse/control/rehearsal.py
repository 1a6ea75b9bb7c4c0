"""Rehearses an update: makes the copy, applies the release to it, and collects the results.

In: a cluster's objects and a loaded release. Out: a `Rehearsal`. Neither the cluster nor anything outside of the copy's
temporary folder is written.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace as with_fields

from kubekit.api import codec
from kubekit.api.meta_v1 import Object
from kubekit.error_types import Terminal
from kubekit.kube.api_errors import KubeError
from kubekit.kube.clock import Clock
from kubekit.lang.version import Version
from kubesandbox.apiserver.status_errors import ApiError as ServerError
from kubesandbox.apiserver.store import StoreError
from runup.api.cluster_settings_v1 import FeatureGate
from runup.api.config_v1 import ClusterVersion
from runup.applying.control.task_errors import KindMissing, error_message
from runup.applying.decide.implicit_capabilities import implicit_capabilities_of
from runup.applying.decide.progress import ApplyReason
from runup.applying.decide.task import Task, tasks_of
from runup.applying.decide.task_graph import graph_of
from runup.checks.decide.built_in_groups import has_definitions
from runup.checks.decide.kubernetes_path import version_of
from runup.dump.documents import identity
from runup.dump.large_lists import unpacked
from runup.evaluation.request import filters_of
from runup.rehearse.control import stored_objects
from runup.rehearse.control import stored_objects as webhook_scope
from runup.rehearse.control.cluster_copy import DEFINITION, ClusterCopy, is_conversion_refusal, open_copy
from runup.rehearse.control.cluster_source import ClusterSource, numbers
from runup.rehearse.control.real_copy import RealCopy, open_real_copy
from runup.rehearse.control.real_server import ServerPrograms
from runup.rehearse.control.rehearsal_run import (
    WANT_OF_MEMORY,
    WANT_OF_ROOM,
    Failure,
    ReleaseRun,
    RunResult,
    StandIns,
    count_behind,
    silence_logs,
)
from runup.rehearse.control.stored_objects import Definition
from runup.rehearse.decide import differences, served_versions
from runup.rehearse.decide import served_versions as rights_changes
from runup.rehearse.decide import served_versions as server_refusals
from runup.rehearse.decide.rehearsal_outcome import (
    Action,
    CopyAccount,
    DefinitionOutcome,
    LeftOut,
    ObjectChange,
    RealServerOutcome,
    Refusal,
    RefusalKind,
    Rehearsal,
    RightsChange,
    StoredObject,
)
from runup.release.decide.inclusion import Filters
from runup.release.decide.inclusion_reasons import OPERATOR, environment_of, profile_in
from runup.release.decide.manifest import Identity, Manifest
from runup.release.decide.payload import Payload, included_in

JSON = dict[str, Any]
_T = TypeVar("_T", bound=Object)
_CONFIG = "config.openshift.io"
# Kinds of the cluster that decide on writes; a copy without all of them cannot say that nothing stands in the way.
_ADMISSION_KINDS = (
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations"),
    ("", "ResourceQuota", "resourcequotas"),
)
_NAMESPACE = ("", "Namespace")
TIME_LIMIT_S = 600.0
# Seconds for what is not applying: to make the copy, and to look at what became of it.
REST_LIMIT_S = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalTarget:
    """The update to rehearse: the release, its image as typed, and what is declared of the components.

    `account` is namespace and name of the operator's ServiceAccount, `limit_s` the seconds that the rehearsal may take.
    """

    payload: Payload
    target: str
    image: str = ""
    kubernetes: str = ""
    stuck: tuple[str, ...] = ()
    account: tuple[str, str] = ("openshift-cluster-version", "default")
    limit_s: float = TIME_LIMIT_S
    # The folder in which the copy is made, None for the usual one of temporary folders.
    scratch: Path | None = None
    # The real API server that the copy is made on, None for the sandbox's.
    server: ServerPrograms | None = None


@dataclass
class _ObjectsBefore:
    """The objects of the copy before the release was applied that are compared afterwards."""

    definitions: dict[str, Definition] = field(default_factory=dict)
    going: list[tuple[Identity, str]] = field(default_factory=list)


async def rehearse(source: ClusterSource, release: RehearsalTarget, clock: Clock) -> Rehearsal:
    """Returns the result of the update on a copy of `source`. Raises OSError if the copy cannot be made, MemoryError if
    it needs more memory than there is, and Terminal if it takes too long to be made or looked through, has no room, or
    fails.
    """
    return await _within_limits(_rehearse_on_copy(source, release, clock), release.limit_s)


async def rehearse_kubernetes(
    source: ClusterSource, server: ServerPrograms, clock: Clock, *, target: str, limit_s: float = TIME_LIMIT_S
) -> Rehearsal:
    """Returns what a real API server makes of the objects of `source`, for an update to the Kubernetes `target`.

    Raises as `rehearse`.
    """
    return await _within_limits(
        _try_on_real_server(source, server, clock=clock, target=target, limit_s=limit_s), limit_s
    )


async def _within_limits(work: Coroutine[Any, Any, Rehearsal], limit_s: float) -> Rehearsal:
    """Returns the result of `work`. Raises Terminal after `limit_s` plus the time for copying."""
    try:
        with silence_logs():
            async with asyncio.timeout(limit_s + REST_LIMIT_S):
                return await work
    except TimeoutError:
        text = f"copying the cluster and looking through it took more than {REST_LIMIT_S:g} s"
        raise Terminal(f"{text}; rehearse on a dump of fewer namespaces", reason="RehearsalTooLong") from None
    except (StoreError, ServerError, KubeError) as error:
        # The cluster was read before: whoever fails here is the copy.
        raise _as_copy_error(error) from error


def _as_copy_error(error: StoreError | ServerError | KubeError) -> MemoryError | Terminal:
    """Returns the error of the copy as it is reported to the user."""
    message = error_message(error) if isinstance(error, KubeError) else str(error)
    text = f"the copy of the cluster failed: {message}"
    # The copy's server survives what it lacks memory for, and says so like any failure of its own.
    if any(sign in message for sign in WANT_OF_MEMORY):
        return MemoryError(text)
    if isinstance(error, StoreError) or WANT_OF_ROOM in message:
        text += "; give the folder of temporary files (TMPDIR) more room"
    return Terminal(text, reason="CopyFailed")


async def _rehearse_on_copy(source: ClusterSource, release: RehearsalTarget, clock: Clock) -> Rehearsal:
    """Copies the cluster, applies the release to the copy, and returns the results."""
    deadline = clock.monotonic() + release.limit_s
    account = account_of(source)
    version = cluster_version_of(source) or ClusterVersion()
    gate = _read_config_object(source, FeatureGate, "cluster")
    running = Version(version.status.desired.version)
    namespace = release.account[0]
    key = ("apps", "Deployment", namespace, OPERATOR)
    deployment = next((unpacked(obj) for obj in source.objects if identity(obj) == key), {})
    profile = profile_in(environment_of(deployment))
    filters = filters_of(release.target, running, version, gate, profile=profile)
    if filters.capabilities is not None:
        of_source = filters.capabilities
        newly_enabled = _enabled_capabilities(source, release, with_fields(filters, major=running.major))
        of_target = with_fields(
            of_source, known=of_source.known | newly_enabled, enabled=of_source.enabled | newly_enabled
        )
        filters = with_fields(filters, capabilities=of_target)
    manifests = included_in(release.payload.manifests, filters)
    last_manifests = {manifest.identity: manifest for manifest in manifests}
    manifests_for_cluster = tuple(manifest for manifest in manifests if last_manifests[manifest.identity] is manifest)
    tasks = tasks_of(manifests_for_cluster)
    async with _open_copy_for(source, release, clock) as copy_:
        account = replace(account, left_out=(*account.left_out, *copy_.left_out))
        source = replace(source, damaged=frozenset(copy_.damaged))
        server = None
        if isinstance(copy_, RealCopy) and release.server is not None:
            server = await _outcome_of_server(
                source, copy_, server=release.server, target=release.kubernetes, deadline=deadline
            )
        # Before the release is applied, which replaces definitions and deletes owners.
        before = _read_objects_before(copy_, tasks)
        stand_ins = StandIns(copy_, copy_.client, clock, release.stuck)
        run = ReleaseRun(
            copy_,
            copy_.client,
            tasks,
            clock=clock,
            stand_ins=stand_ins,
            operator=(release.account[0], "cluster-version-operator"),
            owner_uid=version.metadata.uid,
            deadline=deadline,
        )
        result = await run.run_all()
        rehearsed = _rehearsal_from_results(
            source, release, version=version, copy_=copy_, before=before, result=result, account=account
        )
        if not isinstance(copy_, RealCopy):
            return rehearsed
        # The stored objects were judged by their schemas alone so far.
        definitions = [await _judge_by_server(copy_, outcome) for outcome in rehearsed.definitions]
        return replace(rehearsed, server=server, definitions=tuple(definitions))


@contextlib.asynccontextmanager
async def _open_copy_for(source: ClusterSource, release: RehearsalTarget, clock: Clock) -> AsyncIterator[ClusterCopy]:
    """Yields the copy on the API server that is wanted: the sandbox's, or a real one."""
    if release.server is None:
        async with open_copy(source, clock, account=release.account, scratch=release.scratch) as copy_:
            yield copy_
        return
    async with open_real_copy(source, clock, release.server, account=release.account, scratch=release.scratch) as copy_:
        yield copy_


async def _try_on_real_server(
    source: ClusterSource, server: ServerPrograms, clock: Clock, target: str, limit_s: float
) -> Rehearsal:
    """Returns what a real API server does not serve, reads differently or refuses of the cluster's objects."""
    deadline = clock.monotonic() + limit_s
    running, of_server = kubernetes_version_of(source), Version(server.version)
    account = account_of(source)
    async with open_real_copy(source, clock, server, account=("default", "default"), scratch=None) as copy_:
        account = replace(account, left_out=(*account.left_out, *copy_.left_out))
        outcome = await _outcome_of_server(source, copy_, server=server, target=target, deadline=deadline)
        served = copy_.served_versions()
    objects = map(unpacked, source.objects)
    unserved = served_versions.unserved_by_server(objects, served, running.minor, of_server.minor)
    return Rehearsal(
        account=account, source=str(running), target=target, unserved=unserved, kubernetes=True, server=outcome
    )


async def _outcome_of_server(
    source: ClusterSource, copy_: RealCopy, server: ServerPrograms, target: str, deadline: float
) -> RealServerOutcome:
    """Returns what a real API server refuses or changes of the stored objects."""
    refused, tried = await copy_.try_writes(source, deadline)
    return RealServerOutcome(
        version=server.version,
        wanted=target,
        objects=len(source.objects),
        tried=tried,
        refused=tuple(refused),
        read_changes=tuple(copy_.read_changes(source)),
        too_late=copy_.server.clock.monotonic() > deadline,
    )


async def _judge_by_server(copy_: RealCopy, outcome: DefinitionOutcome) -> DefinitionOutcome:
    """Returns the outcome of a definition with what the real server says to the next write of each stored object."""
    computed_objects = {stored.identity: stored for stored in outcome.objects}
    judged: list[StoredObject] = []
    for entry in copy_.stored_entries(outcome.group, outcome.kind, outcome.plural):
        identity_ = Identity(outcome.group, outcome.kind, entry.namespace, entry.name)
        judged_object = await copy_.judge_stored_object(computed_objects.get(identity_), identity_)
        judged += [judged_object] if judged_object is not None else []
    return replace(outcome, objects=tuple(judged))


def kubernetes_version_of(source: ClusterSource) -> Version:
    """Returns the version of Kubernetes that a cluster runs, with or without a patch version. Raises Terminal."""
    version = version_of(source.kubernetes)
    if version is None:
        text = f"the version {source.kubernetes!r} of {source.name} is not one of Kubernetes such as 1.36"
        raise Terminal(text, reason="InvalidVersion")
    return version


def cluster_version_of(source: ClusterSource) -> ClusterVersion | None:
    """Returns the ClusterVersion of a cluster, None if it has none. Raises Terminal for one that cannot be read."""
    return _read_config_object(source, ClusterVersion, "version")


def _read_config_object(source: ClusterSource, type_: type[_T], name: str) -> _T | None:
    """Returns an object of config.openshift.io, None if there is none. Raises Terminal if it cannot be read."""
    raw = source.one(_CONFIG, type_.__name__, name)
    why_unread = source.why_unread(_CONFIG, type_.__name__) if raw is None else ""
    try:
        found = codec.convert(type_, raw) if raw is not None else None
    except codec.DecodeError as error:
        why_unread = str(error)
    if why_unread:
        text = f"{type_.__name__} {name} of {source.name} cannot be read: {why_unread}"
        raise Terminal(f"{text}; without it it is not known what the cluster gets", reason="BadObject")
    return found


def account_of(source: ClusterSource) -> CopyAccount:
    """Returns the account of the copy before anything is tried: what was copied, and what was left out."""
    return CopyAccount(
        source=source.name,
        objects=len(source.objects),
        kinds=numbers(source.objects),
        left_out=source.left_out,
        requests=source.requests,
        notes=source.notes,
    )


def _enabled_capabilities(source: ClusterSource, release: RehearsalTarget, filters: Filters) -> frozenset[str]:
    """Returns the capabilities that the update enables, since the release has moved objects of the cluster into them.

    The cluster's objects stand for the manifests of the running release: they have its annotations.
    """
    new = {manifest.identity for manifest in release.payload.manifests}
    stored_objects_ = ((Identity(*identity(obj)), obj) for obj in source.objects)
    running = [Manifest.of("", identity_, unpacked(obj)) for identity_, obj in stored_objects_ if identity_ in new]
    return implicit_capabilities_of(release.payload.manifests, running, filters, Version(release.target).major)


def _read_objects_before(copy_: ClusterCopy, tasks: Sequence[Task]) -> _ObjectsBefore:
    """Returns the definitions before the release, and the objects that are deleted with what the release deletes.

    These are the objects of a deleted definition, those in a deleted namespace, and the dependents of a deleted owner.
    """
    before = _ObjectsBefore()
    owners: dict[str, Identity] = {}
    for task in tasks:
        entry = copy_.entry(task.identity)
        if entry is None:
            continue
        if task.kind == DEFINITION:
            definition = entry.load()
            names = definition["spec"]["names"]
            # A definition that the copy invented for objects of an unknown kind says nothing about the cluster's.
            if (definition["spec"]["group"], names["kind"]) not in copy_.invented:
                before.definitions[task.identity.name] = Definition(definition)
            if task.deletes:
                before.going += [
                    (dependent, f"its definition {task.identity.name} goes")
                    for dependent in _objects_of_definition(copy_, definition)
                ]
        elif task.kind == _NAMESPACE and task.deletes:
            reason = f"its namespace {task.identity.name} goes"
            before.going += [(each, reason) for each in copy_.objects_in_namespace(task.identity.name)]
        # The dependents of any other deleted object are found by its UID in their ownerReferences.
        elif task.deletes:
            owners[str(entry.load()["metadata"].get("uid") or "")] = task.identity
    before.going += copy_.dependents(owners)
    return before


def _objects_of_definition(copy_: ClusterCopy, definition: JSON) -> Iterator[Identity]:
    group, kind = definition["spec"]["group"], definition["spec"]["names"]["kind"]
    for entry in copy_.stored_entries(group, kind, definition["spec"]["names"]["plural"]):
        yield Identity(group, kind, entry.namespace, entry.name)


def _rehearsal_from_results(
    source: ClusterSource,
    release: RehearsalTarget,
    version: ClusterVersion,
    copy_: ClusterCopy,
    before: _ObjectsBefore,
    result: RunResult,
    account: CopyAccount,
) -> Rehearsal:
    """Returns the rehearsal as a value, from the state before and the results of the tasks."""
    pairs = [_change_of_task(source, copy_, result, task) for task in result.tasks]
    graph = graph_of(result.tasks, ApplyReason.UPDATING)
    refused = tuple(
        _refusal_of(source, copy_, failure, count_behind(graph, failure.task))
        for failure in sorted(result.failures.values(), key=lambda failure: failure.task.index)
    )
    configurations = [obj for kind in webhook_scope.KINDS for obj in copy_.all(webhook_scope.GROUP, kind)]
    definitions = tuple(_definition_outcomes(source, release, copy_=copy_, before=before, tasks=result.tasks))
    return Rehearsal(
        account=account,
        source=version.status.desired.version,
        target=release.target,
        image=release.image,
        tasks=len(result.tasks),
        tried=len(result.tried),
        changes=tuple(change for change, _, _ in pairs),
        refusals=refused,
        waits=tuple(result.waits),
        vanished=tuple(before.going),
        rights=tuple(_rights_changes(copy_, result.tasks, pairs)),
        definitions=definitions,
        webhooks=tuple(webhook_scope.webhooks(copy_, configurations, pairs)),
        unknown=tuple(_unknown_kinds(source, [change for change, _, _ in pairs], definitions)),
        not_evaluated=tuple(copy_.not_evaluated),
        too_late=result.too_late,
        notes=tuple(f"{identity}: {message}" for identity, message in result.notices.items()),
    )


Pair = tuple[ObjectChange, JSON | None, JSON | None]


def _change_of_task(source: ClusterSource, copy_: ClusterCopy, result: RunResult, task: Task) -> Pair:
    """Returns what became of the object of a task, and the object before and after."""
    identity = task.identity
    entry, now = result.before.get(identity), copy_.get(identity)
    # What stands in for a definition that the copy lacks says nothing of what the release changes.
    before = entry.load() if entry is not None and not _is_stand_in(copy_, task) else None
    known = before is not None or source.knows(identity.group, identity.kind, identity.namespace)
    if task.deletes:
        is_deleted = before is not None and (now is None or bool(now["metadata"].get("deletionTimestamp")))
        action = Action.DELETE if is_deleted else Action.NOTHING
        return ObjectChange(identity=identity, action=action, known=known), before, None if is_deleted else now
    if task.index in result.failures:
        return ObjectChange(identity=identity, action=Action.NOTHING, known=known), before, now
    if before is None:
        return (
            ObjectChange(identity=identity, action=Action.CREATE if now is not None else Action.NOTHING, known=known),
            None,
            now,
        )
    fields = differences.changes(identity, before, now or {})
    owned = bool(before["metadata"].get("managedFields"))
    return (
        ObjectChange(identity=identity, action=Action.UPDATE if fields else Action.NOTHING, fields=fields, owned=owned),
        before,
        now,
    )


def _refusal_of(source: ClusterSource, copy_: ClusterCopy, failure: Failure, waiting: int) -> Refusal:
    """Returns a failed task as a refusal; a failure that only the copy would have is "not known"."""
    task, message = failure.task, failure.message
    kind, policy = server_refusals.kind_of(message)
    if isinstance(failure.error, KindMissing):
        kind = (
            RefusalKind.NOT_SERVED
            if (has_definitions(task.identity.group) and source.knows(*DEFINITION))
            else RefusalKind.NOT_KNOWN
        )
    lost_namespace = f'namespaces "{task.identity.namespace}" not found'
    unknown_namespace = lost_namespace in message and not source.knows(*_NAMESPACE)
    if (
        is_conversion_refusal(message)
        or unknown_namespace
        or failure.by_copy
        or (task.kind in copy_.invented or _is_stand_in(copy_, task))
    ):
        kind = RefusalKind.NOT_KNOWN
    message = f"the copy failed: {message}" if failure.by_copy else message
    return Refusal(identity=task.identity, index=task.index, kind=kind, message=message, behind=waiting, by=policy)


def _is_stand_in(copy_: ClusterCopy, task: Task) -> bool:
    """Returns whether the copy has only a stand-in for the definition that the task applies."""
    spec = task.manifest.object.get("spec")
    if task.kind != DEFINITION or not isinstance(spec, dict):
        return False
    names = spec.get("names")
    return isinstance(names, dict) and (str(spec.get("group")), str(names.get("kind"))) in copy_.invented


def _rights_changes(copy_: ClusterCopy, tasks: Sequence[Task], pairs: Sequence[Pair]) -> Iterator[RightsChange]:
    """Yields the rights that each changed role or binding gives or takes."""
    bindings = [obj for kind in rights_changes.BINDINGS for obj in copy_.all(rights_changes.GROUP, kind)]
    roles: Mapping[Identity, JSON] = {
        Identity(rights_changes.GROUP, kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj
        for kind in rights_changes.ROLES
        for obj in copy_.all(rights_changes.GROUP, kind)
    }
    for task, (change, before, after) in zip(tasks, pairs, strict=True):
        if task.identity.group != rights_changes.GROUP or change.action is Action.NOTHING or not change.known:
            continue
        if task.identity.kind in rights_changes.ROLES:
            rights_change = rights_changes.change_of_role(task.identity, before, after, bindings)
            if rights_change is not None:
                yield rights_change
        elif task.identity.kind in rights_changes.BINDINGS:
            yield from rights_changes.change_of_binding(task.identity, before, after, roles)


def _definition_outcomes(
    source: ClusterSource, release: RehearsalTarget, copy_: ClusterCopy, before: _ObjectsBefore, tasks: Sequence[Task]
) -> Iterator[DefinitionOutcome]:
    """Yields, for each definition that the release applies, its effect on the stored objects of its kind."""
    for task in tasks:
        if task.kind != DEFINITION or task.deletes:
            continue
        spec = task.manifest.object.get("spec") or {}
        # A definition without these fields is skipped: the server refuses it, and that is reported as a refusal.
        with contextlib.suppress(KeyError, TypeError, AttributeError):
            group, names = spec["group"], spec["names"]
            yield stored_objects.try_stored_objects(
                before.definitions.get(task.identity.name),
                task.manifest.object,
                copy_.stored_entries(group, names["kind"], names["plural"]),
                kubernetes=release.kubernetes,
                complete=source.knows(group, names["kind"])
                or not (task.identity.name in before.definitions or not source.knows(*DEFINITION)),
            )


def _unknown_kinds(
    source: ClusterSource, changes: Sequence[ObjectChange], definitions: Sequence[DefinitionOutcome]
) -> Iterator[LeftOut]:
    """Yields the kinds whose objects the copy lacks in part, and what is therefore not known."""
    lacking: dict[str, int] = {}
    for change in changes:
        if not change.known:
            name = _plural_name(source, change.identity.group, change.identity.kind)
            lacking[name] = lacking.get(name, 0) + 1
    for name, count in sorted(lacking.items()):
        yield LeftOut(name, "whether the release creates or changes them is not known", count)
    for group, kind, plural in _ADMISSION_KINDS:
        if not source.knows(group, kind):
            name = f"{plural}.{group}" if group else plural
            yield LeftOut(name, "what they refuse or change of the release's writes is not known")
    for definition in definitions:
        if not definition.complete:
            text = "those that the copy does not have were not tried under the target's definition"
            yield LeftOut(_plural_name(source, definition.group, definition.kind), text)


def _plural_name(source: ClusterSource, group: str, kind: str) -> str:
    plural = source.plurals.get((group, kind), f"{kind.lower()}s")
    return f"{plural}.{group}" if group else plural
