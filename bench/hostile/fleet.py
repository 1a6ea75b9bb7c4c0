"""`python -m bench hostile_fleet`: a fleet of dumps as people send them, each compared with `preflight run` of it.

The dumps are made from the examples with a seed: whole ones, broken and cut files, half-copied folders, duplicates,
large ones, two clusters in one folder, cut archives, and empty folders. Each cluster of `fleet preflight` must have the
result that `preflight run --dump` has. Then processes are killed while the fleet is read: a worker, and the command.
`--keep DIR` only makes the dumps.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runup.cli.main import main as runup

EXAMPLES = Path(__file__).parents[2] / "examples"
SAMPLES = ("skip-level", "plain-kubernetes")
RECORD, VERSIONS = "runup-dump.json", "clusterversions.config.openshift.io.json"
JSON = dict[str, Any]


def set_cluster_id(folder: Path, cluster_id: str) -> None:
    """Gives the cluster of a dump an ID."""
    for name, path in ((VERSIONS, ("spec", "clusterID")), ("namespaces.json", ("metadata", "uid"))):
        if (file := folder / name).is_file():
            document = json.loads(file.read_text())
            for item in document["items"]:
                if name == VERSIONS or item["metadata"]["name"] == "kube-system":
                    item[path[0]][path[1]] = cluster_id
            file.write_text(json.dumps(document))


def _whole(folder: Path, rng: random.Random) -> None:
    """Copies an example, and gives the cluster an ID."""
    sample = EXAMPLES / rng.choice(SAMPLES)
    shutil.copytree(sample, folder)
    set_cluster_id(folder, str(uuid.UUID(int=rng.getrandbits(128), version=4)))


def _some_files(folder: Path, rng: random.Random) -> list[Path]:
    files = sorted(file for file in folder.glob("*.json") if file.name != RECORD)
    return rng.sample(files, rng.randint(1, max(len(files) // 2, 1)))


def _broken(folder: Path, rng: random.Random) -> None:
    _whole(folder, rng)
    for file in _some_files(folder, rng):
        file.write_bytes(rng.choice((b"", b"{", b"\xff\xfe", b"[]", b'{"kind": 3}', b"\0" * 100)))


def _cut(folder: Path, rng: random.Random) -> None:
    _whole(folder, rng)
    for file in _some_files(folder, rng):
        os.truncate(file, rng.randrange(file.stat().st_size + 1))


def _half_copied(folder: Path, rng: random.Random) -> None:
    _whole(folder, rng)
    for file in _some_files(folder, rng):
        file.unlink()


def _two_clusters(folder: Path, rng: random.Random) -> None:
    for name in ("one", "two"):
        _whole(folder / name, rng)


def _huge(folder: Path, rng: random.Random) -> None:
    _whole(folder, rng)
    file = folder / "pods.json"
    document = json.loads(file.read_text())
    items = document["items"]
    document["items"] = [
        {**item, "metadata": {**item["metadata"], "name": f"{item['metadata']['name']}-{number}"}}
        for number in range(3000 // max(len(items), 1))
        for item in items
    ]
    file.write_text(json.dumps(document))
    record = json.loads((folder / RECORD).read_text())
    for row in record["kinds"]:
        if row["resource"] == "pods":
            row["count"] = len(document["items"])
    (folder / RECORD).write_text(json.dumps(record))


def _empty(folder: Path, _rng: random.Random) -> None:
    folder.mkdir()


KINDS: dict[str, tuple[Callable[[Path, random.Random], None], int]] = {
    "whole": (_whole, 5),
    "broken": (_broken, 3),
    "cut": (_cut, 3),
    "half-copied": (_half_copied, 3),
    "two-clusters": (_two_clusters, 1),
    "huge": (_huge, 1),
    "empty": (_empty, 1),
}


def make(folder: Path, dumps: int, seed: int) -> Counter[str]:
    """Makes the dumps, and returns how many there are of each kind."""
    rng = random.Random(seed)
    made: Counter[str] = Counter()
    names = list(KINDS)
    earlier: list[Path] = []
    for number in range(dumps):
        kind = rng.choices((*names, "duplicate"), (*(weight for _, weight in KINDS.values()), 2))[0]
        kind = kind if earlier or kind != "duplicate" else "whole"
        place = folder / f"c{number:04}-{kind}"
        if kind == "duplicate":
            shutil.copytree(rng.choice(earlier), place)
        else:
            KINDS[kind][0](place, rng)
        if kind == "whole":
            earlier.append(place)
        made[kind] += 1
    for place in sorted(folder.iterdir()):
        if rng.random() < 0.2:
            archive = place.with_name(f"{place.name}.tar.gz")
            with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
                tar.add(place, "must-gather")
            shutil.rmtree(place)
            if rng.random() < 0.2:
                os.truncate(archive, archive.stat().st_size // 2)
                made["cut archive"] += 1
    return made


def _said(document: JSON) -> JSON:
    """What a result says of a cluster, without the times at which it was made."""
    risks = {risk["name"]: (risk["applies"], risk["message"]) for risk in document["risks"]}
    return {"id": document.get("clusterID", ""), "result": document["result"], "risks": risks}


def alone(path: Path) -> JSON:
    """The result of `preflight run` of one dump."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        runup(["preflight", "run", "--dump", str(path), "-o", "json"])
    return _said(json.loads(out.getvalue()))


class Fleet:
    """`fleet preflight` of the dumps as a process; its temporary files are in `scratch`."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.scratch = scratch
        words = [sys.executable, "-m", "runup", "fleet", "preflight", "--dumps", str(folder), "-o", "json"]
        environment = {**os.environ, "TMPDIR": str(scratch)}
        # Not a pipe: nobody reads it while workers are killed, and the command would wait once it is full.
        self._out = tempfile.TemporaryFile(dir=folder.parent)  # noqa: SIM115  it is read after this function
        self.process = subprocess.Popen(words, stdout=self._out, stderr=subprocess.DEVNULL, env=environment)

    def workers(self) -> list[int]:
        """The processes of its workers."""
        file = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        try:
            return [int(pid) for pid in file.read_text().split()]
        except OSError:
            return []

    def results(self) -> dict[str, JSON]:
        """What it says of each cluster."""
        self.process.wait()
        with self._out as out:
            out.seek(0)
            return {each["cluster"]: _said(each) for each in json.load(out)["clusters"]}


def _until_working(fleet: Fleet) -> list[int]:
    while not (workers := fleet.workers()):
        if fleet.process.poll() is not None:
            raise SystemExit("error: the fleet was read before a process could be killed; give more --dumps")
        time.sleep(0.05)
    return workers


def _kill_workers(folder: Path, expected: dict[str, JSON], kills: int, rng: random.Random, scratch: Path) -> JSON:
    """Kills workers at random moments: each dump is read again, so that the results are the same."""
    fleet, killed = Fleet(folder, scratch), 0
    while killed < kills and fleet.process.poll() is None:
        time.sleep(rng.uniform(0.2, 1.0))
        for pid in fleet.workers()[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
    found = fleet.results()
    wrong = sorted(name for name in expected if found.get(name) != expected[name])
    return {"kills": killed, "clusters": len(found), "other results": wrong, "left behind": _left(scratch)}


def _kill_command(folder: Path, number: signal.Signals, rng: random.Random, scratch: Path) -> JSON:
    """Ends the command while it works, and returns what is left of its workers and their files."""
    fleet = Fleet(folder, scratch)
    _until_working(fleet)
    time.sleep(rng.uniform(0.2, 2.0))
    workers = fleet.workers()
    fleet.process.send_signal(number)
    fleet.process.wait()
    deadline = time.monotonic() + 10
    while (alive := [pid for pid in workers if Path(f"/proc/{pid}/exe").exists()]) and time.monotonic() < deadline:
        time.sleep(0.1)
    return {"exit code": fleet.process.returncode, "workers left": len(alive), "left behind": _left(scratch)}


def _left(scratch: Path) -> list[str]:
    left = sorted(each.name for each in scratch.iterdir())
    for each in scratch.iterdir():
        shutil.rmtree(each, ignore_errors=True)
    return left


def main(words: list[str]) -> int:
    """Makes the fleet, compares, kills, and prints what came of it; 1 if a result differs or something is left."""
    parser = argparse.ArgumentParser(prog="python -m bench hostile_fleet", description=__doc__)
    parser.add_argument("--dumps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, default=10, help="kills of workers")
    parser.add_argument("--keep", type=Path, help="only make the dumps in this new folder")
    flags = parser.parse_args(words)
    if flags.keep:
        flags.keep.mkdir(parents=True)
        print(json.dumps(make(flags.keep, flags.dumps, flags.seed)))
        return 0
    with tempfile.TemporaryDirectory(prefix="bench-fleet-") as place:
        folder, scratch = Path(place) / "dumps", Path(place) / "tmp"
        folder.mkdir()
        scratch.mkdir()
        made = make(folder, flags.dumps, flags.seed)
        print(f"bench: {sum(made.values())} dumps are made", file=sys.stderr)
        rng = random.Random(flags.seed)
        found = Fleet(folder, scratch).results()
        expected = {path.name.removesuffix(".tar.gz"): alone(path) for path in sorted(folder.iterdir())}
        wrong = sorted(name for name in expected if found.get(name) != expected[name])
        result: JSON = {
            "seed": flags.seed,
            "dumps": dict(made),
            "results": dict(Counter(each["result"] for each in found.values())),
            "unlike preflight run": wrong,
            "left behind": _left(scratch),
            "workers killed": _kill_workers(folder, expected, flags.kills, rng, scratch),
        }
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            result[f"command ended by {number.name}"] = _kill_command(folder, number, rng, scratch)
    print(json.dumps(result, indent=2))
    bad = wrong or result["workers killed"]["other results"] or result["left behind"]
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
