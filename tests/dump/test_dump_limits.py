"""Dumps that are made to hurt whoever reads them: too deep, sparse, or small and expensive."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from bench.hostile.images import header
from tests.cli.commands import Run
from tests.cli.commands import run as run

from kubekit.error_types import InputError
from kubekit.lang.files import remove_tree
from runup.dump import clusterversion_files, dump_limits, large_lists, load
from runup.dump.dump_files import BadDump
from runup.dump.dump_limits import MIB, Memory

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
    with pytest.raises(InputError, match="has more than 64 folders in one another"):
        clusterversion_files.dump(str(dump))
    # pytest could not remove it, either.
    assert remove_tree(dump) == ""


def test_a_sparse_file_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    """Two gigabytes that take no place on the disk take none in memory."""
    dump = write(tmp_path / "dump", sparse="")
    os.truncate(dump / "sparse.yaml", 2 << 30)
    found = load.read(dump)
    assert [obj["kind"] for obj in found.objects] == ["ClusterVersion"]
    assert "it holds more than 128 MiB; give a dump of fewer namespaces" in found.problems[0]


def test_a_file_whose_name_is_no_text_is_named_all_the_same(tmp_path: Path) -> None:
    """A name may be any bytes; what is reported of it can be written as UTF-8, also where nothing else is there."""
    dump = write(tmp_path / "dump")
    (dump / "\udcff.yaml").write_text("a: 1\n")
    (problem,) = load.read(dump).problems
    assert problem.endswith("\\udcff.yaml: it has no apiVersion and kind")
    (dump / "cluster.yaml").unlink()
    with pytest.raises(BadDump, match=r"\\udcff\.yaml: it has no apiVersion"):
        load.read(dump)


@pytest.mark.parametrize("version", ["9" * 5000, "\N{SUPERSCRIPT TWO}"], ids=["far too long", "a digit alone"])
def test_a_version_that_is_no_number(tmp_path: Path, version: str) -> None:
    """It is older than any other, and no error."""
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: node-0, resourceVersion: '%s'}\n"
    dump = write(tmp_path / "dump", later=node % version, sooner=node % "7" + "spec: {unschedulable: true}\n")
    found = load.read(dump).one("", "Node", "node-0")
    assert found and found["spec"] == {"unschedulable": True}


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59"])
def test_times_at_the_ends_of_all_years(tmp_path: Path, time: str) -> None:
    """They do not tell when a dump is of."""
    rows = f"status: {{conditions: [{{type: A, status: 'True', lastTransitionTime: '{time}'}}]}}\n"
    dump = write(tmp_path / "dump", cluster=CLUSTER + rows)
    assert load.time_of_dump(load.read(dump)) is None


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


def pods(number: int, **more: object) -> dict[str, object]:
    """A list as the API server answers it, of pods whose managers said much."""
    fields = [{"manager": "kubelet", "fieldsV1": {f"f:{n}": {} for n in range(300)}}]
    names = [{"name": f"p{n}", "namespace": "a", "managedFields": fields} for n in range(number)]
    items = [{"apiVersion": "v1", "kind": "Pod", "metadata": name, "spec": {"x": [1] * 300}} for name in names]
    return {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "7"}, "items": items, **more}


def test_a_list_that_would_take_too_much_at_once_is_read_item_by_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some thousand pods would take more than a file may; without their managers' fields they take a fraction."""
    monkeypatch.setattr(dump_limits, "MAX_DECODING_BYTES", MIB)
    dump = write(tmp_path / "dump")
    (dump / "pods.json").write_text(json.dumps(pods(30)))
    found = load.read(dump)
    assert found.problems == ()
    assert [obj["kind"] for obj in found.objects].count("Pod") == 30
    assert found.objects[1]["spec"] == {"x": [1] * 300}
    entries = [entry for obj in found.objects for entry in obj["metadata"].get("managedFields", ())]
    assert entries
    assert not any("fieldsV1" in entry for entry in entries)
    # It is as complete as any answer of the server is.
    assert found.collected.covers(("", "pods"), "a")


def test_items_that_are_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader of packed items gets all of each object, its managers' fields too; a nameless one is named."""
    monkeypatch.setattr(dump_limits, "MAX_DECODING_BYTES", MIB)
    document = pods(30)
    items = document["items"]
    assert isinstance(items, list)
    dump = write(tmp_path / "dump")
    (dump / "pods.json").write_text(json.dumps({**document, "items": [*items, {"metadata": {"labels": {}}}]}))
    found = load.read(dump, packs=True)
    packed = [obj for obj in found.objects if obj["kind"] == "Pod"]
    assert [large_lists.unpacked(obj) for obj in packed] == items
    assert {key for obj in packed for key in obj} == {"apiVersion", "kind", "metadata", large_lists.PACKED}
    assert "has no metadata.name" in "".join(found.problems)


LARGE_LISTS = {
    "an item that is larger than any object": (pods(1, items=[{"x": [1] * 400_000}]), "item 1 is larger than any"),
    "an item that is no object": (pods(1, items=[*range(10_000)]), "decoding it would take"),
    "no list": ({"kind": "Pod", "spec": {"x": [1] * 10_000}}, "decoding it would take"),
}


@pytest.mark.parametrize("name", LARGE_LISTS)
def test_large_files_that_are_refused(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name; the rest of the dump is read."""
    monkeypatch.setattr(dump_limits, "MAX_DECODING_BYTES", MIB)
    document, words = LARGE_LISTS[name]
    dump = write(tmp_path / "dump")
    (dump / "large.json").write_text(json.dumps(document))
    found = load.read(dump)
    assert words in "".join(found.problems)
    assert [obj["kind"] for obj in found.objects] == ["ClusterVersion"]


UNREADABLE = {"bytes that are no UTF-8": b'"\xff"', "a number out of range": b"1e999"}


@pytest.mark.parametrize("packs", [False, True])
@pytest.mark.parametrize("value", UNREADABLE.values(), ids=UNREADABLE)
def test_a_large_list_with_an_item_that_cannot_be_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: bytes, packs: bool
) -> None:
    """It is refused when it is read, and not when a packed item is unpacked."""
    monkeypatch.setattr(dump_limits, "MAX_DECODING_BYTES", MIB)
    dump = write(tmp_path / "dump")
    text = json.dumps(pods(30)).encode()
    (dump / "pods.json").write_bytes(text.replace(b'"spec": {', b'"spec": {"odd": ' + value + b", ", 1))
    found = load.read(dump, packs=packs)
    assert "pods.json: decoding it would take" in "".join(found.problems)
    assert [obj["kind"] for obj in found.objects] == ["ClusterVersion"]


def test_objects_that_take_too_much_in_all() -> None:
    """They are counted with all that they hold; the file that takes most is named."""
    memory = Memory("mine", 5 * MIB)
    memory.take({"a": ["b" * MIB]}, "small.yaml")
    memory.take({"a": ["b" * (3 * MIB)]}, "large\udcff.yaml")
    memory.take({"a": ["b" * 1000]}, "small.yaml")
    with pytest.raises(BadDump) as raised:
        memory.take({"a": ["b" * MIB]}, "last.yaml")
    assert raised.value.reason == "DumpTooLarge"
    assert raised.value.message == (
        "the objects of the dump mine take more than 5 MiB, the most of them large\\udcff.yaml with 3 MiB; give a dump "
        "of fewer namespaces, or collect what checks read: runup dump collect"
    )


@pytest.mark.parametrize(
    ("words", "code", "shown"),
    [
        pytest.param(
            ("preflight", "run", "--from=5.0.0", "--to=5.0.1"),
            3,
            "warning: dump: {0}: it holds more than 128 MiB; give a dump of fewer namespaces\n"
            "warning: dump: The dump shows no time, so checks that depend on the time are unknown.\n",
            id="preflight run",
        ),
        pytest.param(
            ("upgrade",),
            1,
            "error: {0}: it holds more than 64 MiB; give a dump without it, or of fewer namespaces\n",
            id="upgrade",
        ),
    ],
)
def test_what_a_command_says_of_a_file_that_is_too_large(
    tmp_path: Path, run: Run, words: tuple[str, ...], code: int, shown: str
) -> None:
    """One line that names the file and the way out: what needs no more than the rest continues without it."""
    dump = write(tmp_path / "dump", sparse="")
    os.truncate(dump / "sparse.yaml", (128 << 20) + 1)
    ran = run(*words, "--dump", dump)
    assert (ran.code, ran.err) == (code, shown.format(dump / "sparse.yaml"))


@pytest.mark.parametrize("words", [("preflight", "run", "--to=5.0.1"), ("upgrade", "status")], ids=" ".join)
def test_what_a_command_says_of_a_dump_that_is_too_large(
    tmp_path: Path, run: Run, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One error, and nothing is concluded from a part."""
    monkeypatch.setattr(Memory.__init__, "__defaults__", (MIB,))
    dump = write(tmp_path / "dump")
    (dump / "pods.json").write_text(json.dumps(pods(500)))
    ran = run(*words, "--dump", dump)
    assert (ran.code, ran.out) == (1, "")
    begins = f"error: the objects of the dump dump take more than 1 MiB, the most of them {dump}/pods.json with "
    assert ran.err.startswith(begins)
    assert ran.err.endswith("; give a dump of fewer namespaces, or collect what checks read: runup dump collect\n")


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
    """Archives that tar writes are read, whatever the compression."""
    write(tmp_path / "dump")
    subprocess.run(["tar", "-caf", f"dump.tar.{suffix}", "dump"], cwd=tmp_path, check=True)
    assert load.read(tmp_path / f"dump.tar.{suffix}").one("config.openshift.io", "ClusterVersion", "version")


_READ = """
import re, sys
from pathlib import Path
from runup.dump import dump_limits, large_lists, load
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


LISTS = {
    "as many items as may be": '{"items":[' + ",".join(["{}"] * 499_999) + "]}",
    "a million objects in items": '{"items":[' + ",".join(['{"a":[' + ",".join(["{}"] * 998) + "]}"] * 4_000) + "]}",
    "lists in items": '{"items":[' + ",".join(['{"a":[' + "[]," * 100_000 + "0]}"] * 300) + "]}",
}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_memory_of_a_dump_at_its_limit(tmp_path: Path) -> None:
    """So many objects that a few more would be refused, in files of some megabytes."""
    objects = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{n:06}", "namespace": "a"}, "data": data}
        for n, data in enumerate([{f"k{i}": "x" * 40 for i in range(100)}] * 1000)
    ]
    each = sum(dump_limits.size_of(obj) for obj in objects)
    fitting = dump_limits.MAX_OBJECTS_BYTES // each
    text = json.dumps({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {}, "items": objects})
    for count, code in ((fitting, 0), (fitting + 1, 1)):
        dump = write(tmp_path / str(count))
        for number in range(count):
            (dump / f"maps{number}.json").write_text(text.replace('"c0', f'"{number:03}c0'))
        done = subprocess.run([sys.executable, "-c", _READ, str(dump)], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        if code:
            assert "take more than 448 MiB" in done.stderr
        else:
            assert 300 < int(done.stdout) < 1024


@pytest.mark.slow
@pytest.mark.parametrize("name", LISTS)
def test_memory_of_large_lists(tmp_path: Path, name: str) -> None:
    """Within the same limit, whatever is in the items."""
    dump = write(tmp_path / "dump")
    (dump / "many.json").write_text(LISTS[name])
    done = subprocess.run([sys.executable, "-c", _READ, str(dump)], capture_output=True, text=True, check=True)
    assert 10 < int(done.stdout) < 1024
