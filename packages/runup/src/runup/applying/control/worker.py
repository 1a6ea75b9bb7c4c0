"""Applies the release that ClusterVersion's reconcile asks for, one at a time, and reports its progress.

`want` is called from the reconcile's plan; asking again for the release that is being applied changes nothing.
`progress` is observed by the next reconcile, which is woken when it changes: at once for a state or a failure, else
every few seconds, because every reported number costs a write of the status.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog
from msgspec.structs import replace as with_fields

from kubekit.api.codec import DecodeError
from kubekit.kube.api_errors import KubeError
from kubekit.kube.cache import Cache
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock, SteadyClock
from runup.api.config_v1 import ClusterOperator
from runup.applying.control.cluster_values import ClusterValuesWatcher
from runup.applying.control.object_applier import Memory, ObjectApplier, ObjectDeleter, digests_of
from runup.applying.control.object_requests import ResourceDiscovery
from runup.applying.control.object_watches import ObjectWatches
from runup.applying.control.release_run import Run, trim
from runup.applying.control.task_errors import Notices
from runup.applying.decide.health import DEFINITION
from runup.applying.decide.progress import ApplyReason, Progress, WantedRelease
from runup.applying.decide.task import Task, tasks_of
from runup.process.leader_election import cancel
from runup.process.threads import in_thread
from runup.release.decide.capabilities import KNOWN, Capabilities
from runup.release.decide.manifest import Identity, Manifest
from runup.release.decide.payload import Payload, included_in, version_hash

log = structlog.get_logger("payload")
# Seconds between two reports of progress that are not urgent, and until a run that ended by a bug is started again.
PROGRESS_INTERVAL_S = 3.0
RESTART_DELAY_S = 5.0


@dataclass(frozen=True, slots=True)
class Work:
    """A release to apply.

    `state` counts only for the first work of a process: later works are updates, unless `Initializing` is asked for.
    """

    wanted: WantedRelease
    state: ApplyReason
    payload: Payload
    # Manifests with an unknown capability are left out only of the operator's own release.
    own: bool = True


class Worker:
    """The worker that applies releases. `image` is the running release's.

    `operator` is namespace and name of the operator's own Deployment. `wake` wakes the reconcile, and `hurry` is called
    with each group and kind that is newly served. `failed_attempts` counts by version. `work` is what was asked for
    last; `latest` becomes `progress` within `PROGRESS_INTERVAL_S`.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        operators: Cache[ClusterOperator],
        operator: tuple[str, str],
        image: str,
        wake: Callable[[], None],
        hurry: Callable[[str, str], None] = lambda _group, _kind: None,
    ) -> None:
        self.progress = Progress()
        self._client = client
        self._clock = clock
        # How long an operator is waited for is a matter of seconds, and the machine's clock may be set meanwhile.
        self.steady_clock = SteadyClock(clock)
        self._operators = operators
        self._image = image
        self._wake = wake
        self._hurry = hurry
        self._kinds = ResourceDiscovery(client)
        self._tracking = ObjectWatches(client, clock, self.changed)
        self._deleting = ObjectDeleter(client, clock, self.notify)
        self._gives = ClusterValuesWatcher(client, clock, operator, self.cluster_values_changed)
        self._memory = Memory()
        self._notices = Notices(client, clock)
        self._since: dict[str, datetime] = {}
        self.work: Work | None = None
        self._new = asyncio.Event()
        self._urgent = asyncio.Event()
        self._news = asyncio.Event()
        self._run: Run | None = None
        self._applier: ObjectApplier | None = None
        self.latest = Progress()
        self.failed_attempts: Counter[str] = Counter()
        operators.add_listener(self._operator_changed)
        operators.add_state_listener(self._operators_listed)

    def want(self, work: Work) -> None:
        """Applies `work` from now on; does nothing if it is already being applied."""
        if self.work is not None and self.work.wanted == work.wanted:
            return
        state = work.state if self.work is None else self._state_after(work.state)
        log.info("wanted", version=work.wanted.version, image=work.wanted.image, state=str(state))
        self.work = replace(work, state=state)
        # Events of the run that is being cancelled must not change this one's progress.
        self._run = None
        self.latest = Progress(wanted=work.wanted, state=state)
        self.notify(True)
        self._new.set()

    async def run(self) -> None:
        """Applies the requested work until cancelled."""
        publishing = asyncio.create_task(self.publish())
        if self.work is not None:
            self._new.set()
        try:
            while True:
                await self._new.wait()
                self._new.clear()
                await self._apply_until_new_work()
        finally:
            await cancel([publishing])
            await self._gives.close()
            await self._deleting.close()
            await self._tracking.close()

    @staticmethod
    def _state_after(requested: ApplyReason) -> ApplyReason:
        """Returns the state of work that follows other work: an installation continues, all else is an update."""
        return requested if requested is ApplyReason.INITIALIZING else ApplyReason.UPDATING

    async def _apply_until_new_work(self) -> None:
        """Applies the current work until there is another; restarts it after `RESTART_DELAY_S` if a bug ended it."""
        work = self.work
        assert work is not None
        running = asyncio.create_task(self._apply(work))
        new = asyncio.create_task(self._until_new())
        try:
            await asyncio.wait((running, new), return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                return
            error = running.exception()
            log.error("applying ended, and is started again", exc_info=error)
            await self._clock.sleep(RESTART_DELAY_S)
            self._new.set()
        finally:
            self._run = None
            await cancel([running, new])

    async def _until_new(self) -> None:
        await self._new.wait()

    async def _apply(self, work: Work) -> None:
        """Applies `work` and keeps it applied until cancelled; ends if other work was requested."""
        manifests, release_hash = await in_thread(lambda: chosen_manifests(work), "choose manifests")
        tasks = tasks_of(manifests)
        self._since.clear()
        self._deleting.forget()
        self.latest = replace(self.latest, version_hash=release_hash, total=len(tasks))
        self.notify(False)
        self._gives.wanted(tasks, work.wanted.owner_uid)
        self._notices.cluster_version_uid = work.wanted.owner_uid
        await self._gives.settled()
        cluster_values = self._gives.cluster_values
        digests = await in_thread(lambda: digests_of(tasks, cluster_values), "digests")
        trim()
        self._kinds.define(manifests)
        # The lists of all kinds come before the first write, so that objects in place cost no request.
        await self.follow(tasks)
        await self._tracking.unfollow_singles(but={task.identity for task in tasks if task.create_only})
        self._applier = ObjectApplier(
            tasks,
            client=self._client,
            kinds=self._kinds,
            tracking=self._tracking,
            deleting=self._deleting,
            operators=self._operators,
            memory=self._memory,
            digests=digests,
            cluster_values=lambda: self._gives.cluster_values,
            notices=self._notices,
            image=self._image,
        )
        # Other work may have been asked for during the waits above.
        if self.work is not work:
            return
        self._run = Run(
            tasks,
            work.state,
            applier=self._applier,
            clock=self.steady_clock,
            since=self._since,
            on_result=self.notify,
            served=self.served,
            failed=lambda: self.failed_attempts.update([work.wanted.version]),
        )
        await self._run.go()

    async def follow(self, tasks: Sequence[Task]) -> None:
        """Watches every kind that is served, and waits for the lists: objects in place need not be applied.

        CustomResourceDefinitions come first, because they say which other kinds are served.
        """
        kinds = {(str(task.manifest.object.get("apiVersion") or "v1"), task.identity.kind) for task in tasks}
        definitions = [kind for kind in kinds if kind[1] == DEFINITION[1]]
        await asyncio.gather(*(self._follow_kind(*kind) for kind in definitions))
        await asyncio.gather(*(self._follow_kind(*kind) for kind in kinds if kind not in definitions))

    async def _follow_kind(self, api_version: str, kind: str) -> None:
        """Starts to watch one kind of the release; one that is not served yet is tried again once it is defined."""
        group = api_version.rpartition("/")[0]
        try:
            resource = await self._kinds.resource(api_version, kind)
        except (KubeError, DecodeError) as error:
            log.warning("a kind could not be looked up", kind=kind, api_version=api_version, error=str(error))
            return
        if resource is None:
            self._kinds.forget(api_version)
            return
        if self._kinds.defines(group, kind) and not self._is_defined(resource.plural, group):
            return  # watched once its definition is established
        await self._tracking.settled(self._tracking.follow(resource))

    def _is_defined(self, plural: str, group: str) -> bool:
        return self._tracking.get(Identity(*DEFINITION, "", f"{plural}.{group}")) is not None

    def served(self, group: str, kind: str) -> None:
        """Lists a kind at once that the release has defined, in our own watches and in those behind `hurry`."""
        self._tracking.hurry(group, kind)
        self._hurry(group, kind)

    def changed(self, identity: Identity) -> None:
        """Passes on that an object changed."""
        if self._run is not None:
            self._run.changed(identity)

    def _operator_changed(self, _change: object, old: ClusterOperator | None, new: ClusterOperator | None) -> None:
        obj = new or old
        if obj is not None:
            self.changed(Identity("config.openshift.io", "ClusterOperator", "", obj.metadata.name))

    def _operators_listed(self) -> None:
        if self._run is not None:
            self._run.operators_listed()

    def cluster_values_changed(self) -> None:
        """Passes on that values of the cluster changed that manifests are rendered with."""
        if self._run is not None and self._applier is not None:
            self._applier.update_digests()
            self._run.cluster_values_changed()

    def notify(self, urgent: bool) -> None:
        """Takes over the run's progress into `latest`, which `publish` publishes, at once if `urgent`."""
        run = self._run
        if run is not None:
            self.latest = replace(
                self.latest,
                state=run.state,
                done=run.done,
                completed=run.completed,
                problems=run.problems,
            )
        self.latest = replace(self.latest, deleting=self._deleting.pending)
        if urgent:
            self._urgent.set()
        self._news.set()

    async def publish(self) -> None:
        """Publishes new progress and wakes the reconcile: at once if urgent, else every `PROGRESS_INTERVAL_S`."""
        while True:
            await self._news.wait()
            self._news.clear()
            if self.latest != self.progress:
                self.progress = self.latest
                self._wake()
            waits = [
                asyncio.ensure_future(self._clock.sleep(PROGRESS_INTERVAL_S)),
                asyncio.ensure_future(self._urgent.wait()),
            ]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait_task in waits:
                    wait_task.cancel()
            self._urgent.clear()


def chosen_manifests(work: Work) -> tuple[tuple[Manifest, ...], str]:
    """Returns the manifests to apply, and the hash over those that the cluster gets whatever is turned off in it.

    If two manifests are of one object, the last one counts, as if both were applied one after the other.
    """
    filters = work.wanted.filters
    every_capability = Capabilities(frozenset(KNOWN), frozenset(KNOWN)) if work.own else None
    # The hash must not change when an administrator enables a capability or sets an override.
    loaded = included_in(work.payload.manifests, with_fields(filters, capabilities=every_capability, overrides=()))
    applied = included_in(loaded, filters)
    last_by_identity = {manifest.identity: manifest for manifest in applied}
    return tuple(manifest for manifest in applied if last_by_identity[manifest.identity] is manifest), version_hash(
        loaded
    )
