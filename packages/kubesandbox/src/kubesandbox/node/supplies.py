"""The inputs of a pod's containers: volumes and credentials once, the environment at each start.

A ConfigMap that is created or changed later is in the next start's environment, as with a kubelet. While the API server
is unreachable the last read data is used, so that a container that crashes then is still restarted.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from kubekit.api.codec import DecodeError
from kubekit.api.scheme import Resource
from kubekit.api.whole_v1 import WholePod
from kubekit.kube import calls
from kubekit.kube.api_errors import ApiError, KubeError, NotFound
from kubekit.kube.client import Client
from kubekit.kube.clock import Clock
from kubekit.lang.files import remove_tree
from kubesandbox.node import pod_volumes, podspec
from kubesandbox.node.pod_volumes import write_atomically
from kubesandbox.node.runner_interface import IMAGE_MOUNT, Bind, Launch, argv_for, interpreter_environment
from kubesandbox.node.settings import NodeSettings
from kubesandbox.node.unpacked_images import LocalImage

_CONFIG = {
    "ConfigMap": Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True),
    "Secret": Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True),
}
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SERVICE_ACCOUNTS = Resource(group="", version="v1", kind="ServiceAccount", plural="serviceaccounts", namespaced=True)
TOKEN_LIFE_S = 3600
# The share of a token's lifetime after which it is renewed, as a kubelet does (pkg/kubelet/token).
_RENEWAL = 0.8


class StartError(Exception):
    """A command that cannot be executed in the created container; runtimes count that as a failed run."""

    exit_code = 128


class Supplies:
    """The volumes, configuration and credentials of one pod."""

    def __init__(self, pod: WholePod, client: Client, place: NodeSettings) -> None:
        # The pod's own setting; that of its ServiceAccount is not read.
        self._wants_token = pod.spec.get("automountServiceAccountToken") is not False
        # Whether the pod's object is gone, so that its containers get no grace period.
        self.gone = False
        self._pod, self._client, self._place = pod, client, place
        self._folder = place.pod_folder(pod)
        self._account = self._folder / "serviceaccount"
        self._volumes: dict[str, Path] = {}
        self._config: dict[tuple[str, str], dict[str, bytes] | None] = {}

    async def prepare(self) -> None:
        """Prepares credentials and volumes; may be called again. Raises BadPod and KubeError."""
        volumes = self._pod.spec.get("volumes") or ()
        await self._read_references(
            {reference for volume in volumes for reference in pod_volumes.volume_references(volume)}
        )
        await self._write_account()
        sources = pod_volumes.Sources(
            pod=self._pod,
            folder=self._folder,
            host=self._place.host_path(self._pod.spec["nodeName"], "/"),
            account=self._account,
            host_ip=self._place.host_ip,
            lookup=self._data_of,
        )
        for volume in volumes:
            self._volumes[volume["name"]] = pod_volumes.prepare_volume(volume, sources)

    async def launch(self, spec: podspec.ContainerSpec, image: LocalImage, number: int) -> Launch:
        """Returns the start of a container, its `number` counting from 0. Raises BadPod and StartError."""
        try:
            await self._read_references(pod_volumes.environment_references(spec))
        except ApiError as error:
            raise podspec.BadPod(str(error)) from error
        except KubeError:
            pass  # unreachable: `_data_of` has what was read last, and nothing for what was never read
        server = urlsplit(self._place.server)
        env = {
            "PATH": _PATH,
            "HOME": "/tmp",  # noqa: S108 -- the container's own
            "HOSTNAME": self._pod.metadata.name,
            "KUBERNETES_SERVICE_HOST": server.hostname or "",
            "KUBERNETES_SERVICE_PORT": str(server.port or 443),
            "PAYLOAD_OVERRIDE": IMAGE_MOUNT,
            **interpreter_environment(),
            **image.env,
            **pod_volumes.container_environment(self._pod, spec, host_ip=self._place.host_ip, lookup=self._data_of),
        }
        if self._wants_token and not self._place.runner.mounts:
            env["KUBECONFIG"] = f"{podspec.SERVICE_ACCOUNT_MOUNT}/kubeconfig"
        argv = _command_line(spec, image, env)
        work = self._folder / "work" / f"{spec.name}-{number}"
        account = self._account if self._wants_token else None
        binds = pod_volumes.container_binds(spec, self._volumes, account, env)
        message = work / "termination-log"
        write_atomically(message, b"", 0o666)
        return Launch(
            id=f"{self._pod.metadata.uid}-{spec.name}-{number}",
            argv=argv,
            image=image.files,
            work=work,
            env=env,
            cwd=spec.working_dir or image.working_dir or "/",
            binds=(*binds, Bind(message, spec.message_path)),
            memory_bytes=spec.memory_bytes,
            read_only_root=spec.read_only_root,
        )

    async def keep_token(self, clock: Clock) -> None:
        """Renews the token until cancelled; after a failure the old one stays until the next attempt."""
        while self._wants_token:
            await clock.sleep(TOKEN_LIFE_S * _RENEWAL)
            with suppress(KubeError, DecodeError, OSError):
                await self._write_account()

    async def _write_account(self) -> None:
        """Requests a token that is bound to the pod, and writes the files of its ServiceAccount. Raises KubeError."""
        if not self._wants_token:
            return
        metadata, name = self._pod.metadata, podspec.service_account(self._pod)
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "metadata": {"namespace": metadata.namespace},
            "spec": {
                "expirationSeconds": TOKEN_LIFE_S,
                "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": metadata.name, "uid": metadata.uid},
            },
        }
        answer = await self._client.send(calls.create(SERVICE_ACCOUNTS, body, name=name, subresource="token"))
        # Readable by the owner only.
        write_atomically(self._account / "token", str(answer["status"]["token"]).encode(), mode=0o600)
        write_atomically(self._account / "ca.crt", self._place.ca.read_bytes())
        write_atomically(self._account / "namespace", metadata.namespace.encode())
        # For runners without mounts: it refers to the files by their paths on this host.
        cluster = {"server": self._place.server, "certificate-authority": str(self._account / "ca.crt")}
        context = {"cluster": "sandbox", "user": "pod", "namespace": metadata.namespace}
        kubeconfig = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "pod",
            "clusters": [{"name": "sandbox", "cluster": cluster}],
            "users": [{"name": "pod", "user": {"tokenFile": str(self._account / "token")}}],
            "contexts": [{"name": "pod", "context": context}],
        }
        write_atomically(self._account / "kubeconfig", json.dumps(kubeconfig, indent=2).encode(), mode=0o600)

    def clear(self) -> None:
        """Removes the files that only the running pod needed; logs stay."""
        for name in ("serviceaccount", "volumes", "work"):
            remove_tree(self._folder / name)

    async def _read_references(self, references: Iterable[tuple[str, str]]) -> None:
        for kind, name in sorted(references):
            try:
                obj = await self._client.send(calls.get_raw(_CONFIG[kind], name, self._pod.metadata.namespace))
                self._config[kind, name] = pod_volumes.data_of({"kind": kind, **obj})
            except NotFound:
                self._config[kind, name] = None

    def _data_of(self, kind: str, name: str) -> Mapping[str, bytes] | None:
        return self._config.get((kind, name))


def _command_line(spec: podspec.ContainerSpec, image: LocalImage, env: Mapping[str, str]) -> tuple[str, ...]:
    """Returns entry point and arguments (by default the image's), `$(NAME)` expanded. Raises BadPod, StartError."""
    entry = spec.command or image.entrypoint
    # An image's default arguments apply only with its own entry point.
    arguments = spec.args or (() if spec.command else image.command)
    words = tuple(pod_volumes.expand_variables(word, env) for word in (*entry, *arguments))
    if not words:
        raise podspec.BadPod("no command specified", reason="CreateContainerError")
    command = words[0]
    script = image.files / command.lstrip("/")
    if command.startswith("/") and script.is_file():
        return argv_for(script, f"{IMAGE_MOUNT}{command}", words[1:])
    # A thin image uses the host's programs.
    program = shutil.which(command, path=_PATH) if image.thin else None
    if program is None:
        why = "no such file or directory" if "/" in command else "executable file not found in $PATH"
        raise StartError(f'exec: "{command}": {why}')
    return (program, *words[1:])
