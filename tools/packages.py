"""The built wheels of the three distributions, and installations of them: what the other tools share.

Needs uv and the package index.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from packaging.version import Version

ROOT = Path(__file__).parents[1]
NAMES = ("kubekit", "kubesandbox", "kube-runup")
RUNUP = NAMES[-1]
_BACKEND = ("--build-constraints", "requirements-build.lock", "--require-build-hashes")
UV = str(Path(sys.executable).with_name("uv"))

Built = dict[str, Path]
"""A file for each distribution, by its name."""


def wheels(folder: Path) -> Built:
    """Builds the wheels of the checkout into `folder`, by the locked build backend."""
    return _built(folder, "--wheel", "--all-packages")


def sdists(folder: Path) -> Built:
    """Builds the source distributions of the checkout into `folder`."""
    return _built(folder, "--sdist", "--all-packages")


def wheel_of(sources: Path, folder: Path) -> Path:
    """Builds the wheel of an unpacked source distribution into `folder`."""
    (wheel,) = _built(folder, "--wheel", str(sources)).values()
    return wheel


def found(folder: Path, suffix: str = ".whl") -> Built:
    """Returns what `folder` has of the distributions."""
    files = {path.name.partition("-")[0].replace("_", "-"): path for path in folder.glob(f"*-*{suffix}")}
    return {name: files[name] for name in NAMES if name in files}


def _built(folder: Path, *words: str) -> Built:
    _run("build", "-q", "--out-dir", str(folder), *_BACKEND, *words)
    return found(folder, "")


def version(built: Path) -> str:
    """Returns a wheel's version."""
    return built.name.split("-")[1]


def semantic(version: str) -> str:
    """Returns a version of Python's spelling as semantic versions have it, which krew and Helm ask for."""
    found = Version(version)
    parts = [*(found.pre or ()), *(("dev", found.dev) if found.dev is not None else ())]
    before = f"-{'.'.join(map(str, parts))}" if parts else ""
    local = f"+{found.local}" if found.local else ""
    return f"{found.major}.{found.minor}.{found.micro}{before}{local}"


def install(wheels: Built, where: str, folder: Path, *, alone: bool = False, platform: str = "") -> None:
    """Installs wheels of ours and, unless `alone`, the locked versions of what they need.

    `where` is `--target` or `--python`, `folder` its value. For another `platform`, by uv's name, and Python 3.11 only
    wheels are taken: nothing can be built for it here.
    """
    libraries = () if alone else (("--require-hashes", "-r", "requirements.lock"),)
    chosen = ("--python-platform", platform, "--python-version", "3.11", "--only-binary", ":all:") if platform else ()
    # By name, not by path: an installer notes the path of a file, and a bill of materials repeats it. Without a cache,
    # which would take a wheel of the same version for the same.
    ours = [f"{name}=={version(wheel)}" for name, wheel in wheels.items()]
    for what in (*libraries, ("--no-cache", "--no-deps", "--no-index", *_places(wheels), *ours)):
        _run("pip", "install", "-q", where, str(folder), *chosen, *what)


def install_by_name(requirement: str, wheels: Built, environment: Path) -> None:
    """Installs a distribution of ours, such as `kube-runup[sandbox]`, with what it requires, as pip does."""
    ours = environment / "ours.txt"
    ours.write_text("".join(f"{name} @ {wheel.as_uri()}\n" for name, wheel in wheels.items()), encoding="utf-8")
    _run("pip", "install", "-q", "--python", str(environment), "-c", "requirements.lock", "-c", str(ours), requirement)


def _places(wheels: Built) -> list[str]:
    return [
        word for place in sorted({str(wheel.parent) for wheel in wheels.values()}) for word in ("--find-links", place)
    ]


def environment(folder: Path) -> None:
    """An empty virtual environment of this Python."""
    _run("venv", "-q", "--python", sys.executable, str(folder))


def size(folder: Path) -> int:
    """Bytes of the files below `folder`, byte code left out."""
    files = (file for file in folder.rglob("*") if file.is_file() and not file.is_symlink() and file.suffix != ".pyc")
    return sum(file.stat().st_size for file in files)


def _run(*words: str) -> None:
    # Where a company's proxy signs, its authority is among the machine's.
    env = {"UV_SYSTEM_CERTS": "true", **os.environ, "VIRTUAL_ENV": sys.prefix}
    subprocess.run([UV, *words], cwd=ROOT, check=True, env=env)
