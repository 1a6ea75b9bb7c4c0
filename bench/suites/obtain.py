"""Suites from the package registries: Go modules from the module proxy, source distributions from PyPI.

In: a suite of the table. Out: a writable copy in the cache, or Unavailable with the registry's own words.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.suites.table import GoSuite, PythonSuite

HELPERS = Path(__file__).with_name("helpers")
_TIMEOUT_S = 900.0
# What the suites import in turn has the newest version of this day, so that it is pinned, too.
_PACKAGES_OF = "2026-11-29T00:00:00Z"


class Unavailable(Exception):
    """A suite that could not be obtained; the message has the words of the registry or of the build."""


def cache(environ: Mapping[str, str] = os.environ) -> Path:
    """Returns the folder of the suites: `peers` in the cache of runup."""
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "runup" / "peers"


def go_module(name: str, suite: GoSuite, base: Path) -> Path:
    """Returns a writable copy of the module, or the project that its program makes. Raises Unavailable."""
    folder = base / "go" / f"{name}-{suite.version}"
    if (folder / "go.mod").exists():
        return folder
    if suite.scaffold:
        return _scaffold(suite, folder)
    made = folder.with_name(f"{folder.name}-new")
    shutil.rmtree(made, ignore_errors=True)
    for part, module in {"": suite.module, **suite.nested}.items():
        shutil.copytree(_downloaded(module, suite.version, base), made / part, copy_function=_copy_writable)
        # A copied folder has the rights of the module cache, which is read-only.
        for path in (made / part, *(made / part).rglob("*/")):
            path.chmod(0o755)
    made.rename(folder)
    return folder


def _downloaded(module: str, version: str, base: Path) -> Path:
    """Returns the module's folder in Go's module cache. Raises Unavailable."""
    answer = subprocess.run(
        ("go", "mod", "download", "-json", f"{module}@{version}"),
        cwd=base, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False,
    )  # fmt: skip
    downloaded = json.loads(answer.stdout or "{}")
    if "Dir" not in downloaded:
        raise Unavailable(downloaded.get("Error") or answer.stderr.strip())
    return Path(downloaded["Dir"])


def _copy_writable(source: str, target: str) -> None:
    shutil.copyfile(source, target)


def _scaffold(suite: GoSuite, folder: Path) -> Path:
    programs = folder.with_name(f"{folder.name}-bin")
    programs.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "GOBIN": str(programs)}
    run_or_fail(("go", "install", f"{suite.module}@{suite.version}"), programs, environment)
    program = next(path for path in programs.iterdir() if path.is_file())
    made = folder.with_name(f"{folder.name}-new")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    for arguments in suite.scaffold:
        run_or_fail((str(program), *arguments), made, os.environ)
    run_or_fail(("make", "manifests", "generate"), made, os.environ)
    made.rename(folder)
    return folder


def source_distribution(name: str, suite: PythonSuite, base: Path) -> tuple[Path, Path]:
    """Returns the unpacked source distribution and the interpreter that has its requirements. Raises Unavailable."""
    folder, environment = base / "src" / f"{name}-{suite.version}", base / "venvs" / f"{name}-{suite.version}"
    uv = str(Path(sys.executable).with_name("uv"))
    if not folder.exists():
        archives = base / "sdists"
        archives.mkdir(parents=True, exist_ok=True)
        archive = archives / f"{name}-{suite.version}.tar.gz"
        if not archive.exists():
            # Only the suite as source: what it is built with comes as wheels.
            download = (sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", name)
            run_or_fail((*download, "-d", str(archives), f"{name}=={suite.version}"), base, os.environ)
        with tarfile.open(archive) as members:
            members.extractall(base / "src", filter="data")
        for helper, target in suite.helpers.items():
            shutil.copytree(HELPERS / helper, folder / target, dirs_exist_ok=True)
    if missing := [test for test in suite.tests if not (folder / test).exists()]:
        raise Unavailable(f"the source distribution has no {', '.join(missing)}")
    python = environment / "bin" / "python"
    if not (environment / "complete").exists():
        run_or_fail((uv, "venv", "-q", "--clear", str(environment)), base, os.environ)
        wanted = (f"{name}=={suite.version}", *suite.requirements)
        run_or_fail(
            (uv, "pip", "install", "-q", "--exclude-newer", _PACKAGES_OF, "--python", str(python), *wanted),
            base,
            os.environ,
        )
        (environment / "complete").touch()
    return folder, python


def run_or_fail(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Runs a command in `folder`. Raises Unavailable with the end of what it prints."""
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(str(error)) from error
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        raise Unavailable(f"{' '.join(command[:4])} failed: " + " | ".join(lines[-4:]))
