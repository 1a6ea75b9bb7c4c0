"""Rehearses an update: makes the copy, applies the release to it, and collects the results.

In: a cluster's objects and a loaded release. Out: a `Rehearsal`. Neither the cluster nor anything outside of the copy's
temporary folder is written.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace as with_fields

from kubekit.api import codec
from kubekit.api.meta_v1 import Object
from kubekit.error_types import Terminal
from kubekit.kube.api_errors import KubeError
from kubekit.kube.clock import Clock
from kubekit.lang.version import Version
from kubekit.rules.version_skew import version_of
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
from runup.dump.documents import identity
from runup.dump.large_lists import unpacked
from runup.evaluation.request import filters_of
from runup.rehearse.control import rehearsal_run, stored_objects
from runup.rehearse.control.cluster_copy import DEFINITION, ClusterCopy, is_conversion_refusal, open_copy
from runup.rehearse.control.cluster_source import ClusterSource, numbers
from runup.rehearse.control.real_copy import RealCopy, open_real_copy
from runup.rehearse.control.real_server import ServerPrograms
from runup.rehearse.decide import differences, rehearsal_outcome, served_versions
from runup.release.decide.inclusion_reasons import OPERATOR, environment_of, profile_in
from runup.release.decide.manifest import Identity, Manifest
from runup.release.decide.payload import Payload, included_in

JSON = dict[str, Any]
_T = TypeVar("_T", bound=Object)
_CONFIG = "config.openshift.io"
# Kinds of the cluster that decide on writes; a copy without all of them cannot say that nothing is in the way.
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
    """The update to rehearse: the release, its image as typed, and the declared behaviour of components.

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


async def rehearse(source: ClusterSource, release: RehearsalTarget, clock: Clock) -> rehearsal_outcome.Rehearsal:
    """Returns the result of the update on a copy of `source`. Raises OSError if the copy cannot be made, MemoryError if
    it needs more memory than there is, and Terminal if it takes too long to be made or looked through, has no room, or
    fails.
    """
    deadline = clock.monotonic() + release.limit_s
    account = account_of(source)
    version = cluster_version_of(source) or ClusterVersion()
    tasks = _tasks_for(source, release, version)
    opening: contextlib.AbstractAsyncContextManager[ClusterCopy]
    if release.server is None:
        opening = open_copy(source, clock, account=release.account, scratch=release.scratch)
    else:
        opening = open_real_copy(source, clock, release.server, account=release.account, scratch=release.scratch)
    async with _limits(release.limit_s), opening as copy_:
        account = replace(account, left_out=(*account.left_out, *copy_.left_out))
        source = replace(source, damaged=frozenset(copy_.damaged))
        server = None
        if isinstance(copy_, RealCopy) and release.server is not None:
            server = await _outcome_of_server(
                source, copy_, server=release.server, target=release.kubernetes, deadline=deadline
            )
        # Before the release is applied, which replaces definitions and deletes owners.
        definitions, vanished = _read_objects_before(copy_, tasks)
        run = rehearsal_run.ReleaseRun(
            copy_,
            copy_.client,
            tasks,
            clock=clock,
            stand_ins=rehearsal_run.StandIns(copy_, copy_.client, clock, release.stuck),
            operator=(release.account[0], "cluster-version-operator"),
            owner_uid=version.metadata.uid,
            deadline=deadline,
        )
        result = await run.run_all()
        outcomes = await _definition_outcomes(source, release, copy_=copy_, definitions=definitions, tasks=result.tasks)
        pairs = [_change_of_task(source, copy_, result, task) for task in result.tasks]
        rights = tuple(_rights_changes(source, copy_, result.tasks, pairs))
        graph = graph_of(result.tasks, ApplyReason.UPDATING)
        refused = tuple(
            _refusal_of(source, copy_, failure, rehearsal_run.count_behind(graph, failure.task))
            for failure in sorted(result.failures.values(), key=lambda failure: failure.task.index)
        )
        configurations = [obj for kind in stored_objects.KINDS for obj in copy_.all(stored_objects.GROUP, kind)]
        return rehearsal_outcome.Rehearsal(
            account=account,
            source=version.status.desired.version,
            target=release.target,
            image=release.image,
            tasks=len(result.tasks),
            tried=len(result.tried),
            changes=tuple(change for change, _, _ in pairs),
            refusals=refused,
            waits=tuple(result.waits),
            vanished=tuple(vanished),
            rights=rights,
            definitions=tuple(outcomes),
            webhooks=tuple(stored_objects.webhooks(copy_, configurations, pairs)),
            unknown=tuple(_unknown_kinds(source, [change for change, _, _ in pairs], outcomes, rights)),
            not_evaluated=tuple(copy_.not_evaluated),
            too_late=result.too_late,
            notes=tuple(f"{identity}: {message}" for identity, message in result.notices.items()),
            server=server,
        )


async def rehearse_kubernetes(
    source: ClusterSource, server: ServerPrograms, clock: Clock, *, target: str, limit_s: float = TIME_LIMIT_S
) -> rehearsal_outcome.Rehearsal:
    """Returns what a real API server does not serve, reads differently or refuses of the objects of `source`.

    `target` is the Kubernetes of the update. Raises as `rehearse`.
    """
    deadline = clock.monotonic() + limit_s
    running, of_server = kubernetes_version_of(source), Version(server.version)
    account = account_of(source)
    opening = open_real_copy(source, clock, server, account=("default", "default"), scratch=None)
    async with _limits(limit_s), opening as copy_:
        account = replace(account, left_out=(*account.left_out, *copy_.left_out))
        outcome = await _outcome_of_server(source, copy_, server=server, target=target, deadline=deadline)
        served = copy_.served_versions()
    objects = map(unpacked, source.objects)
    unserved = served_versions.unserved_by_server(objects, served, running.minor, of_server.minor)
    return rehearsal_outcome.Rehearsal(
        account=account, source=str(running), target=target, unserved=unserved, kubernetes=True, server=outcome
    )


@contextlib.asynccontextmanager
async def _limits(limit_s: float) -> AsyncIterator[None]:
    """Raises Terminal after `limit_s` plus the time for copying, and for errors of the copy."""
    try:
        with rehearsal_run.silence_logs():
            async with asyncio.timeout(limit_s + REST_LIMIT_S):
                yield
    except TimeoutError:
        text = f"copying the cluster and looking through it took more than {REST_LIMIT_S:g} s"
        raise Terminal(f"{text}; rehearse on a dump of fewer namespaces", reason="RehearsalTooLong") from None
    except (StoreError, ServerError, KubeError) as error:
        # The cluster was read before: whoever fails here is the copy.
        message = error_message(error) if isinstance(error, KubeError) else str(error)
        text = f"the copy of the cluster failed: {message}"
        # The copy's server survives what it lacks memory for, and says so like any failure of its own.
        if any(sign in message for sign in rehearsal_run.WANT_OF_MEMORY):
            raise MemoryError(text) from error
        if isinstance(error, StoreError) or rehearsal_run.WANT_OF_ROOM in message:
            text += "; give the folder of temporary files (TMPDIR) more room"
        raise Terminal(text, reason="CopyFailed") from error


def _tasks_for(source: ClusterSource, release: RehearsalTarget, version: ClusterVersion) -> tuple[Task, ...]:
    """Returns the tasks of the manifests that the release has for the cluster."""
    running = Version(version.status.desired.version)
    key = ("apps", "Deployment", release.account[0], OPERATOR)
    deployment = next((unpacked(obj) for obj in source.objects if identity(obj) == key), {})
    gate = _read_config_object(source, FeatureGate, "cluster")
    filters = filters_of(release.target, running, version, gate, profile=profile_in(environment_of(deployment)))
    of_source = filters.capabilities
    if of_source is not None:
        # The release may have moved objects of the cluster into a capability, which the update then enables. The
        # cluster's objects represent the manifests of the running release: they have its annotations.
        new = {manifest.identity for manifest in release.payload.manifests}
        stored = ((Identity(*identity(obj)), obj) for obj in source.objects)
        manifests = [Manifest.of("", identity_, unpacked(obj)) for identity_, obj in stored if identity_ in new]
        running_filters = with_fields(filters, major=running.major)
        newly_enabled = implicit_capabilities_of(
            release.payload.manifests, manifests, running_filters, Version(release.target).major
        )
        of_target = with_fields(
            of_source, known=of_source.known | newly_enabled, enabled=of_source.enabled | newly_enabled
        )
        filters = with_fields(filters, capabilities=of_target)
    included = included_in(release.payload.manifests, filters)
    last = {manifest.identity: manifest for manifest in included}
    return tasks_of(tuple(manifest for manifest in included if last[manifest.identity] is manifest))


async def _outcome_of_server(
    source: ClusterSource, copy_: RealCopy, server: ServerPrograms, target: str, deadline: float
) -> rehearsal_outcome.RealServerOutcome:
    """Returns what a real API server refuses or changes of the stored objects."""
    refused, tried = await copy_.try_writes(source, deadline)
    return rehearsal_outcome.RealServerOutcome(
        version=server.version,
        wanted=target,
        objects=len(source.objects),
        tried=tried,
        refused=tuple(refused),
        read_changes=tuple(copy_.read_changes(source)),
        too_late=copy_.server.clock.monotonic() > deadline,
    )


def kubernetes_version_of(source: ClusterSource) -> Version:
    """Returns the version of Kubernetes that a cluster runs, with or without a patch version. Raises Terminal."""
    version = version_of(source.kubernetes)
    if version is None:
        text = f"the version {source.kubernetes!r} of {source.name} is not one of Kubernetes such as 1.36"
        raise Terminal(text, reason="InvalidVersion")
    return version


def cluster_version_of(source: ClusterSource) -> ClusterVersion | None:
    """Returns the ClusterVersion of a cluster, or None. Raises Terminal for one that cannot be read."""
    return _read_config_object(source, ClusterVersion, "version")


def _read_config_object(source: ClusterSource, type_: type[_T], name: str) -> _T | None:
    """Returns an object of config.openshift.io, or None. Raises Terminal if it cannot be read."""
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


def account_of(source: ClusterSource) -> rehearsal_outcome.CopyAccount:
    """Returns the contents of the copy before the rehearsal: copied and omitted objects."""
    return rehearsal_outcome.CopyAccount(
        source=source.name,
        objects=len(source.objects),
        kinds=numbers(source.objects),
        left_out=source.left_out,
        requests=source.requests,
        notes=source.notes,
    )


def _read_objects_before(
    copy_: ClusterCopy, tasks: Sequence[Task]
) -> tuple[dict[str, stored_objects.Definition], list[tuple[Identity, str]]]:
    """Returns the definitions before the release, and the objects that are deleted with what the release deletes.

    These are the objects of a deleted definition, those in a deleted namespace, and the dependents of a deleted owner.
    """
    definitions: dict[str, stored_objects.Definition] = {}
    going: list[tuple[Identity, str]] = []
    owners: dict[str, Identity] = {}
    for task in tasks:
        entry = copy_.entry(task.identity)
        if entry is None:
            continue
        if task.kind == DEFINITION:
            definition = entry.load()
            group, names = definition["spec"]["group"], definition["spec"]["names"]
            # A definition that the copy invented for objects of an unknown kind says nothing about the cluster's.
            if (group, names["kind"]) not in copy_.invented:
                definitions[task.identity.name] = stored_objects.Definition(definition)
            if task.deletes:
                reason = f"its definition {task.identity.name} goes"
                going += [
                    (Identity(group, names["kind"], each.namespace, each.name), reason)
                    for each in copy_.stored_entries(group, names["kind"], names["plural"])
                ]
        elif task.kind == _NAMESPACE and task.deletes:
            reason = f"its namespace {task.identity.name} goes"
            going += [(each, reason) for each in copy_.objects_in_namespace(task.identity.name)]
        # The dependents of any other deleted object are found by its UID in their ownerReferences.
        elif task.deletes:
            owners[str(entry.load()["metadata"].get("uid") or "")] = task.identity
    return definitions, [*going, *copy_.dependents(owners)]


Pair = tuple[rehearsal_outcome.ObjectChange, JSON | None, JSON | None]


def _change_of_task(source: ClusterSource, copy_: ClusterCopy, result: rehearsal_run.RunResult, task: Task) -> Pair:
    """Returns what became of the object of a task, and the object before and after."""
    identity = task.identity
    entry, now = result.before.get(identity), copy_.get(identity)
    # What is in for a definition that the copy lacks says nothing of what the release changes.
    before = entry.load() if entry is not None and not _is_stand_in(copy_, task) else None
    known = before is not None or source.knows(identity.group, identity.kind, identity.namespace)
    if task.deletes:
        is_deleted = before is not None and (now is None or bool(now["metadata"].get("deletionTimestamp")))
        action = rehearsal_outcome.Action.DELETE if is_deleted else rehearsal_outcome.Action.NOTHING
        return (
            rehearsal_outcome.ObjectChange(identity=identity, action=action, known=known),
            before,
            None if is_deleted else now,
        )
    if task.index in result.failures:
        return (
            rehearsal_outcome.ObjectChange(identity=identity, action=rehearsal_outcome.Action.NOTHING, known=known),
            before,
            now,
        )
    if before is None:
        return (
            rehearsal_outcome.ObjectChange(
                identity=identity,
                action=rehearsal_outcome.Action.CREATE if now is not None else rehearsal_outcome.Action.NOTHING,
                known=known,
            ),
            None,
            now,
        )
    fields = differences.changes(identity, before, now or {})
    owned = bool(before["metadata"].get("managedFields"))
    return (
        rehearsal_outcome.ObjectChange(
            identity=identity,
            action=rehearsal_outcome.Action.UPDATE if fields else rehearsal_outcome.Action.NOTHING,
            fields=fields,
            owned=owned,
        ),
        before,
        now,
    )


def _refusal_of(
    source: ClusterSource, copy_: ClusterCopy, failure: rehearsal_run.Failure, waiting: int
) -> rehearsal_outcome.Refusal:
    """Returns a failed task as a refusal; a failure that only the copy would have is "not known"."""
    task, message = failure.task, failure.message
    kind, policy = served_versions.kind_of(message)
    if isinstance(failure.error, KindMissing):
        kind = (
            rehearsal_outcome.RefusalKind.NOT_SERVED
            if (has_definitions(task.identity.group) and source.knows(*DEFINITION))
            else rehearsal_outcome.RefusalKind.NOT_KNOWN
        )
    lost_namespace = f'namespaces "{task.identity.namespace}" not found'
    unknown_namespace = lost_namespace in message and not source.knows(*_NAMESPACE)
    if (
        is_conversion_refusal(message)
        or unknown_namespace
        or failure.by_copy
        or (task.kind in copy_.invented or _is_stand_in(copy_, task))
    ):
        kind = rehearsal_outcome.RefusalKind.NOT_KNOWN
    message = f"the copy failed: {message}" if failure.by_copy else message
    return rehearsal_outcome.Refusal(
        identity=task.identity, index=task.index, kind=kind, message=message, behind=waiting, by=policy
    )


def _is_stand_in(copy_: ClusterCopy, task: Task) -> bool:
    """Returns whether the copy has only a stand-in for the definition that the task applies."""
    spec = task.manifest.object.get("spec")
    if task.kind != DEFINITION or not isinstance(spec, dict):
        return False
    names = spec.get("names")
    return isinstance(names, dict) and (str(spec.get("group")), str(names.get("kind"))) in copy_.invented


def _bindings_lacking(source: ClusterSource) -> Iterator[str]:
    """Yields the kinds of bindings of roles of which the source may lack objects."""
    return (kind for kind in served_versions.BINDINGS if not source.knows(served_versions.GROUP, kind))


def _rights_changes(
    source: ClusterSource, copy_: ClusterCopy, tasks: Sequence[Task], pairs: Sequence[Pair]
) -> Iterator[rehearsal_outcome.RightsChange]:
    """Yields the rights that each changed role or binding gives or takes."""
    all_known = not any(_bindings_lacking(source))
    bindings = [obj for kind in served_versions.BINDINGS for obj in copy_.all(served_versions.GROUP, kind)]
    roles: Mapping[Identity, JSON] = {
        Identity(served_versions.GROUP, kind, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj
        for kind in served_versions.ROLES
        for obj in copy_.all(served_versions.GROUP, kind)
    }
    for task, (change, before, after) in zip(tasks, pairs, strict=True):
        if (
            task.identity.group != served_versions.GROUP
            or change.action is rehearsal_outcome.Action.NOTHING
            or not change.known
        ):
            continue
        if task.identity.kind in served_versions.ROLES:
            rights_change = served_versions.change_of_role(task.identity, before, after, bindings)
            if rights_change is not None:
                yield replace(rights_change, all_known=all_known)
        elif task.identity.kind in served_versions.BINDINGS:
            yield from served_versions.change_of_binding(task.identity, before, after, roles)


async def _definition_outcomes(
    source: ClusterSource,
    release: RehearsalTarget,
    copy_: ClusterCopy,
    definitions: Mapping[str, stored_objects.Definition],
    tasks: Sequence[Task],
) -> list[rehearsal_outcome.DefinitionOutcome]:
    """Returns, for each definition that the release applies, its effect on the stored objects of its kind."""
    outcomes = []
    for task in tasks:
        if task.kind != DEFINITION or task.deletes:
            continue
        spec = task.manifest.object.get("spec") or {}
        try:
            group, names = spec["group"], spec["names"]
            outcome = stored_objects.try_stored_objects(
                definitions.get(task.identity.name),
                task.manifest.object,
                copy_.stored_entries(group, names["kind"], names["plural"]),
                kubernetes=release.kubernetes,
                complete=source.knows(group, names["kind"])
                or not (task.identity.name in definitions or not source.knows(*DEFINITION)),
            )
        except (KeyError, TypeError, AttributeError):
            # A definition without these fields: the server refuses it, and that is reported as a refusal.
            continue
        if isinstance(copy_, RealCopy):
            # The stored objects were tried by their schemas alone so far; the real server may know better.
            computed = {stored.identity: stored for stored in outcome.objects}
            identities = [
                Identity(group, outcome.kind, entry.namespace, entry.name)
                for entry in copy_.stored_entries(outcome.group, outcome.kind, outcome.plural)
            ]
            evaluated = [await copy_.evaluate_stored_object(computed.get(each), each) for each in identities]
            outcome = replace(outcome, objects=tuple(each for each in evaluated if each is not None))
        outcomes.append(outcome)
    return outcomes


def _unknown_kinds(
    source: ClusterSource,
    changes: Sequence[rehearsal_outcome.ObjectChange],
    definitions: Sequence[rehearsal_outcome.DefinitionOutcome],
    rights: Sequence[rehearsal_outcome.RightsChange],
) -> Iterator[rehearsal_outcome.LeftOut]:
    """Yields the kinds that are incomplete in the copy, and the resulting unknowns."""
    lacking: dict[str, int] = {}
    for change in changes:
        if not change.known:
            name = _plural_name(source, change.identity.group, change.identity.kind)
            lacking[name] = lacking.get(name, 0) + 1
    for name, count in sorted(lacking.items()):
        yield rehearsal_outcome.LeftOut(name, "whether the release creates or changes them is not known", count)
    for group, kind, plural in _ADMISSION_KINDS:
        if not source.knows(group, kind):
            name = f"{plural}.{group}" if group else plural
            yield rehearsal_outcome.LeftOut(name, "what they refuse or change of the release's writes is not known")
    if not all(change.all_known for change in rights):
        for kind in _bindings_lacking(source):
            name = _plural_name(source, served_versions.GROUP, kind)
            yield rehearsal_outcome.LeftOut(name, "who has the roles that the release changes is not known")
    for definition in definitions:
        if not definition.complete:
            text = "those that the copy does not have were not tried under the target's definition"
            yield rehearsal_outcome.LeftOut(_plural_name(source, definition.group, definition.kind), text)


def _plural_name(source: ClusterSource, group: str, kind: str) -> str:
    plural = source.plurals.get((group, kind), f"{kind.lower()}s")
    return f"{plural}.{group}" if group else plural
