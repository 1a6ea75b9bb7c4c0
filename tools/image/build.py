"""Builds the image: base, byte code, libraries and runup, each a layer, so that a new runup is a small download."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec
from tools.image import debian, source
from tools.image.recipe import Recipe, recipe
from tools.image.tree import File, Tree, layer, read, write

from kubekit.oci import images as documents
from kubekit.oci.images import Descriptor, Execution, Index, Platform
from kubekit.oci.layout import Layout
from runup.release.control.image_build import build_image
from tools import compiled, packages

PREFIX = "opt/runup"
SITE = f"{PREFIX}/lib/python3.11/site-packages"
# The packages, and the folders of the distributions' metadata.
OWN = ("kubekit", "kubesandbox", "runup", "kube_runup")
_PLATFORM = {"amd64": "x86_64-unknown-linux-gnu", "arm64": "aarch64-unknown-linux-gnu"}
_MACHINE = {"x86_64": "amd64", "aarch64": "arm64"}
_TRIPLET = {"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}
# What an installer notes of itself and of this machine's folders.
_NOTES = re.compile(r"(?:\.dist-info/(?:RECORD|REQUESTED|direct_url\.json|uv_cache\.json)|/\.lock)$")
_SCRIPT = b"""#!/%s/bin/python
import sys

from %s import %s

if __name__ == "__main__":
    sys.exit(%s())
"""


class Image(NamedTuple):
    """An image of one machine: its digest, and how large each of its layers is as it is transferred."""

    architecture: str
    digest: str
    layers: dict[str, int]


class Built(NamedTuple):
    """What a layout holds: one image, or an index of several, called `tag`."""

    tag: str
    digest: str
    images: list[Image]


def images(output: Path, architectures: Sequence[str], wheels: packages.Built | None = None) -> Built:
    """Writes the images of `architectures` into the layout `output`, in place of what is there.

    `wheels` are installed in them, by default those that are built of the checkout.
    """
    commit = source.commit()
    with tempfile.TemporaryDirectory(prefix="runup-image-") as temporary:
        work = Path(temporary)
        wheels = wheels or packages.wheels(work / "wheels")
        version = packages.version(wheels[packages.RUNUP])
        steps = recipe({"VERSION": version, "REVISION": commit.revision})
        tag = version.replace("+", "-")
        layout = Layout.create(work / "layout")
        python = _Python(work / "python")
        built = [
            _image(layout, wheels, steps=steps, python=python, architecture=architecture, tag=tag, created=commit.time)
            for architecture in architectures
        ]
        digest = built[0].digest if len(built) == 1 else _index(layout, built, tag)
        (layout.path / ".lock").unlink()
        shutil.rmtree(output, ignore_errors=True)
        output.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(layout.path, output)
    return Built(tag, digest, built)


def _image(
    layout: Layout,
    wheels: packages.Built,
    steps: Recipe,
    python: _Python,
    architecture: str,
    tag: str,
    created: datetime,
) -> Image:
    with tempfile.TemporaryDirectory(prefix="runup-site-") as temporary:
        site = Path(temporary, "site")
        base = debian.base(architecture)
        libraries, own = _installed(site, wheels, architecture)
    libraries |= _environment()
    own |= _programs(own, steps) | _payload(own)
    trees = {"base": base, "libraries": libraries, "runup": own}
    for tree in trees.values():
        tree |= python.byte_code(tree)
    layers = {name: layer(tree) for name, tree in trees.items()}
    image = build_image(
        layout.path,
        list(layers.values()),
        tag=tag,
        config=Execution(entrypoint=steps.entrypoint, env=(_PATH, *steps.env), labels=_labels(steps, created)),
        created=_text(created),
        architecture=architecture,
    )
    return Image(architecture, image.digest, {name: len(made.data) for name, made in layers.items()})


_PATH = f"PATH=/{PREFIX}/bin:/usr/local/bin:/usr/bin:/bin"


def _text(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _labels(steps: Recipe, created: datetime) -> dict[str, str]:
    labels = {key: value for key, value in steps.labels.items() if value}
    return dict(sorted({**labels, "org.opencontainers.image.created": _text(created)}.items()))


def _index(layout: Layout, built: Sequence[Image], tag: str) -> str:
    """Puts the images behind one name, each for its machine; returns the index' digest."""
    members = []
    for image in built:
        size = layout.blob(image.digest).stat().st_size
        machine = Platform(architecture=image.architecture, os="linux")
        members.append(Descriptor(media_type=documents.MANIFEST, digest=image.digest, size=size, platform=machine))
    data = msgspec.json.encode(Index(schema_version=2, media_type=documents.INDEX, manifests=tuple(members)))
    digest = layout.add_blob(data)
    named = Descriptor(media_type=documents.INDEX, digest=digest, size=len(data), annotations={documents.REF_NAME: tag})
    root = Index(schema_version=2, manifests=(named,))
    (layout.path / "index.json").write_bytes(msgspec.json.encode(root))
    return digest


def _installed(folder: Path, wheels: packages.Built, architecture: str) -> tuple[Tree, Tree]:
    """Returns the libraries, and our own packages."""
    packages.install(wheels, "--target", folder, platform=_PLATFORM[architecture])
    foreign = [path for path, its in compiled.files(folder).items() if f"linux-{architecture}" not in its]
    if foreign:
        raise SystemExit(f"error: not compiled for {architecture}: {', '.join(map(str, foreign))}")
    shutil.rmtree(folder / "bin")
    libraries: Tree = {}
    own: Tree = {}
    for name, file in read(folder).items():
        if not _NOTES.search(f"/{name}") and not name.endswith(".pyc"):
            mine = name.split("/")[0].split("-")[0] in OWN
            (own if mine else libraries)[f"{SITE}/{name}"] = file
    return libraries, own


def _environment() -> Tree:
    """Returns what makes the folder a virtual environment of the image's Python."""
    return {
        f"{PREFIX}/pyvenv.cfg": File(b"home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11\n"),
        f"{PREFIX}/bin/python": File.link("/usr/bin/python3.11"),
        f"{PREFIX}/bin/python3": File.link("python"),
    }


def _programs(own: Mapping[str, File], steps: Recipe) -> Tree:
    """Returns the programs that the wheels declare, and those of them that are in /usr/bin, too."""
    declared = [file.data.decode() for name, file in own.items() if name.endswith("/entry_points.txt")]
    sections = "".join(
        text.split("[console_scripts]")[1].split("[")[0] for text in declared if "[console_scripts]" in text
    )
    programs: Tree = {}
    for name, module, function in re.findall(r"^(\S+) = ([\w.]+):(\w+)$", sections, re.MULTILINE):
        words = (PREFIX.encode(), module.encode(), function.encode(), function.encode())
        programs[f"{PREFIX}/bin/{name}"] = File(_SCRIPT % words, executable=True)
    links = {f"usr/bin/{Path(program).name}": File.link(program) for program in steps.linked}
    return programs | links


def _payload(own: Mapping[str, File]) -> Tree:
    """Returns the folders of a release; one that is built upon this image fills them."""
    manifests = f"{SITE}/runup/deploy/manifests/"
    copied = {
        f"manifests/{name.removeprefix(manifests)}": file for name, file in own.items() if name.startswith(manifests)
    }
    with tempfile.TemporaryDirectory(prefix="runup-reads-") as temporary:
        write({name.removeprefix(f"{SITE}/"): file for name, file in own.items()}, Path(temporary))
        # In this environment, which has the same libraries; what is imported of runup is the image's own.
        code = f"import sys; sys.path.insert(0, {temporary!r}); from runup.cli.operator.entry import main; main()"
        reads = subprocess.run(
            [sys.executable, "-c", code, "preflight", "--reads"], check=True, stdout=subprocess.PIPE, cwd=temporary
        ).stdout
    return {**copied, "preflight-checks/reads": File(reads), "release-manifests": File.folder()}


class _Python:
    """The image's interpreter on this machine: byte code that it writes is the same wherever it is written."""

    def __init__(self, folder: Path) -> None:
        architecture = _MACHINE.get(platform.machine(), "")
        if architecture not in debian.ARCHITECTURES:
            raise SystemExit(f"error: the image's Python does not run on {platform.machine()}; build on amd64 or arm64")
        write(debian.base(architecture), folder)
        library = folder / "usr" / "lib" / _TRIPLET[architecture]
        (loader,) = library.glob("ld-linux-*.so.*")
        self._command = [str(loader), "--library-path", str(library), str(folder / "usr" / "bin" / "python3.11"), "-S"]
        # A hash of its own for each process would order the members of sets in byte code.
        self._env = {"PYTHONHOME": str(folder / "usr"), "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"}
        self._compiled: dict[tuple[str, File], File] = {}

    def byte_code(self, tree: Tree) -> Tree:
        """Returns the byte code of the modules in `tree`, which is used without a look at the sources' times."""
        modules = {name: file for name, file in tree.items() if name.endswith(".py")}
        # Images of two architectures have most modules in common.
        missing = {name: file for name, file in modules.items() if (name, file) not in self._compiled}
        made = self._compile(missing)
        self._compiled |= {(name, file): made[_cached(name)] for name, file in missing.items() if _cached(name) in made}
        found = ((name, self._compiled.get((name, file))) for name, file in modules.items())
        return {_cached(name): code for name, code in found if code is not None}

    def _compile(self, modules: Tree) -> Tree:
        """Returns the files of byte code that the interpreter writes for `modules`."""
        with tempfile.TemporaryDirectory(prefix="runup-pyc-") as temporary:
            folder = Path(temporary)
            write(modules, folder)
            options = ["-q", "--invalidation-mode", "unchecked-hash", "-s", str(folder), "-p", "/"]
            subprocess.run([*self._command, "-m", "compileall", *options, str(folder)], env=self._env, check=True)
            return {name: file for name, file in read(folder).items() if name.endswith(".pyc")}


def _cached(module: str) -> str:
    """Returns where the image's interpreter looks for the byte code of a module: https://peps.python.org/pep-3147/."""
    path = Path(module)
    return str(path.parent / "__pycache__" / f"{path.stem}.cpython-311.pyc")
