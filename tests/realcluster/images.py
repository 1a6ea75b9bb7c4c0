"""Images for the nodes, made from Debian's packages and this checkout; and the registry that nodes pull from.

Nothing is fetched but packages. What takes long, the base with Python, is kept as an OCI layout beside the programs.
"""

from __future__ import annotations

import gzip
import hashlib
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tests.realcluster import build
from tests.realcluster.build import Unavailable
from tests.realcluster.node import die_with_parent

from kubekit.oci.images import Execution
from kubekit.oci.layers import open_image
from kubekit.oci.layout import Layout
from kubekit.oci.reference import sha256
from runup.release.control.build import BuiltImage, Layer, build_image, layer_of

SUITE = "bookworm"
PACKAGES = ("python3-minimal", "libpython3.11-stdlib", "ca-certificates", "busybox-static")
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
# No package's script runs: what one would have made, and what a read-only root needs to mount upon.
_HOOK = 'cd "$1" && mkdir -p tmp proc sys dev && ln -sf busybox bin/sh'
READY_S = 60.0


class Registry:
    """`docker-registry` on the cluster's bridge, without TLS: `with Registry(folder, "10.0.0.1", 5000)`."""

    def __init__(self, folder: Path, address: str, port: int) -> None:
        self.host = f"{address}:{port}"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        config = self._folder / "registry.yml"
        storage = f"filesystem: {{rootdirectory: {self._folder / 'data'}}}"
        config.write_text(
            f"version: 0.1\nlog: {{level: info}}\nstorage:\n  {storage}\n  delete: {{enabled: true}}\n"
            f"http: {{addr: '{self.host}'}}\n"
        )
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Serves, as before a `stop`."""
        with (self._folder / "registry.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["docker-registry", "serve", str(self._folder / "registry.yml")],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent,  # noqa: PLW1509 -- one system call, no lock
            )

    def stop(self) -> None:
        """Answers nobody any more."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(60)
            self._process = None

    def push(self, image: BuiltImage, repository: str, tag: str = "") -> str:
        """Pushes an image; returns its pull spec by digest."""
        place = f"{self.host}/{repository}:{tag or image.tag}"
        copy = ["skopeo", "copy", "-q", "--insecure-policy", "--dest-tls-verify=false"]
        command = [*copy, f"oci:{image.layout}:{image.tag}", f"docker://{place}"]
        deadline = time.monotonic() + READY_S
        # The registry listens a moment after its start.
        while (done := subprocess.run(command, capture_output=True, text=True, check=False)).returncode:
            if "connection refused" not in done.stderr or time.monotonic() > deadline:
                raise RuntimeError(f"{place}: {done.stderr}")
            time.sleep(0.05)
        return image.pullspec(f"{self.host}/{repository}")


def python_base() -> BuiltImage:
    """Python, certificate authorities and a shell, as Debian has them; made once."""
    key = hashlib.sha256(" ".join((SUITE, *PACKAGES, _HOOK)).encode()).hexdigest()[:12]
    layout = build.folder_of_caches() / f"images-{key}"
    if not (layout / "index.json").exists():
        archive = _bootstrapped()
        layer = Layer(gzip.compress(archive, compresslevel=6, mtime=0), sha256(archive))
        build_image(layout, [layer], tag="python", config=Execution(env=("PATH=/usr/sbin:/usr/bin:/sbin:/bin",)))
    image = open_image(Layout.open(layout), "python")
    return BuiltImage(layout, image.digest, "python")


def pause(layout: Path) -> BuiltImage:
    """The image of pods' sandboxes."""
    program = (build.programs() / "pause").read_bytes()
    return build_image(
        layout, [layer_of({"pause": program}, frozenset({"pause"}))], tag="1", config=Execution(entrypoint=("/pause",))
    )


def _bootstrapped() -> bytes:
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "base.tar"
        source = f"deb [signed-by={_KEYRING}] {_mirror()} {SUITE} main"
        command = ["mmdebstrap", "--mode=root", "--variant=extract", f"--include={','.join(PACKAGES)}"]
        done = subprocess.run(
            [*command, f"--extract-hook={_HOOK}", SUITE, str(target), source],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Unavailable(f"mmdebstrap: {done.stderr[-2000:]}")
        return target.read_bytes()


def _mirror() -> str:
    """Where this machine has its packages from."""
    for file in _SOURCES:
        words: Sequence[str] = file.read_text().split() if file.exists() else ()
        for word in words:
            if word.startswith(("http://", "https://")) and "snapshot." not in word and "security" not in word:
                return word
    raise Unavailable(f"no mirror of Debian is named in {' or '.join(map(str, _SOURCES))}")
