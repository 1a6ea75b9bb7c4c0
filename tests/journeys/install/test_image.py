"""The operator's image: one digest wherever it is built, small, and at work as anybody in a root that nobody can write.

Building it needs apt, Debian's mirror and the package index.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.journeys.install.checkouts import TIME, VERSION, clone, run_tool

from kubekit.oci.layers import Image, open_image, unpack_image
from kubekit.oci.layout import Layout

ROOT = Path(__file__).parents[3]
LIMIT_S = 600
MAX_MB = 150
Run = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(2 * LIMIT_S),
    pytest.mark.xdist_group("image"),
    pytest.mark.skipif(shutil.which("apt-get") is None, reason="no apt-get, by which the image's base is fetched"),
]


@pytest.fixture(scope="module")
def image(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Image:
    """The image of the release's commit, built from a folder of another name, in another time zone, by another user."""
    folder = tmp_path_factory.mktemp("image")
    elsewhere = clone(release.parents[1], folder / "elsewhere")
    run_tool("tools.image", elsewhere, TZ="Pacific/Auckland", PYTHONHASHSEED="7", HOME=str(folder))
    return open_image(Layout.open(elsewhere / "build" / "image"))


@pytest.fixture(scope="module")
def root(image: Image, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its files."""
    return unpack_image(image, tmp_path_factory.mktemp("root") / "root")


@pytest.fixture
def run(root: Path) -> Run:
    """A program of the image as a user of no name, in a root that cannot be written, without a network."""
    if shutil.which("bwrap") is None:
        pytest.skip("no bwrap, which starts programs in another root")
    base = ["bwrap", "--ro-bind", str(root), "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--clearenv"]
    base += ["--unshare-all", "--uid", "12345", "--gid", "0", "--die-with-parent"]

    def started(*words: str) -> subprocess.CompletedProcess[str]:
        command = [*base, "--setenv", "PATH", "/opt/runup/bin:/usr/bin", "--", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)

    return started


def test_it_is_the_same_wherever_it_is_built(image: Image, release: Path, tmp_path: Path) -> None:
    """The one in the release has the same digest."""
    with tarfile.open(release / f"runup-image-{VERSION}.oci.tar") as archive:
        archive.extractall(tmp_path, filter="data")
    released = open_image(Layout.open(tmp_path), VERSION, architecture="amd64")
    assert image.digest == released.digest


def test_it_is_small(image: Image) -> None:
    """Without the interpreter's base, which is the lowest layer, as it is transferred."""
    _, *above = image.manifest.layers
    assert sum(layer.size for layer in above) < MAX_MB * 1_000_000


def test_its_labels_say_what_it_is(image: Image) -> None:
    """Version, commit, time and licence, by the names of the image specification."""
    labels = image.config.config.labels
    named = {name.removeprefix("org.opencontainers.image."): value for name, value in labels.items()}
    assert named["created"] == TIME == image.config.created
    assert named["licenses"] == "Apache-2.0"
    assert len(named["revision"]) == 40
    assert named["version"]
    assert labels["io.openshift.release.operator"] == "true"


def test_nobody_can_write_into_it(root: Path) -> None:
    """No file belongs to anybody who happens to have a number, and everybody can read all of it."""
    for path in root.rglob("*"):
        if not path.is_symlink():
            mode = path.stat().st_mode
            assert mode & 0o044 == 0o044, path
            assert path.name == "tmp" or not mode & 0o022, path


def test_its_programs_start(run: Run) -> None:
    """By the names that manifests start them by."""
    assert run("cluster-version-operator", "version").stdout.startswith("ClusterVersionOperator ")
    assert run("/usr/bin/kernel-module-preflight", "--help").returncode == 0
    assert run("runup", "preflight", "run", "--help").returncode == 0


def test_every_module_of_it_can_be_imported(run: Run) -> None:
    """Also those of the sandbox, on which a rehearsal stands; every library finds what it is linked to.

    The plugin for pytest is there where pytest is.
    """
    code = (
        "import importlib, pkgutil, runup, kubesandbox, kubekit\n"
        "for package in (runup, kubesandbox, kubekit):\n"
        "    for module in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        if not module.name.endswith(('.__main__', '.pytest_plugin')): importlib.import_module(module.name)\n"
        "print('all')"
    )
    done = run("python", "-c", code)
    assert done.stdout == "all\n", done.stderr


def test_byte_code_is_used_as_it_is(run: Run) -> None:
    """No module is compiled at the start: neither the library's, nor others', nor ours."""
    code = (
        "import asyncio, aiohttp, runup.operator.manager, sys\n"
        "from importlib.util import cache_from_source as cached\n"
        "import os\n"
        "print([m.__file__ for m in list(sys.modules.values()) if (getattr(m, '__file__', None) or '').endswith('.py')"
        " and not os.path.exists(cached(m.__file__))])"
    )
    assert run("python", "-c", code).stdout == "[]\n"


def test_the_folders_of_a_release(root: Path) -> None:
    """The operator's own manifests, what its checks read, and room for everybody else's manifests."""
    manifests = {path.name: path.read_bytes() for path in (ROOT / "deploy" / "manifests").iterdir()}
    assert {path.name: path.read_bytes() for path in (root / "manifests").iterdir()} == manifests
    assert json.loads((root / "preflight-checks" / "reads").read_text())["format"] == "preflight-reads-v1"
    assert list((root / "release-manifests").iterdir()) == []


def test_a_release_can_be_copied_out_of_it(run: Run) -> None:
    """By the commands that an operator's Pod uses for it, of this release and of others."""
    steps = "mkdir /tmp/new && cp -r /manifests /tmp/new/manifests && mv /tmp/new /tmp/final && ls /tmp/final/manifests"
    assert "cluster-version-operator_03_deployment.yaml" in run("sh", "-c", steps).stdout
    assert run("sh", "-c", "cd /tmp && mkdir a && rm -fR ./* && ls").stdout == ""


def test_certificates_of_the_world_are_known(run: Run) -> None:
    """The bundle is where the library looks for it."""
    code = "import ssl; print(len(ssl.create_default_context().get_ca_certs()) > 100)"
    assert run("python", "-c", code).stdout == "True\n"


def test_other_tools_take_it(image: Image, tmp_path: Path) -> None:
    """skopeo copies it, digests unchanged."""
    if shutil.which("skopeo") is None:
        pytest.skip("no skopeo")
    copied = ["skopeo", "copy", "-q", "--insecure-policy", f"oci:{image.layout.path}", f"dir:{tmp_path / 'dir'}"]
    subprocess.run(copied, check=True, timeout=LIMIT_S)
    stored = {path.name for path in (tmp_path / "dir").iterdir()}
    assert {layer.digest.removeprefix("sha256:") for layer in image.manifest.layers} <= stored


def test_a_release_is_built_upon_it(image: Image, tmp_path: Path) -> None:
    """`runup release new --base` adds a layer and keeps the rest."""
    (tmp_path / "release" / "release-manifests").mkdir(parents=True)
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
    (tmp_path / "release" / "release-manifests" / "0000_10_shop_namespace.yaml").write_text(namespace)
    words = ["--base", f"oci:{image.layout.path}", "--from-dir", "release", "--version", "5.3.0", "--to", "oci:made"]
    command = [sys.executable, "-m", "runup", "release", "new", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    release = open_image(Layout.open(tmp_path / "made"))
    assert release.manifest.layers[:-1] == image.manifest.layers
    assert release.config.config.entrypoint == ("/usr/bin/cluster-version-operator",)
