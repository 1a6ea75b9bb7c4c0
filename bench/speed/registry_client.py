"""oras against the registry client of our own, on what a release needs (docs/decisions/0007).

Import, time and memory of pulling and pushing a large layer, and how each ends where a registry lies, breaks off, is
overloaded, wants credentials or is not there. Each pull is a process of its own, given 20 seconds. "right" is whether
it ended as an operator of clusters needs it: every row says what that is.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.kubekit.oci.registries import sandbox_registry

from bench.measure import Run, process, spread
from bench.speed.registry_cases import CASES, DEADLINE_S, MIB, Case, Done, do, world_in
from kubekit.oci.images import Execution
from kubekit.oci.reference import sha256
from runup.release.control.image_build import BuiltImage, Layer, build_image
from runup.sandbox.processes.services import write_credentials_file

CLIENTS = ("oras", "runup")
IMPORTS = {"oras": "import oras.layout", "runup": "import kubekit.oci.registry", "bare interpreter": "pass"}
ROUNDS = 9
LARGE_MIB = 128
LARGE_ROUNDS = 3


def run() -> dict[str, Any]:
    """All of it, both clients in turns."""
    cases = _cases()
    right = {client: f"{sum(case[client]['right'] for case in cases.values())} of {len(cases)}" for client in CLIENTS}
    return {"import": _imports(), f"layer_of_{LARGE_MIB}_mib": _large(), "right": right, "cases": cases}


def _imports() -> dict[str, Any]:
    def once(code: str) -> Run:
        return process([sys.executable, "-c", code])

    for code in IMPORTS.values():
        once(code)  # writes byte code
    rounds = [{name: once(code) for name, code in IMPORTS.items()} for _ in range(ROUNDS)]
    return {
        name: {
            "seconds": spread([found[name].seconds for found in rounds]),
            "peak_mib": spread([found[name].peak_mib for found in rounds], 1),
        }
        for name in IMPORTS
    }


def _large() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        data = os.urandom(LARGE_MIB * MIB)
        layer = Layer(data, sha256(data))
        built = build_image(folder / "made", [layer], tag="1", config=Execution())
        del data, layer
        found: dict[str, Any] = {}
        for client in CLIENTS:
            rounds = [_there_and_back(folder / f"{client}-{number}", built, client) for number in range(LARGE_ROUNDS)]
            for at, what in enumerate(("push", "pull")):
                runs = [done[at] for done in rounds]
                assert all(done.refused == "" for done in runs), runs
                found[f"{what}, {client}"] = {
                    "seconds": spread([done.run.seconds for done in runs]),
                    "peak_mib": spread([done.run.peak_mib for done in runs], 1),
                }
        return found


def _there_and_back(folder: Path, built: BuiltImage, client: str) -> tuple[Done, Done]:
    folder.mkdir()
    with sandbox_registry(folder) as host:
        job = {"client": client, "layout": str(built.layout), "tag": "1", "digest": built.digest}
        (folder / "docker").mkdir()
        write_credentials_file(folder / "docker" / "config.json", host, {"writer": "word"})
        push = {"do": "push", "image": f"{host}/a/b:1", "auth_file": str(folder / "docker" / "config.json")}
        pushed = do(folder, {**job, **push}, {"DOCKER_CONFIG": str(folder / "docker")})
        pulled = do(folder, {**job, "do": "pull", "image": f"{host}/a/b@{built.digest}", "layout": str(folder / "p")})
    return pushed, pulled


def _cases() -> dict[str, Any]:
    return {name: {"wanted": case.wanted, **{c: _one(case, c) for c in CLIENTS}} for name, case in CASES.items()}


def _one(case: Case, client: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name, world_in(Path(name)) as world:
        pulled = world.folder / "pulled"
        job = case.prepare(world)
        done = do(world.folder, {"client": client, "layout": str(pulled), **job}, case.env(world))
        ended = f"not done in {DEADLINE_S} s" if done.refused is None else done.refused or "done"
        wrong = _wrong_blobs(pulled)
        return {
            "right": case.right(world, done) and not wrong,
            "ended": ended,
            "message": done.message.replace(str(world.folder), "FOLDER").replace(world.odd.host, "REGISTRY"),
            "wrong_bytes_kept": wrong,
            "seconds": round(done.run.seconds, 2),
            "peak_mib": round(done.run.peak_mib, 1),
            "requests": len(world.odd.asked),
        }


def _wrong_blobs(layout: Path) -> int:
    """How many files of a layout are named after another content's digest."""
    blobs = (layout / "blobs" / "sha256").glob("[0-9a-f]*")
    return sum(hashlib.sha256(blob.read_bytes()).hexdigest() != blob.name for blob in blobs)
