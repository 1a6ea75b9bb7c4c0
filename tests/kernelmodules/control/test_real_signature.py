"""A kernel module that is really signed: by the run that the controller starts, with a key, and verified with openssl.

buildah's part is played here: the Dockerfile's few instructions, its RUN in namespaces of its own with this machine's
shell. The signer appends what the kernel's scripts/sign-file.c appends: a PKCS#7 signature, its descriptor
(include/linux/module_signature.h) and the marker.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.kernelmodules.control.test_real_build import done, kept, signing_key
from tests.kernelmodules.control.world import (
    KERNEL,
    MODULES,
    VALIDATIONS,
    cluster_with_kernel_modules,
    ko,
    module,
    push,
    running,
    validation,
)
from tests.kubekit.oci.registries import sandbox_registry, writing

from kubekit.kube import calls
from kubekit.oci.images import Execution
from kubekit.oci.layout import Layout
from kubekit.oci.reference import parse
from kubekit.oci.registry import RegistryClient
from runup.kernelmodules.control.process import Options
from runup.kernelmodules.decide.build_jobs import DOCKERFILE_ANNOTATION, Builder
from runup.release.control.image_build import build_image, layer_of

JSON = dict[str, Any]
Files = dict[str, bytes]
PROGRAM = "/opt/sign-file"
MARKER = b"~Module signature appended~\n"
# No attributes and no certificates in the signature, and the type PKEY_ID_PKCS7 (2) in the descriptor.
SIGN_FILE = """#!/bin/sh
set -e
openssl cms -sign -binary -noattr -nocerts -md "$1" -inkey "$2" -signer "$3" -outform DER -in "$4" -out "$4.p7s"
size=$(stat -c %s "$4.p7s")
{
  cat "$4.p7s"
  printf '\\000\\000\\002\\000\\000\\000\\000\\000\\000\\000'
  printf "\\\\$(printf %03o $((size / 256)))\\\\$(printf %03o $((size % 256)))"
  printf '~Module signature appended~\\n'
} >> "$4"
rm "$4.p7s"
"""


def missing() -> str:
    """The first program that this needs and the machine lacks."""
    return next((name for name in ("bwrap", "openssl") if shutil.which(name) is None), "")


class Builds:
    """Interprets a signing Dockerfile as buildah does: stages as files by path."""

    def __init__(self, host: str, job: JSON, secrets: dict[str, Files], folder: Path) -> None:
        self._client = RegistryClient(writing(host))
        self._template = job["spec"]["template"]
        self._secrets = secrets
        self._folder = folder
        self._stages: dict[str, Files] = {}
        self._at: Files = {}

    def run(self) -> Files:
        """Every instruction in turn; the last stage's files."""
        for line in self._template["metadata"]["annotations"][DOCKERFILE_ANNOTATION].splitlines():
            word, _, rest = line.partition(" ")
            if word == "FROM":
                image, _, name = rest.partition(" AS ")
                self._at = dict(self._stages[image]) if image in self._stages else self._pulled(image)
                self._stages[name] = self._at
            elif word == "COPY":
                origin, _, paths = rest.partition(" ")
                self._copy(self._stages[origin.removeprefix("--from=")], *json.loads(paths))
            elif word == "RUN":
                self._run(json.loads(rest))
            else:
                assert line == "USER 0"
        return self._at

    def _pulled(self, image: str) -> Files:
        return {} if image == "signer:1" else self._client.read_folders(parse(image), ("opt",))

    def _copy(self, origin: Files, source: str, target: str) -> None:
        folder, to = source.strip("/"), target.strip("/")
        copied = {to + path.removeprefix(folder): data for path, data in origin.items() if path.startswith(folder)}
        assert copied, source
        self._at |= copied

    def _run(self, command: list[str]) -> None:
        work = self._folder / "work"
        for path, data in self._at.items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_bytes(data)
        (self._folder / "sign-file").write_text(SIGN_FILE)
        (self._folder / "sign-file").chmod(0o755)
        binds = ["--ro-bind", str(self._folder / "sign-file"), PROGRAM]
        for place, files in self._mounted().items():
            folder = self._folder / place.strip("/").replace("/", "-")
            folder.mkdir()
            for name, data in files.items():
                (folder / name).write_bytes(data)
            binds += ["--ro-bind", str(folder), place]
        merged = [word for name in ("bin", "lib", "lib64") for word in ("--symlink", f"usr/{name}", f"/{name}")]
        system = ["--ro-bind", "/usr", "/usr", *merged, "--ro-bind", "/etc/ssl", "/etc/ssl", "--dev", "/dev"]
        rooted = [*system, "--tmpfs", "/tmp", "--bind", str(work / "signroot"), "/signroot", *binds]
        subprocess.run(["bwrap", "--unshare-all", "--clearenv", *rooted, *command], check=True, timeout=90)
        self._at.clear()
        self._at |= {str(path.relative_to(work)): path.read_bytes() for path in work.rglob("*") if path.is_file()}

    def _mounted(self) -> dict[str, Files]:
        """The Secrets where the pod's builder mounts them."""
        spec = self._template["spec"]
        (builder,) = spec["initContainers"]
        held = {each["name"]: each["secret"]["secretName"] for each in spec["volumes"] if "secret" in each}
        places = {each["mountPath"]: held.get(each["name"]) for each in builder["volumeMounts"]}
        return {place: self._secrets[name] for place, name in places.items() if name in self._secrets}


def pushed(job: JSON, host: str, files: Files, folder: Path) -> None:
    """Does the work of the Job's second container."""
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert container["args"][2] == "push"
    built = build_image(folder / "signed", [layer_of(files)], tag="x", config=Execution())
    RegistryClient(writing(host)).push(Layout(built.layout), built.digest, parse(container["args"][-1]))


def verified(signed: bytes, certificate: Path, folder: Path) -> bytes:
    """The module without its signature, which is openssl's to verify. Raises CalledProcessError."""
    assert signed.endswith(MARKER)
    rest = signed.removesuffix(MARKER)
    algorithm, hashed, kind, signer, key, size = struct.unpack(">BBBBB3xI", rest[-12:])
    assert (algorithm, hashed, kind, signer, key) == (0, 0, 2, 0, 0)
    (folder / "p7s").write_bytes(rest[-12 - size : -12])
    (folder / "content").write_bytes(rest[: -12 - size])
    command = ["openssl", "cms", "-verify", "-binary", "-noverify", "-inform", "DER", "-certfile"]
    words = [*command, certificate, "-in", folder / "p7s", "-content", folder / "content", "-out", folder / "out"]
    subprocess.run(words, check=True, capture_output=True)
    return (folder / "content").read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(missing() != "", reason=f"{missing()} is not installed")
@pytest.mark.parametrize(
    "files",
    [
        pytest.param(["/opt/lib/modules/${KERNEL_FULL_VERSION}/*.ko"], id="a pattern"),
        pytest.param([f"/opt/lib/modules/{KERNEL}/a.ko", f"/opt/lib/modules/{KERNEL}/b.ko"], id="each by its name"),
    ],
)
def test_a_signature_is_made_and_holds(tmp_path: Path, files: list[str]) -> None:
    """The controller's run signs the files that are named; the pushed image has them, signed by the Secret's key."""
    key = signing_key(tmp_path)
    secrets = {"key": {"key": key["key"]}, "cert": {"cert": key["cert"]}}
    convert = ["openssl", "x509", "-inform", "DER", "-in", tmp_path / "cert.der", "-out", tmp_path / "cert.pem"]
    subprocess.run(convert, check=True)
    plain = {**ko("a"), **ko("b"), "opt/lib/firmware/f.bin": b"firmware"}

    async def story(host: str) -> Files:
        unsigned = push(tmp_path, host, "drivers/a:unsigned", plain)
        sign = {"keySecret": {"name": "key"}, "certSecret": {"name": "cert"}, "filesToSign": files}
        options = Options(
            builder=Builder(image="buildah:1", sign_image="signer:1", sign_file=PROGRAM), leader_elect=False
        )
        async with cluster_with_kernel_modules(tmp_path) as made, running(made, options):
            for name, data in secrets.items():
                await kept(made, name, data)
            body = module("a", f"{host}/drivers/a:v1", sign={**sign, "unsignedImage": unsigned})
            await made.create(MODULES, body)
            await made.create(VALIDATIONS, validation(pushBuiltImage=True))
            (job,) = await made.jobs(1, "sign")
            built = await asyncio.to_thread(Builds(host, job, secrets, tmp_path).run)
            await asyncio.to_thread(pushed, job, host, built, tmp_path)
            await made.finish(job)
            assert "sign completes and image pushed" in await done(made)
            await made.send(calls.delete(VALIDATIONS, "preflight"))
            await made.create(VALIDATIONS, validation("again"))
            assert "image accessible and verified" in await done(made, "again")
            client = RegistryClient(writing(host))
            return await asyncio.to_thread(client.read_folders, parse(f"{host}/drivers/a:v1"), ("opt",))

    with sandbox_registry(tmp_path) as host:
        signed = asyncio.run(story(host))
    assert signed.keys() == plain.keys()
    for path, data in plain.items():
        if path.endswith(".ko"):
            assert verified(signed[path], tmp_path / "cert.pem", tmp_path) == data
            with pytest.raises(subprocess.CalledProcessError):
                verified(signed[path].replace(b"ELF", b"FLE"), tmp_path / "cert.pem", tmp_path)
        else:
            assert signed[path] == data
