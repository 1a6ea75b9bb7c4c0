"""`pods/log`: a container's output, from the files that the node agent keeps in the data folder.

A followed log ends once the container has ended and its whole output was sent, as a kubelet's does.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from kubekit.kube.clock import Clock
from kubesandbox.apiserver import status_errors
from kubesandbox.apiserver.http.messages import Request, Response, Target, is_true
from kubesandbox.apiserver.metadata import JSON, meta
from kubesandbox.apiserver.objects.rest import Rest
from kubesandbox.apiserver.served_kinds import Kind

# Interval between two reads of a followed file, in seconds.
_LOOK_S = 0.2
_LISTS = (("containers", "containerStatuses"), ("initContainers", "initContainerStatuses"))


class PodLogs:
    """The handler of logs; `folder` holds NAMESPACE_NAME_UID/CONTAINER.log."""

    def __init__(self, rest: Rest, clock: Clock, folder: Path) -> None:
        self._rest, self._clock, self._folder = rest, clock, folder

    async def serve(self, request: Request, target: Target, kind: Kind) -> Response:
        """Returns the whole log, its tail, or a stream that follows it. Raises ApiError 400 or 404."""
        pod = self._rest.entry(kind, target.namespace, target.name).load()
        query = request.query
        container = _choose_container(pod, query.get("container", ""))
        follow = is_true(query.get("follow", ""))
        if is_true(query.get("previous", "")):
            raise status_errors.bad_request(
                f'previous terminated container "{container}" in pod "{target.name}" not found'
            )
        file = self._folder / f"{meta(pod)['namespace']}_{target.name}_{meta(pod)['uid']}" / f"{container}.log"
        waiting = (_container_status(pod, container).get("state") or {}).get("waiting")
        if not file.exists() and waiting and (reason := waiting.get("reason", "ContainerCreating")):
            raise status_errors.bad_request(
                f'container "{container}" in pod "{target.name}" is waiting to start: {reason}'
            )
        data, end = await asyncio.to_thread(_read_from, file, 0)
        count = query.get("tailLines", "")
        if count.isdigit():
            lines = data.splitlines(keepends=True)
            data = b"".join(lines[max(0, len(lines) - int(count)) :])
        if follow:

            def is_over() -> bool:
                """Returns whether nothing more is written: the container has ended, or the pod is gone."""
                entry = self._rest.store.get(kind.storage, target.namespace, target.name)
                if entry is None:
                    return True
                pod = entry.load()
                ended = "terminated" in (_container_status(pod, container).get("state") or {})
                return ended or (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}

            stream = self._follow_log(file, data, end, is_over=is_over)
            return Response(content_type="text/plain", stream=stream)
        limit = query.get("limitBytes", "")
        return Response(body=data[: int(limit)] if limit.isdigit() else data, content_type="text/plain")

    async def _follow_log(
        self, file: Path, data: bytes, at: int, *, is_over: Callable[[], bool]
    ) -> AsyncIterator[bytes]:
        """Yields the log from `at` (bytes) on until `is_over`; `data` comes first."""
        while True:
            # Checked before reading, so that the last read includes everything written until the end.
            over = is_over()
            more, at = await asyncio.to_thread(_read_from, file, at)
            if data or more:
                yield data + more
                data = b""
            if over:
                return
            await self._clock.sleep(_LOOK_S)


def _choose_container(pod: JSON, container: str) -> str:
    """Returns the container whose log is meant. Raises ApiError 400 if the name is unknown, or needed."""
    name, spec = meta(pod)["name"], pod.get("spec") or {}
    names = {field: [container_entry["name"] for container_entry in spec.get(field) or ()] for field, _ in _LISTS}
    if container:
        if not any(container in group for group in names.values()):
            raise status_errors.bad_request(f"container {container} is not valid for pod {name}")
        return container
    main = names["containers"]
    if len(main) == 1:
        only: str = main[0]
        return only
    choice = f"choose one of: [{' '.join(main)}]"
    if names["initContainers"]:
        choice += f" or one of the init containers: [{' '.join(names['initContainers'])}]"
    raise status_errors.bad_request(f"a container name must be specified for pod {name}, {choice}")


def _container_status(pod: JSON, container: str) -> JSON:
    """Returns the status of a container, of whichever list; empty if it has none yet."""
    status = pod.get("status") or {}
    statuses = (one for _, field in _LISTS for one in status.get(field) or () if one.get("name") == container)
    found: JSON = next(statuses, {})
    return found


def _read_from(file: Path, start: int) -> tuple[bytes, int]:
    """Returns the file's contents from `start` and their end; a file that became shorter is read from its beginning."""
    try:
        with file.open("rb") as log:
            if log.seek(0, 2) < start:
                start = 0
            log.seek(start)
            data = log.read()
            return data, start + len(data)
    except OSError:
        return b"", start
