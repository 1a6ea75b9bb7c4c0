"""kube-apiserver and etcd for tests: found or built once, in a folder outside the checkout.

In: the environment. Out: the folder that holds both programs, or `Unavailable` with the reason and the way out.
`KUBEBUILDER_ASSETS`, where set, names a folder that has them. Otherwise they are built from the Go module next to this
file into `$XDG_CACHE_HOME/runup/controlplane/KEY`, where KEY hashes the module: another version is another folder.
RUNUP_KUBERNETES=1.29 takes the versions of `1.29.mod` instead of those of `go.mod`; so does the name of every other
`.mod` next to this file, `newest` among them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = ("kube-apiserver", "etcd")
KUBERNETES = "RUNUP_KUBERNETES"
PINNED = "go"
# Of the other versions, the newest one (`newest.mod`).
NEWEST = "newest"
_PROGRAM_SOURCES = ("kube-apiserver/main.go", "etcd/main.go")


class Unavailable(Exception):
    """There is no control plane on this machine; the message says why and what would give one."""


def find(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder with the programs, without building anything; raises Unavailable."""
    assets = environ.get("KUBEBUILDER_ASSETS", "")
    if assets:
        missing = [name for name in PROGRAMS if not os.access(Path(assets, name), os.X_OK)]
        if missing:
            raise Unavailable(f"KUBEBUILDER_ASSETS={assets} has no {' and no '.join(missing)}")
        return Path(assets)
    folder = cache(environ)
    if not complete(folder):
        raise Unavailable(
            "kube-apiserver and etcd are not built; `make e2e` builds them, KUBEBUILDER_ASSETS names others"
        )
    return folder


def build(environ: Mapping[str, str] = os.environ) -> Path:
    """As `find`, but builds what is missing and shows the progress on stderr; raises Unavailable."""
    if environ.get("KUBEBUILDER_ASSETS"):
        return find(environ)
    folder = cache(environ)
    if complete(folder):
        return folder
    go = shutil.which("go", path=environ.get("PATH"))
    if go is None:
        raise Unavailable("there is no Go to build kube-apiserver and etcd with, and KUBEBUILDER_ASSETS is not set")
    packages, modfile = ("./kube-apiserver", "./etcd"), mod_file(environ)
    compile_into(
        go,
        folder,
        module=HERE,
        packages=packages,
        programs=PROGRAMS,
        environ=environ,
        flags=version_flags(environ),
        modfile=modfile,
    )
    return folder


def mod_file(environ: Mapping[str, str] = os.environ) -> Path:
    """The file of the Go module that pins the versions; raises Unavailable if RUNUP_KUBERNETES names no versions."""
    wanted = environ.get(KUBERNETES, "")
    if not wanted:
        return HERE / f"{PINNED}.mod"
    if wanted not in others():
        raise Unavailable(f"{KUBERNETES}={wanted} is not a version that can be built: {', '.join(others())}")
    return HERE / f"{wanted}.mod"


def others() -> tuple[str, ...]:
    """Returns the values of RUNUP_KUBERNETES in addition to the versions of `go.mod`: `1.29`, `newest`."""
    return tuple(sorted(file.stem for file in HERE.glob("*.mod") if file.stem != PINNED))


def cache(environ: Mapping[str, str]) -> Path:
    """Where the programs of this module's versions are, or would be."""
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".cache")
    pinned = mod_file(environ)
    sources = (pinned, pinned.with_suffix(".sum"), *(HERE / name for name in _PROGRAM_SOURCES))
    content = b"\0".join(source.read_bytes() for source in sources)
    return Path(base) / "runup" / "controlplane" / f"{version(environ)}-{hashlib.sha256(content).hexdigest()[:12]}"


def version(environ: Mapping[str, str] = os.environ) -> str:
    """The version of Kubernetes that is pinned, `v1.y.z`."""
    found = re.search(r"k8s\.io/kubernetes (v[0-9.]+)", mod_file(environ).read_text())
    assert found is not None
    return found[1]


def compile_into(
    go: str,
    folder: Path,
    module: Path,
    packages: Sequence[str],
    programs: Sequence[str],
    environ: Mapping[str, str],
    flags: str = "-s -w",
    *,
    modfile: Path | None = None,
) -> None:
    """Build `packages` of the Go module in `module` into `folder`, unless another process does; raises Unavailable."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _only_one(folder.with_suffix(".lock")):
        if not complete(folder, programs):
            _build(
                go,
                folder,
                module=module,
                packages=packages,
                environ=environ,
                flags=flags,
                modfile=modfile or module / "go.mod",
            )


def complete(folder: Path, programs: Sequence[str] = PROGRAMS) -> bool:
    return all(os.access(folder / name, os.X_OK) for name in programs)


def _build(
    go: str, folder: Path, module: Path, packages: Sequence[str], environ: Mapping[str, str], flags: str, modfile: Path
) -> None:
    started = time.monotonic()
    _tell(f"building {folder.name} of {module.name} (minutes, once)")
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".build-") as made:
        command = [
            go,
            "build",
            "-v",
            "-trimpath",
            "-modfile",
            str(modfile),
            "-ldflags",
            flags,
            "-o",
            f"{made}/",
            *packages,
        ]
        # -mod=mod would let the build change go.sum, which pins what is built.
        # Servers up to 1.30 have clouds in them, whose libraries take longer to build than all the rest.
        wanted = {**environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -tags=providerless"}
        code, tail = _run(command, module, wanted, started)
        if code:
            raise Unavailable(f"go build ended with {code}:\n{tail}")
        shutil.rmtree(folder, ignore_errors=True)
        Path(made).rename(folder)
        Path(made).mkdir()  # what TemporaryDirectory removes
    folder.chmod(0o755)
    _tell(f"built in {time.monotonic() - started:.0f} s: {folder}")


def version_flags(environ: Mapping[str, str] = os.environ) -> str:
    """Without these /version answers v0.0.0."""
    package, (_, minor, _) = "k8s.io/component-base/version", version(environ).split(".")
    values = {"gitVersion": version(environ), "gitMajor": "1", "gitMinor": minor}
    return " ".join(("-s -w", *(f"-X {package}.{name}={value}" for name, value in values.items())))


def _run(command: list[str], module: Path, environ: dict[str, str], started: float) -> tuple[int, str]:
    """Exit code and last lines; a line of progress every few seconds, by the packages that `go build -v` names."""
    lines: list[str] = []
    shown = started
    out, error = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(command, cwd=module, env=environ, stdout=out, stderr=error) as process:
        assert process.stderr is not None
        for raw in process.stderr:
            lines.append(raw.decode(errors="replace").rstrip())
            if (now := time.monotonic()) - shown >= 10:
                shown = now
                _tell(f"{now - started:4.0f} s  {len(lines)} packages, now {lines[-1]}")
    return process.returncode, "\n".join(lines[-20:])


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _tell(text: str) -> None:
    print(f"controlplane: {text}", file=sys.stderr, flush=True)
