"""A kernel module that is really built, by buildah from Debian's kernel headers, and really signed; pushed, and found.

The operator decides and makes the Jobs; what a kubelet does with them is done here, in a separate mount namespace:
every volume where the pod wants it, every container's words as they are written.
"""

from __future__ import annotations

import asyncio
import base64
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.kernelmodules.control import debian
from tests.kernelmodules.control.world import (
    CONFIG_MAPS,
    MODULES,
    VALIDATIONS,
    World,
    cluster_with_kernel_modules,
    module,
    running,
    validation,
)
from tests.kubekit.oci.registries import docker_registry, writing

from kubekit.api.scheme import Resource
from kubekit.kube import calls
from kubekit.oci.images import Execution
from kubekit.oci.layout import Layout
from kubekit.oci.reference import parse
from kubekit.oci.registry import RegistryClient
from runup.kernelmodules.control.process import Options
from runup.kernelmodules.decide.build_jobs import Builder
from runup.release.control.image_build import build_image

JSON = dict[str, Any]
SECRETS = Resource(group="", version="v1", kind="Secret", plural="secrets", namespaced=True)
BUILD_S = 600
SOURCE = r"""#include <linux/module.h>
MODULE_LICENSE("GPL");
static int __init hello_init(void) { return 0; }
static void __exit hello_exit(void) { }
module_init(hello_init);
module_exit(hello_exit);
"""
DOCKERFILE = f"""FROM BASE AS build
ARG KERNEL_VERSION
RUN mkdir /src && echo obj-m := hello.o > /src/Makefile
RUN echo {base64.b64encode(SOURCE.encode()).decode()} | base64 -d > /src/hello.c
RUN make -C /usr/src/linux-headers-${{KERNEL_VERSION}} M=/src CC=gcc-12 HOSTCC=gcc-12 modules
RUN mkdir -p /opt/lib/modules/${{KERNEL_VERSION}} && cp /src/hello.ko /opt/lib/modules/${{KERNEL_VERSION}}/ \
 && depmod -b /opt ${{KERNEL_VERSION}}
FROM scratch
COPY --from=build /opt /opt
"""


def base_image(folder: Path, host: str, kernel: str) -> str:
    """The tool chain in the registry; its pull spec."""
    built = build_image(
        folder / "base",
        [debian.toolchain(folder / "base.tar", kernel)],
        tag="base",
        config=Execution(env=("PATH=/usr/sbin:/usr/bin:/sbin:/bin",)),
    )
    RegistryClient(writing(host)).push(Layout(built.layout), built.digest, parse(f"{host}/toolchain:base"))
    return f"{host}/toolchain:base"


def signing_key(folder: Path) -> dict[str, bytes]:
    """A key and its certificate, as the kernel's sign-file wants them."""
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=runup-test -outform DER"
    subprocess.run(
        [*command.split(), "-keyout", folder / "key.pem", "-out", folder / "cert.der"], check=True, capture_output=True
    )
    return {"key": (folder / "key.pem").read_bytes(), "cert": (folder / "cert.der").read_bytes()}


def kubelet(job: JSON, secrets: dict[str, dict[str, bytes]], folder: Path) -> str:
    """Run the Job's containers, one after the other; the end of the log of the one that failed, or nothing."""
    template = job["spec"]["template"]
    volumes = {each["name"]: _volume(each, template, secrets, folder) for each in template["spec"]["volumes"]}
    for container in (*template["spec"].get("initContainers", ()), *template["spec"]["containers"]):
        binds = [(volumes[each["name"]], each["mountPath"]) for each in container["volumeMounts"]]
        script = ["set -e", "mount -t tmpfs none /run"]
        for source, target in binds:
            script += [
                f"mkdir -p {shlex.quote(target)}",
                f"mount --bind {shlex.quote(str(source))} {shlex.quote(target)}",
            ]
        script.append(f"cd {shlex.quote(container['workingDir'])}")
        script.append("exec " + shlex.join([*container["command"], *container["args"]]))
        env = {each["name"]: each["value"] for each in container["env"]} | {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        ended = subprocess.run(
            ["unshare", "-m", "sh", "-c", "\n".join(script)], env=env, capture_output=True, text=True, timeout=BUILD_S,
            check=False,
        )  # fmt: skip
        if ended.returncode:
            return (ended.stdout + ended.stderr)[-2000:]
    return ""


def _volume(volume: JSON, template: JSON, secrets: dict[str, dict[str, bytes]], folder: Path) -> Path:
    place = folder / volume["name"]
    place.mkdir(parents=True, exist_ok=True)
    files: dict[str, bytes] = {}
    if "downwardAPI" in volume:
        [item] = volume["downwardAPI"]["items"]
        name = item["fieldRef"]["fieldPath"].removeprefix("metadata.annotations['").removesuffix("']")
        files = {item["path"]: template["metadata"]["annotations"][name].encode()}
    elif "secret" in volume:
        files = secrets[volume["secret"]["secretName"]]
    for name, data in files.items():
        (place / name).write_bytes(data)
    return place


async def kept(made: World, name: str, data: dict[str, bytes]) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "drivers"},
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }
    await made.create(SECRETS, body)


async def done(made: World, name: str = "preflight") -> str:
    """The reason, once the one Module is verified or has failed."""
    found = await made.until(lambda status: status.modules and status.modules[0].verification_stage == "Done", name)
    return found.modules[0].status_reason


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_built_signed_pushed_and_found(tmp_path: Path) -> None:
    """And then the image stage of another validation needs neither build nor signature."""
    kernel = debian.kernel()

    async def story(host: str) -> None:
        base = await asyncio.to_thread(base_image, tmp_path, host, kernel)
        key = signing_key(tmp_path)
        secrets = {"key": {"key": key["key"]}, "cert": {"cert": key["cert"]}}
        insecure = {"insecure": True}
        container = {
            "registryTLS": insecure,
            "build": {"dockerfileConfigMap": {"name": "dockerfile"}, "baseImageRegistryTLS": insecure},
            "sign": {
                "keySecret": {"name": "key"},
                "certSecret": {"name": "cert"},
                "filesToSign": [f"/opt/lib/modules/{kernel}/*.ko"],
            },
        }
        options = Options(
            builder=Builder(image="buildah:1", sign_image=base, sign_file=debian.sign_file()), leader_elect=False
        )
        async with cluster_with_kernel_modules(tmp_path) as made, running(made, options):
            metadata = {"name": "dockerfile", "namespace": "drivers"}
            text = DOCKERFILE.replace("BASE", base)
            await made.create(
                CONFIG_MAPS,
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"dockerfile": text}},
            )
            for name, data in secrets.items():
                await kept(made, name, data)
            body = module("hello", f"{host}/drivers/hello:v1", **container)
            await made.create(MODULES, body)
            await made.create(VALIDATIONS, validation(kernelVersion=kernel, pushBuiltImage=True))
            for purpose in ("build", "sign"):
                [job] = await made.jobs(1, purpose)
                failed = await asyncio.to_thread(kubelet, job, secrets, tmp_path / purpose)
                assert failed == ""
                await made.finish(job)
            assert "sign completes and image pushed" in await done(made)
            await made.send(calls.delete(VALIDATIONS, "preflight"))
            await made.create(VALIDATIONS, validation("again", kernelVersion=kernel))
            assert "image accessible and verified" in await done(made, "again")

    with docker_registry(tmp_path) as host:
        asyncio.run(story(host))
        ko = RegistryClient(writing(host)).read_file(
            parse(f"{host}/drivers/hello:v1"), f"opt/lib/modules/{kernel}/hello.ko"
        )
    (tmp_path / "hello.ko").write_bytes(ko)
    shown = subprocess.run(["modinfo", tmp_path / "hello.ko"], capture_output=True, text=True, check=True).stdout
    facts = dict(line.split(":", 1) for line in shown.splitlines() if ":" in line)
    assert facts["signer"].strip() == "runup-test"
    assert facts["vermagic"].strip().startswith(f"{kernel} ")
