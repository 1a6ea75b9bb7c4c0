"""`deploy/Containerfile`, built by buildah upon a base of Debian's packages: what its lines say works, and agrees.

The base that it names is in a registry of the web; here one with the same Python, from the machine's mirror, has that
name. The package index is asked as on this machine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.realcluster import images
from tools.image.recipe import Recipe, recipe

ROOT = Path(__file__).parents[2]
CONTAINERFILE = ROOT / "deploy" / "Containerfile"
ARGUMENTS = {"VERSION": "1.2.3", "REVISION": "0123abc"}
PACKAGES = (
    *("python3-minimal", "python3-venv", "python3-distutils", "libpython3.11-stdlib"),
    *("ca-certificates", "dash", "coreutils"),
)
# No package's script runs; the authorities and the index are this machine's, as a company's own base would have them.
HOOK = (
    'cd "$1" && mkdir -p tmp proc sys dev && ln -sf dash bin/sh && ln -sf python3 usr/bin/python'
    " && cp /etc/ssl/certs/ca-certificates.crt etc/ssl/certs/"
    " && if test -e /etc/pip.conf; then cp /etc/pip.conf etc/; fi"
)
PATHS = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
pytestmark = [pytest.mark.real, pytest.mark.timeout(900), pytest.mark.xdist_group("realcluster")]


class Buildah:
    """`buildah` with a separate storage."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, *words: str) -> str:
        """What the command prints; fails with what it said."""
        storage = ("--root", str(self._folder / "storage"), "--runroot", str(self._folder / "run"))
        done = subprocess.run(
            ["buildah", *storage, "--storage-driver", "vfs", *words],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"buildah {' '.join(words)}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout.strip()


@pytest.fixture(scope="module")
def recipe_of_make_image() -> Recipe:
    """The same lines, as `make image` reads them."""
    return recipe(ARGUMENTS)


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    """Skips by name where there is no buildah, unless the real cluster is required."""
    if not os.environ.get("RUNUP_REAL"):
        pytest.skip("it is built by `make real`")
    if shutil.which("buildah") is None or os.geteuid() != 0:
        pytest.skip("buildah and root are needed: apt-get install buildah")
    folder = tmp_path_factory.mktemp("buildah")
    yield Buildah(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def built(buildah: Buildah, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of the image that the Containerfile gives."""
    archive = tmp_path_factory.mktemp("base") / "base.tar"
    archive.write_bytes(images.bootstrapped(PACKAGES, HOOK))
    (base,) = set(re.findall(r"^FROM (\S+)", CONTAINERFILE.read_text(), re.MULTILINE))
    container = buildah("from", "scratch")
    buildah("add", "-q", container, str(archive), "/")
    buildah("config", "--env", f"PATH={PATHS}", container)
    buildah("commit", "-q", "--rm", container, base)
    arguments = [f"--build-arg={name}={value}" for name, value in ARGUMENTS.items()]
    own = ("--isolation", "chroot", "--network", "host", "--pull-never")
    buildah("build", *own, *arguments, "--file", str(CONTAINERFILE), "--tag", "cluster-version-operator", ".")
    return "cluster-version-operator"


def test_its_configuration_is_that_of_make_image(buildah: Buildah, built: str, recipe_of_make_image: Recipe) -> None:
    """Labels, environment and entrypoint; no user, as the line above the entrypoint says."""
    config = json.loads(buildah("inspect", "--type", "image", built))["OCIv1"]["config"]
    labels = {name: value for name, value in config["Labels"].items() if not name.startswith("io.buildah.")}
    assert labels == recipe_of_make_image.labels
    assert labels["org.opencontainers.image.version"] == ARGUMENTS["VERSION"]
    assert set(recipe_of_make_image.env) <= set(config["Env"])
    assert tuple(config["Entrypoint"]) == recipe_of_make_image.entrypoint
    assert "User" not in config


def test_its_libraries_are_the_locked_ones(buildah: Buildah, built: str) -> None:
    """Each of the lock file, and our three packages of the version that was given."""
    listing = "import importlib.metadata as m, json; print(json.dumps({d.name: d.version for d in m.distributions()}))"
    found = json.loads(in_container(buildah, built, "/opt/runup/bin/python", "-c", listing))
    locked = re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    wanted = dict(locked)
    others = {"pip", "setuptools", "wheel"}
    ours = dict.fromkeys(("kubekit", "kubesandbox", "kube-runup"), ARGUMENTS["VERSION"])
    assert {
        name.lower().replace("_", "-"): version for name, version in found.items() if name not in others
    } == wanted | ours


def test_its_programs_start(buildah: Buildah, built: str, recipe_of_make_image: Recipe) -> None:
    """Both, by the names in /usr/bin; the rights of the built-in checks were written by the image's own program."""
    for program in recipe_of_make_image.linked:
        name = Path(program).name
        usage = in_container(buildah, built, f"/usr/bin/{name}", "--help").partition("\n")[0]
        assert usage.startswith("Usage: cluster-version-operator ")
        assert name in usage
    reads = in_container(buildah, built, "cat", "/preflight-checks/reads")
    assert reads == in_container(buildah, built, *recipe_of_make_image.entrypoint, "preflight", "--reads")
    assert "nodes" in reads
    manifests = in_container(buildah, built, "ls", "/manifests").split()
    assert manifests == sorted(file.name for file in (ROOT / "deploy" / "manifests").iterdir())


def in_container(buildah: Buildah, image: str, *command: str) -> str:
    """What a command prints in a container of the image."""
    container = buildah("from", "--pull-never", image)
    try:
        return buildah("run", "--isolation", "chroot", container, "--", *command)
    finally:
        buildah("rm", container)
