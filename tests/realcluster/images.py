"""Images for the nodes, made from Debian's packages and this checkout; and the registry that nodes pull from.

Nothing is fetched but packages. What takes long, the base with Python, is kept as an OCI layout next to the programs.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Self

from tests.controlplane.build import Unavailable
from tests.realcluster import build
from tests.realcluster.node import die_with_parent

from kubekit.oci.image_locations import LayoutLocation, parse_location
from kubekit.oci.images import Execution
from kubekit.oci.layers import open_image
from kubekit.oci.layout import Layout
from kubekit.oci.reference import sha256
from runup.release.control.image_build import BuiltImage, Layer, build_image, layer_of

SUITE = "bookworm"
PACKAGES = ("python3-minimal", "libpython3.11-stdlib", "ca-certificates", "busybox-static")
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
_SOURCES = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
# No package's script runs: what one would have made, and what a read-only root needs to mount upon.
_LINKS = ("sh", "cp", "mkdir", "mv", "rm")
_HOOK = f'cd "$1" && mkdir -p tmp proc sys dev && for each in {" ".join(_LINKS)}; do ln -sf busybox bin/$each; done'
READY_S = 60.0
ROOT = Path(__file__).parents[2]
OPERATOR_LABEL = "io.openshift.release.operator"
_SITE = "opt/runup"
_SANDBOX_ONLY = ("orjson",)
_PROGRAM = b"""#!/usr/bin/python3
import sys

from runup.cli.operator.entry import main

sys.exit(main())
"""


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
        archive = bootstrapped(PACKAGES, _HOOK)
        layer = Layer(gzip.compress(archive, compresslevel=6, mtime=0), sha256(archive))
        build_image(layout, [layer], tag="python", config=Execution(env=("PATH=/usr/sbin:/usr/bin:/sbin:/bin",)))
    image = open_image(Layout.open(layout), "python")
    return BuiltImage(layout, image.digest, "python")


def operator(layout: Path) -> BuiltImage:
    """The operator's image, of this checkout and the libraries that run the tests; or the one that is given."""
    if given := os.environ.get(build.IMAGE):
        return _given(given)
    base = python_base()
    files = {f"{_SITE}/{name}": data for name, data in _libraries()}
    for package in ("kubekit", "runup"):
        source = ROOT / "packages" / package / "src"
        for file in sorted((source / package).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts and "sandbox" not in file.parts:
                files[f"{_SITE}/{file.relative_to(source)}"] = file.read_bytes()
    files["usr/bin/cluster-version-operator"] = _PROGRAM
    files |= {f"manifests/{file.name}": file.read_bytes() for file in (ROOT / "deploy" / "manifests").glob("*.yaml")}
    return build_image(
        layout,
        [layer_of(files, frozenset({"usr/bin/cluster-version-operator"}))],
        tag="operator",
        config=Execution(
            entrypoint=("/usr/bin/cluster-version-operator",),
            env=("PATH=/usr/sbin:/usr/bin:/sbin:/bin", f"PYTHONPATH=/{_SITE}", "PYTHONUNBUFFERED=1"),
            labels={OPERATOR_LABEL: "true"},
        ),
        base=open_image(Layout.open(base.layout), base.tag),
    )


def _given(text: str) -> BuiltImage:
    """Raises Unavailable if it is not an image of a layout."""
    place = parse_location(text)
    if not isinstance(place, LayoutLocation):
        raise Unavailable(f"{build.IMAGE}={text} is not oci:DIR:TAG")
    return BuiltImage(place.folder, open_image(Layout.open(place.folder), place.name).digest, place.name)


def _libraries() -> Iterator[tuple[str, bytes]]:
    """The files of every library that the operator needs, as installed here; the base has the same Python."""
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        name = line.partition("==")[0]
        if "==" not in line or name in _SANDBOX_ONLY:
            continue
        for file in metadata.files(name) or ():
            path = Path(str(file.locate()))
            if ".." not in file.parts and file.suffix != ".pyc" and path.is_file():
                yield str(file), path.read_bytes()


def pause(layout: Path) -> BuiltImage:
    """The image of pods' sandboxes."""
    program = (build.programs() / "pause").read_bytes()
    return build_image(
        layout, [layer_of({"pause": program}, frozenset({"pause"}))], tag="1", config=Execution(entrypoint=("/pause",))
    )


def bootstrapped(packages: Sequence[str], hook: str = "true", suite: str = SUITE, variant: str = "extract") -> bytes:
    """Returns a Debian release with packages as a tar archive, after `hook`, a shell script with the folder in $1.

    The variant `extract` runs no package's script. Raises Unavailable with the output of mmdebstrap.
    """
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "base.tar"
        # A mirror that is not updated keeps an index whose time is over; its signature is verified all the same.
        source = f"deb [signed-by={_KEYRING} check-valid-until=no] {_mirror()} {suite} main"
        command = ["mmdebstrap", "--mode=root", f"--variant={variant}", f"--include={','.join(packages)}"]
        done = subprocess.run(
            [*command, f"--extract-hook={hook}", suite, str(target), source],
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
