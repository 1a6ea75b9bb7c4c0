"""Dumps that are made to hurt whoever reads them: too deep, sparse, or small and expensive."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.hostile_images import header

from kubekit.lang.removal import remove_tree
from runup.cli import clusterversion_files
from runup.cli.errors import CommandError
from runup.dump import load
from runup.dump.dump_files import BadDump
from runup.dump.dump_limits import Memory

CLUSTER = "apiVersion: config.openshift.io/v1\nkind: ClusterVersion\nmetadata: {name: version}\n"


def write(folder: Path, **files: str) -> Path:
    """A dump with the ClusterVersion and these files."""
    folder.mkdir(exist_ok=True)
    for name, text in {"cluster": CLUSTER, **files}.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


def deepened(folder: Path, levels: int) -> Path:
    """`folder` with so many folders in one another."""
    handle = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=handle)
        below = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)
    return folder


@pytest.mark.parametrize("levels", [65, 1200])
def test_a_folder_that_is_too_deep(tmp_path: Path, levels: int) -> None:
    """It is refused by name; Python's own walks end by a RecursionError."""
    dump = deepened(write(tmp_path / "dump"), levels)
    with pytest.raises(BadDump, match="has more than 64 folders in one another") as raised:
        load.read(dump)
    assert raised.value.reason == "DumpTooDeep"
    with pytest.raises(CommandError, match="has more than 64 folders in one another"):
        clusterversion_files.dump(str(dump))
    # pytest could not remove it, either.
    assert remove_tree(dump) == ""


def test_a_sparse_file_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    """Two gigabytes that take no place on the disk take none in memory."""
    dump = write(tmp_path / "dump", sparse="")
    os.truncate(dump / "sparse.yaml", 2 << 30)
    found = load.read(dump)
    assert [obj["kind"] for obj in found.objects] == ["ClusterVersion"]
    assert "it holds more than 128 MiB" in found.problems[0]


def test_a_file_whose_name_is_no_text_is_named_all_the_same(tmp_path: Path) -> None:
    """A name may be any bytes; what is told of it can be written as UTF-8, also where nothing else is there."""
    dump = write(tmp_path / "dump")
    (dump / "\udcff.yaml").write_text("a: 1\n")
    (problem,) = load.read(dump).problems
    assert problem.endswith("\\udcff.yaml: it has no apiVersion and kind")
    (dump / "cluster.yaml").unlink()
    with pytest.raises(BadDump, match=r"\\udcff\.yaml: it has no apiVersion"):
        load.read(dump)


def test_brackets_without_end(tmp_path: Path) -> None:
    """In what a dump's own tool should have written, too: the rest is read."""
    dump = write(tmp_path / "dump")
    (dump / "runup-dump.json").write_text("[" * 100_000)
    assert [obj["kind"] for obj in load.read(dump).objects] == ["ClusterVersion"]


def test_a_document_that_would_take_too_much_is_named(tmp_path: Path) -> None:
    """Five megabytes of YAML were 0.3 GiB; what is beyond the limit is not decoded."""
    found = load.read(write(tmp_path / "dump", many="-\n" * 3_000_000))
    assert len(found.problems) == 1
    assert (
        "many.yaml: decoding it would take 549 MiB, more than the 512 MiB that one file may take" in found.problems[0]
    )


def test_objects_that_take_too_much_in_all() -> None:
    """They are counted with all that they hold."""
    memory = Memory("mine", 10_000)
    memory.take({"a": ["b" * 1000]})
    with pytest.raises(BadDump, match="the objects of the dump mine take more than"):
        memory.take({"a": ["b" * 10_000]})


def pax(records: bytes) -> bytes:
    """An extended header."""
    return header(b"PaxHeader", b"x", len(records)) + records + bytes(-len(records) % 512)


ARCHIVES = {
    "a sparse file of 2.2 GiB in 443 bytes": (header(b"a.yaml", b"S", 512), "sparse"),
    "a pax sparse file": (pax(b"22 GNU.sparse.major=1\n") + header(b"a.yaml"), "sparse"),
    "an extended header of 2 GiB": (header(b"PaxHeader", b"x", 2 << 30), "a header has 2147483648 bytes"),
    "a file that claims 3 GiB": (header(b"a.yaml", size=3 << 30), "unpacks to more than 2 GiB"),
    "a file that ends too soon": (header(b"a.yaml", size=5000) + bytes(512), "ends in the middle"),
    "no archive": (b"\x1f\x8b" + bytes(600), "is not a readable archive"),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_archives(tmp_path: Path, name: str) -> None:
    """Each is refused before it takes memory or place, packed or not; nothing is left behind."""
    data, words = ARCHIVES[name]
    for suffix, content in (("tar", data), ("tar.gz", gzip.compress(data))):
        file = tmp_path / f"dump.{suffix}"
        file.write_bytes(content)
        with pytest.raises(BadDump, match=words):
            load.read(file)


@pytest.mark.parametrize("suffix", ["gz", "xz", "bz2"])
def test_packed_in_each_way(tmp_path: Path, suffix: str) -> None:
    """What tar writes is read, whatever packs it."""
    write(tmp_path / "dump")
    subprocess.run(["tar", "-caf", f"dump.tar.{suffix}", "dump"], cwd=tmp_path, check=True)
    assert load.read(tmp_path / f"dump.tar.{suffix}").one("config.openshift.io", "ClusterVersion", "version")


_READ = """
import re, sys
from pathlib import Path
from runup.dump import load
# Of this program alone: what getrusage says begins with what the process had that started it.
peak = lambda: int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
before = peak()
load.read(Path(sys.argv[1]))
print((peak() - before) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("line", ["-\n", "- - -\n", "k{}:\n"])
def test_memory_within_the_limits(tmp_path: Path, line: str) -> None:
    """The most expensive document that is let in takes less than 1 GiB."""
    marks = 2 if "- -" not in line else 4
    count = int(500 * 1024 * 1024 / (6 * max(9, len(line)) + 180 * marks))
    dump = write(tmp_path / "dump", many="".join(line.format(number) for number in range(count)))
    done = subprocess.run([sys.executable, "-c", _READ, str(dump)], capture_output=True, text=True, check=True)
    assert 10 < int(done.stdout) < 1024
