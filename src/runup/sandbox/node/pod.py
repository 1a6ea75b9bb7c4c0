"""One pod on its node: from its binding to its end, each change written to its status.

Restarts back off from 1 s to 30 s (a kubelet: 10 s to 5 min), for nobody wants to wait that long in a sandbox; the
first restart comes at once, as a kubelet's does.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import structlog

from runup.api.meta_v1 import key_of
from runup.api.scheme import Resource
from runup.api.whole_v1 import WholePod
from runup.kube import calls
from runup.kube.client import Client
from runup.kube.clock import Clock
from runup.kube.errors import ApiError, Conflict, KubeError, NotFound
from runup.sandbox.node import interpreter, podspec, podstatus, process, volumes
from runup.sandbox.node.images import LocalImage, PullError
from runup.sandbox.node.podspec import BadPod, ContainerSpec
from runup.sandbox.node.podstatus import ContainerRecord, Ended, Started, Waiting
from runup.sandbox.node.runner import IMAGE_MOUNT, Bind, Launch

if TYPE_CHECKING:
    from runup.sandbox.node.agent import Place

JSON = dict[str, Any]
PODS = Resource("", "v1", "Pod", "pods", namespaced=True)
EVENTS = Resource("", "v1", "Event", "events", namespaced=True)
SERVICE_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)
_CONFIG = {
    "ConfigMap": Resource("", "v1", "ConfigMap", "configmaps", namespaced=True),
    "Secret": Resource("", "v1", "Secret", "secrets", namespaced=True),
}
FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 1.0, 30.0
TOKEN_LIFE_S = 3600
# A token is renewed when this share of its life is over, as a kubelet does.
_TOKEN_RENEWAL = 0.8
log = structlog.get_logger("node")


class PodWorker:
    """Runs a pod (`runs`), or only declares it, until it is deleted."""

    def __init__(self, pod: WholePod, client: Client, place: Place, clock: Clock, *, runs: bool) -> None:
        self._pod = pod
        self._client = client
        self._place = place
        self._clock = clock
        self._runs = runs
        self._folder = place.pod_folder(pod)
        self._stopping = asyncio.Event()
        self._publishing = asyncio.Lock()
        self._published: JSON = {}
        self._started_at = clock.now()
        self._events: set[asyncio.Task[None]] = set()
        self._inits = podspec.init_containers(pod)
        self._containers = podspec.containers(pod)
        self._records = {spec.name: _record(pod, spec) for spec in (*self._inits, *self._containers)}
        self._volumes: dict[str, Path] = {}
        self._config: dict[tuple[str, str], dict[str, bytes] | None] = {}
        self.update(pod)

    def update(self, pod: WholePod) -> None:
        """The pod as it is now; its deletion ends it."""
        self._pod = pod
        if pod.metadata.deletion_timestamp is not None:
            self._stopping.set()

    async def run(self) -> None:
        """Until the pod is over and deleted, or this is cancelled (its processes are ended, its object stays)."""
        if self._stopping.is_set() or not self._runs:
            await self._declared()
            return
        renewal = asyncio.create_task(self._keep_token())
        try:
            await self._prepare_until_ready()
            if await self._initialized():
                async with asyncio.TaskGroup() as group:
                    for spec in self._containers:
                        group.create_task(self._keep_running(spec))
            await self._stopping.wait()
            await self._delete()
        finally:
            renewal.cancel()

    async def _initialized(self) -> bool:
        """Run the init containers one after the other; whether the others may start."""
        for spec in self._inits:
            told = self._records[spec.name].state
            ended = told if isinstance(told, Ended) and told.exit_code == 0 else None
            ended = ended or await self._keep_running(spec, until_success=True)
            if ended is None or ended.exit_code != 0:
                return False
        return not self._stopping.is_set()

    async def _declared(self) -> None:
        if not self._stopping.is_set() and self._place.declare_others and not podstatus.is_ours(self._pod):
            now = self._clock.now()
            for spec in self._containers:
                record = self._records[spec.name]
                container_id = f"{podstatus.DECLARED}{self._pod.metadata.uid}/{spec.name}"
                self._records[spec.name] = record.with_state(Started(now), ready=True, container_id=container_id)
            await self._publish()
        await self._stopping.wait()
        await self._delete()

    async def _prepare_until_ready(self) -> None:
        """Volumes and credentials, tried again until they are there."""
        backoff = FIRST_BACKOFF_S
        while not self._stopping.is_set():
            try:
                await self._prepare()
            except BadPod as problem:
                await self._wait_with(problem.reason, problem.message)
            except KubeError as error:
                await self._wait_with("ContainerCreating", f"MountVolume.SetUp failed: {error}")
            else:
                return
            await self._pause(backoff)
            backoff = min(backoff * 2, LONGEST_BACKOFF_S)

    async def _prepare(self) -> None:
        for kind, name in sorted(podspec.config_references(self._pod)):
            self._config[kind, name] = await self._read_config(kind, name)
        if podspec.wants_token(self._pod):
            await self._write_account()
        host = self._place.host_path(self._pod.spec["nodeName"], "/")
        for volume in self._pod.spec.get("volumes") or ():
            self._volumes[volume["name"]] = volumes.prepare(
                volume, self._folder, host=host, config=self._data, account=self._account
            )

    async def _read_config(self, kind: str, name: str) -> dict[str, bytes] | None:
        try:
            found = await self._client.send(calls.get_raw(_CONFIG[kind], name, self._pod.metadata.namespace))
        except NotFound:
            return None
        return volumes.data_of({"kind": kind, **found})

    def _data(self, kind: str, name: str) -> Mapping[str, bytes] | None:
        return self._config.get((kind, name))

    def _texts(self, kind: str, name: str) -> Mapping[str, str] | None:
        data = self._data(kind, name)
        return None if data is None else {key: value.decode(errors="replace") for key, value in data.items()}

    # -- the ServiceAccount's credentials ------------------------------------------------------------------------------

    @property
    def _account(self) -> Path:
        return self._folder / "serviceaccount"

    async def _write_account(self) -> None:
        name, metadata = podspec.service_account(self._pod), self._pod.metadata
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": {"namespace": metadata.namespace},
            "spec": {"expirationSeconds": TOKEN_LIFE_S},
        }
        answer = await self._client.send(calls.create(SERVICE_ACCOUNTS, body, name=name, subresource="token"))
        ca = self._place.ca.read_bytes()
        volumes.write(self._account / "token", answer["status"]["token"].encode(), mode=0o600)
        volumes.write(self._account / "ca.crt", ca)
        volumes.write(self._account / "namespace", metadata.namespace.encode())
        volumes.write(self._account / "kubeconfig", self._kubeconfig(), mode=0o600)

    def _kubeconfig(self) -> bytes:
        """For the runner that mounts nothing: the same credentials by paths on this host."""
        cluster = {"server": self._place.server, "certificate-authority": str(self._account / "ca.crt")}
        context = {"cluster": "sandbox", "user": "pod", "namespace": self._pod.metadata.namespace}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "pod",
            "clusters": [{"name": "sandbox", "cluster": cluster}],
            "users": [{"name": "pod", "user": {"tokenFile": str(self._account / "token")}}],
            "contexts": [{"name": "pod", "context": context}],
        }
        return json.dumps(document, indent=2).encode()

    async def _keep_token(self) -> None:
        while podspec.wants_token(self._pod):
            await self._clock.sleep(TOKEN_LIFE_S * _TOKEN_RENEWAL)
            with suppress(KubeError):
                await self._write_account()

    # -- containers ----------------------------------------------------------------------------------------------------

    async def _keep_running(self, spec: ContainerSpec, *, until_success: bool = False) -> Ended | None:
        """Run it as often as the restart policy says; how it ended for good, None where the pod was stopped."""
        backoff = FIRST_BACKOFF_S
        first = True
        while not self._stopping.is_set():
            try:
                image = await self._pulled(spec)
                ended = await self._run_once(spec, image)
            except PullError as error:
                await self._not_pulled(spec, error, first=first)
            except BadPod as problem:
                await self._set(spec, Waiting(problem.reason, problem.message))
            except OSError as error:
                await self._set(spec, Waiting("CreateContainerError", str(error)))
                self._event("Warning", "Failed", f"Error: {error}", spec)
            else:
                policy = podstatus.restart_policy(self._pod)
                over = until_success and ended.exit_code == 0
                if over or self._stopping.is_set() or not podstatus.restarts(policy, ended.exit_code):
                    return ended
                if first:
                    first = False
                    continue
                await self._back_off(spec, backoff)
            first = False
            await self._pause(backoff)
            backoff = min(backoff * 2, LONGEST_BACKOFF_S)
        return None

    async def _pulled(self, spec: ContainerSpec) -> LocalImage:
        self._event("Normal", "Pulling", f'Pulling image "{spec.image}"', spec)
        image = await asyncio.to_thread(self._place.images.pull, spec.image)
        self._event("Normal", "Pulled", f'Successfully pulled image "{spec.image}"', spec)
        return image

    async def _not_pulled(self, spec: ContainerSpec, error: PullError, *, first: bool) -> None:
        if first:
            await self._set(spec, Waiting("ErrImagePull", error.message))
            self._event("Warning", "Failed", f'Failed to pull image "{spec.image}": {error.message}', spec)
        else:
            message = f'Back-off pulling image "{spec.image}": ErrImagePull: {error.message}'
            await self._set(spec, Waiting("ImagePullBackOff", message))
            self._event("Normal", "BackOff", f'Back-off pulling image "{spec.image}"', spec)

    async def _back_off(self, spec: ContainerSpec, seconds: float) -> None:
        metadata = self._pod.metadata
        where = f"pod={metadata.name}_{metadata.namespace}({metadata.uid})"
        message = f"back-off {seconds:g}s restarting failed container={spec.name} {where}"
        await self._set(spec, Waiting("CrashLoopBackOff", message))
        text = f"Back-off restarting failed container {spec.name} in pod {metadata.name}_{metadata.namespace}"
        self._event("Warning", "BackOff", text, spec)

    async def _run_once(self, spec: ContainerSpec, image: LocalImage) -> Ended:
        record = self._records[spec.name]
        again = record.last is not None or isinstance(record.state, Ended)
        launch = self._launch(spec, image, record.restarts + again)
        log_file = self._folder / f"{spec.name}.log"
        log_start = log_file.stat().st_size if log_file.exists() else 0
        self._event("Normal", "Created", f"Created container: {spec.name}", spec)
        container = await process.start(self._place.runner, launch, log_file, self._clock)
        waiter = asyncio.create_task(container.wait())
        try:
            started = self._clock.now()
            ids = {"image_id": image.digest, "container_id": f"{podstatus.RAN}{launch.id}"}
            last = record.state if isinstance(record.state, Ended) else record.last
            running = record.with_state(Started(started), ready=spec.readiness is None, **ids)
            await self._put(spec, replace(running, restarts=record.restarts + again, last=last))
            self._event("Normal", "Started", f"Started container {spec.name}", spec)
            exit_ = await self._until_exit(spec, container, waiter)
        except asyncio.CancelledError:
            await self._end(container, waiter, 0)
            raise
        message = process.termination_message(
            launch.work / "termination-log", log_file, log_start, policy=spec.message_policy, exit_code=exit_.code
        )
        ended = Ended(exit_.code, exit_.reason, message, started, self._clock.now())
        await self._set(spec, ended)
        return ended

    async def _until_exit(
        self, spec: ContainerSpec, container: process.RunningContainer, waiter: asyncio.Task[process.Exit]
    ) -> process.Exit:
        stopping = asyncio.create_task(self._stopping.wait())
        probing = asyncio.create_task(self._probe(spec))
        try:
            await asyncio.wait({waiter, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not waiter.done():
                self._event("Normal", "Killing", f"Stopping container {spec.name}", spec)
                await self._end(container, waiter, podspec.grace_s(self._pod, now=self._clock.now()))
            return await waiter
        finally:
            stopping.cancel()
            probing.cancel()

    async def _end(
        self, container: process.RunningContainer, waiter: asyncio.Task[process.Exit], grace_s: float
    ) -> None:
        await asyncio.shield(container.stop(grace_s))
        with suppress(asyncio.CancelledError):
            await asyncio.shield(waiter)

    def _launch(self, spec: ContainerSpec, image: LocalImage, number: int) -> Launch:
        work = self._folder / "work" / f"{spec.name}-{number}"
        mounts = self._place.runner.mounts
        seen = volumes.binds(spec, self._volumes, self._account if podspec.wants_token(self._pod) else None)
        if mounts:
            message = work / "termination-log"
            message.parent.mkdir(parents=True, exist_ok=True)
            message.touch()
            seen = (*seen, Bind(message, spec.message_path))
        entry = spec.command or image.entrypoint
        if not entry:
            raise BadPod("no command specified", reason="CreateContainerError")
        arguments = (*entry[1:], *(spec.args or (() if spec.command else image.command)))
        env = self._environment(spec, image)
        return Launch(
            id=f"{self._pod.metadata.uid}-{spec.name}-{number}",
            argv=_argv(image, entry[0], tuple(podspec.expand(each, env) for each in arguments)),
            image=image.files,
            work=work,
            env=env,
            cwd=spec.working_dir or image.working_dir or "/",
            binds=seen,
            memory_bytes=spec.memory_bytes,
            read_only_root=spec.read_only_root,
        )

    def _environment(self, spec: ContainerSpec, image: LocalImage) -> dict[str, str]:
        server = urlsplit(self._place.server)
        env = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/tmp",  # noqa: S108 -- the container's own
            "HOSTNAME": self._pod.metadata.name,
            "KUBERNETES_SERVICE_HOST": server.hostname or "",
            "KUBERNETES_SERVICE_PORT": str(server.port or 443),
            "PAYLOAD_OVERRIDE": IMAGE_MOUNT,
            **interpreter.environment(),
            **image.env,
            **podspec.environment(self._pod, spec, host_ip=self._place.host_ip, lookup=self._texts),
        }
        if podspec.wants_token(self._pod) and not self._place.runner.mounts:
            env["KUBECONFIG"] = f"{podspec.SERVICE_ACCOUNT_MOUNT}/kubeconfig"
        return env

    async def _probe(self, spec: ContainerSpec) -> None:
        """Ready when the readiness probe says so; without one it was ready when it started."""
        if spec.readiness is None:
            return
        period = float(spec.readiness.get("periodSeconds") or 10)
        await self._clock.sleep(float(spec.readiness.get("initialDelaySeconds") or 0))
        while True:
            ready = await _answers(spec.readiness, self._place.host_ip)
            record = self._records[spec.name]
            if isinstance(record.state, Started) and record.ready != ready:
                await self._set(spec, record.state, ready=ready)
            await self._clock.sleep(period if ready else min(period, 1.0))

    # -- what the cluster sees -----------------------------------------------------------------------------------------

    async def _wait_with(self, reason: str, message: str) -> None:
        for name, record in self._records.items():
            self._records[name] = record.with_state(Waiting(reason, message))
        await self._publish()

    async def _set(self, spec: ContainerSpec, state: podstatus.State, **changes: Any) -> None:
        record = self._records[spec.name]
        if isinstance(state, Waiting) and isinstance(record.state, Ended):
            changes["last"] = record.state
        await self._put(spec, record.with_state(state, **changes))

    async def _put(self, spec: ContainerSpec, record: ContainerRecord) -> None:
        self._records[spec.name] = record
        await self._publish()

    async def _publish(self) -> None:
        """Write the status if it changed; tried again until it is written or the pod is gone."""
        async with self._publishing:
            while True:
                records = [self._records[spec.name] for spec in self._containers]
                inits = [self._records[spec.name] for spec in self._inits]
                status = podstatus.status(
                    self._pod,
                    records,
                    inits,
                    now=self._clock.now(),
                    host_ip=self._place.host_ip,
                    started_at=self._started_at,
                )
                if status == self._published:
                    return
                try:
                    await self._client.send(self._patch(status))
                    self._published = status
                except (NotFound, Conflict):
                    return
                except ApiError:
                    log.exception("status refused", pod=str(key_of(self._pod)))
                    return
                except KubeError:
                    await self._clock.sleep(0.5)

    def _patch(self, status: JSON) -> Any:
        metadata = self._pod.metadata
        body = {"metadata": {"uid": metadata.uid}, "status": status}
        return calls.merge_patch(PODS, metadata.name, body, metadata.namespace, subresource="status")

    async def _delete(self) -> None:
        metadata = self._pod.metadata
        while True:
            try:
                await self._client.send(
                    calls.delete(PODS, metadata.name, metadata.namespace, uid=metadata.uid, grace_period_s=0)
                )
            except (NotFound, Conflict):
                return
            except KubeError:
                await self._clock.sleep(0.5)
            else:
                return

    def _event(self, type_: str, reason: str, message: str, spec: ContainerSpec) -> None:
        """Tell of it, without making the pod wait for the telling."""
        metadata, now = self._pod.metadata, self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        involved = {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": metadata.namespace,
            "name": metadata.name,
            "uid": metadata.uid,
            "fieldPath": f"spec.{'initContainers' if spec in self._inits else 'containers'}{{{spec.name}}}",
        }
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{metadata.name}.", "namespace": metadata.namespace},
            "involvedObject": involved,
            "type": type_,
            "reason": reason,
            "message": message,
            "source": {"component": "kubelet", "host": self._pod.spec.get("nodeName", "")},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        telling = asyncio.create_task(self._tell(event))
        self._events.add(telling)
        telling.add_done_callback(self._events.discard)

    async def _tell(self, event: JSON) -> None:
        with suppress(KubeError):
            await self._client.send(calls.create(EVENTS, event))

    async def _pause(self, seconds: float) -> None:
        """Wait, but not longer than the pod lives."""
        sleeper = asyncio.create_task(self._clock.sleep(seconds))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({sleeper, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeper.cancel()
            stopping.cancel()


def _argv(image: LocalImage, command: str, arguments: tuple[str, ...]) -> tuple[str, ...]:
    """The command in the image; a thin image also has the host's programs. Raises BadPod where there is none."""
    script = image.files / command.lstrip("/")
    if command.startswith("/") and script.is_file():
        return interpreter.argv_for(script, f"{IMAGE_MOUNT}{command}", arguments)
    found = shutil.which(command) if image.thin else None
    if found is None:
        why = "no such file or directory" if "/" in command else "executable file not found in $PATH"
        raise BadPod(f'exec: "{command}": {why}', reason="RunContainerError")
    return (found, *arguments)


def _record(pod: WholePod, spec: ContainerSpec) -> ContainerRecord:
    """A fresh record, or one that goes on counting where an agent before this one stopped."""
    for told in (*(pod.status.get("initContainerStatuses") or ()), *(pod.status.get("containerStatuses") or ())):
        if told.get("name") == spec.name and str(told.get("containerID", "")).startswith(podstatus.RAN):
            lost = Ended(137, "ContainerStatusUnknown", "The container could not be located when the pod was resumed")
            return ContainerRecord(spec.name, spec.image, state=lost, restarts=int(told.get("restartCount") or 0))
    return ContainerRecord(spec.name, spec.image)


async def _answers(probe: JSON, host: str) -> bool:
    """Whether the port of an httpGet or tcpSocket probe answers; a probe of another form counts as passed."""
    target = probe.get("httpGet") or probe.get("tcpSocket")
    if not target:
        return True
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(host, int(target["port"])), 1)
    except (OSError, TimeoutError, ValueError):
        return False
    try:
        if "httpGet" not in probe:
            return True
        writer.write(f"GET {target.get('path') or '/'} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        head = await asyncio.wait_for(reader.readline(), 1)
        return head.split()[1][:1] in {b"2", b"3"}
    except (OSError, TimeoutError, IndexError):
        return False
    finally:
        writer.close()
