"""The built wheel, and installations of it: what `krew_archive.py` and `sizes.py` share. Needs uv and the index."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from packaging.version import Version

ROOT = Path(__file__).parents[1]
_BACKEND = ("--build-constraints", "requirements-build.lock", "--require-build-hashes")
UV = str(Path(sys.executable).with_name("uv"))


def wheel(folder: Path, sources: Path = ROOT) -> Path:
    """The wheel of `sources`, built into `folder` by the locked build backend."""
    _run("build", "-q", "--wheel", "--out-dir", str(folder), *_BACKEND, str(sources))
    return next(folder.glob("runup-*.whl"))


def sdist(folder: Path) -> Path:
    """The source distribution, built into `folder`."""
    _run("build", "-q", "--sdist", "--out-dir", str(folder), *_BACKEND)
    return next(folder.glob("runup-*.tar.gz"))


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


def install(built: Path, where: str, folder: Path, *, alone: bool = False, platform: str = "") -> None:
    """`built` and, unless `alone`, the locked versions of what it needs.

    `where` is `--target` or `--python`, `folder` its value. For another `platform`, by uv's name, and Python 3.11 only
    wheels are taken: nothing can be built for it here.
    """
    libraries = () if alone else (("--require-hashes", "-r", "requirements.lock"),)
    chosen = ("--python-platform", platform, "--python-version", "3.11", "--only-binary", ":all:") if platform else ()
    for what in (*libraries, ("--no-deps", str(built))):
        _run("pip", "install", "-q", where, str(folder), *chosen, *what)


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
