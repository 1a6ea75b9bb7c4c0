"""Dumps that an object store has: a fleet as in a folder, and nothing of it is left on this machine."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.cli.commands import Run

ROOT = Path(__file__).parents[3]
PLAIN = ROOT / "examples" / "plain-kubernetes"
DEADLINE_S = 240


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go: what is left there is seen."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path / "tmp"


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    """A folder with a dump, a packed dump, and another file."""
    folder = tmp_path / "dumps"
    shutil.copytree(PLAIN, folder / "orchard")
    with tarfile.open(folder / "meadow.tar.gz", "w:gz") as tar:
        tar.add(PLAIN, "meadow")
    (folder / "notes.txt").write_text("no dump")
    return folder


def clusters(out: str) -> dict[str, int]:
    """The number of risks of each cluster in a machine form."""
    return {each["cluster"]: len(each["risks"]) for each in json.loads(out)["clusters"]}


def test_without_its_package(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names it, and how it is installed."""
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    ran = run("fleet", "preflight", "--dumps", "s3://bucket/prefix")
    assert (ran.code, ran.out) == (1, "")
    way_out = "install what reads it: pip install 'kube-runup[s3]'"
    assert ran.err == f"error: --dumps s3://bucket/prefix: package fsspec is not installed; {way_out}\n"


@pytest.mark.slow
def test_any_address_of_fsspec_is_a_fleet_as_its_folder_is(run: Run, dumps: Path, scratch: Path) -> None:
    """The same names and risks; what is no dump is reported."""
    pytest.importorskip("fsspec")
    here = run("fleet", "preflight", "--dumps", dumps, "-o", "json")
    there = run("fleet", "preflight", "--dumps", f"file://{dumps}", "-o", "json")
    assert clusters(there.out) == clusters(here.out)
    assert there.code == here.code == 2
    assert "left out: notes.txt\n" in there.err
    assert list(scratch.iterdir()) == []


@pytest.mark.slow
def test_results_name_the_address_and_not_where_the_dump_lay(run: Run, dumps: Path, tmp_path: Path) -> None:
    """Two runs say the same: a code host would take another folder for another finding."""
    pytest.importorskip("fsspec")
    (dumps / "void").mkdir()
    (dumps / "void" / "version.json").write_text("{}")
    shown = []
    for number in range(2):
        file = tmp_path / f"{number}.sarif"
        run("fleet", "preflight", "--dumps", f"file://{dumps}", "-o", f"sarif={file}", "-o", "json")
        shown.append(file.read_text())
        assert "runup-dump-" not in shown[-1]
        assert f"file://{dumps}/orchard/" in shown[-1]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("command", ["preflight", "status", "recommend"])
def test_a_dump_that_cannot_be_read_is_named_by_its_address(run: Run, dumps: Path, command: str) -> None:
    """The folder in which it was is gone when somebody reads that."""
    pytest.importorskip("fsspec")
    (dumps / "void").mkdir()
    (dumps / "void" / "version.json").write_text("{}")
    ran = run("fleet", command, "--dumps", f"file://{dumps}", "-o", "json")
    assert f"file://{dumps}/void" in ran.out
    assert "runup-dump-" not in ran.out + ran.err


@pytest.mark.parametrize("words", [("preflight",), ("status",)], ids=" ".join)
def test_a_password_in_an_address_is_not_taken(run: Run, words: tuple[str, ...]) -> None:
    """Nor said: the address would be printed, and kept with the reports."""
    ran = run("fleet", *words, "--dumps", "ftp://joe:hunter2@dumps.example/all")
    assert (ran.code, ran.out, "hunter2" in ran.err) == (1, "", False)
    assert ran.err.startswith("error: --dumps: an address with a password would be printed and kept; leave it out, ")


DASK = ("--engine", "dask", "--scheduler", "tcp://127.0.0.1:9")
FOR_OTHERS = {
    "an archive that is unpacked here": (
        ("preflight", "--dumps", "{dumps}/meadow.tar.gz", *DASK),
        "what is unpacked here is not on their machines",
    ),
    "copies": (
        ("rehearse", "--dumps", "{dumps}", "--release-dir", "{dumps}", *DASK),
        "--engine dask: copies of clusters are made on this machine; leave it out",
    ),
}


@pytest.mark.parametrize(("words", "said"), FOR_OTHERS.values(), ids=list(FOR_OTHERS))
def test_what_other_machines_do_not_have(run: Run, dumps: Path, words: tuple[str, ...], said: str) -> None:
    """It is refused before they are asked."""
    ran = run("fleet", *(word.format(dumps=dumps) for word in words))
    assert (ran.code, ran.out) in ((1, ""), (2, ""))
    assert said in ran.err


def test_an_inventory_names_one(run: Run, dumps: Path, tmp_path: Path) -> None:
    """The address is not relative to the file."""
    pytest.importorskip("fsspec")
    entry = {"name": "meadow", "dump": f"file://{dumps}/meadow.tar.gz"}
    (tmp_path / "fleet.json").write_text(json.dumps({"clusters": [entry]}))
    ran = run("fleet", "preflight", "--inventory", tmp_path / "fleet.json", "-o", "json")
    assert list(clusters(ran.out)) == ["meadow"]


WRONG = {
    "no such prefix": ("/nowhere", "there is no such bucket or prefix; name one that has dumps"),
    "one file": ("/notes.txt", "is one file; give the folder or prefix that the dumps are in"),
    "nothing but a file": ("/orchard", "has no dump (a folder or a tar archive)"),
}


@pytest.mark.parametrize(("place", "said"), WRONG.values(), ids=list(WRONG))
def test_where_there_is_no_fleet(run: Run, dumps: Path, place: str, said: str) -> None:
    """One sentence, which names the address."""
    pytest.importorskip("fsspec")
    ran = run("fleet", "preflight", "--dumps", f"file://{dumps}{place}")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"error: --dumps file://{dumps}{place}: {said}")
    assert ran.err.count("\n") == 1


def test_an_address_of_no_kind(run: Run) -> None:
    """In the words of what reads it."""
    pytest.importorskip("fsspec")
    ran = run("fleet", "preflight", "--dumps", "carrier+pigeon://coop")
    assert (ran.code, ran.out) == (1, "")
    assert "carrier+pigeon://coop: Protocol not known" in ran.err


def test_a_dump_that_cannot_be_fetched_costs_itself_alone(run: Run, dumps: Path, scratch: Path) -> None:
    """It is named, with why."""
    pytest.importorskip("fsspec")
    (dumps / "void").mkdir()
    (dumps / "void" / "trace.log").write_text("no object")
    ran = run("fleet", "preflight", "--dumps", f"file://{dumps}")
    assert ran.code == 1
    assert "1 could not be evaluated" in ran.out
    assert "nothing in it is a file of a dump" in ran.out
    assert list(scratch.iterdir()) == []


@contextmanager
def endless() -> Iterator[tuple[str, threading.Event]]:
    """The address of a file that never ends, and an event that is set when its first bytes are on their way."""
    asked, over = threading.Event(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "100000000")
            self.end_headers()

        def do_GET(self) -> None:
            self.do_HEAD()
            self.wfile.write(b"0" * 1000)
            asked.set()
            over.wait(DEADLINE_S)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/slow.tar", asked
    finally:
        over.set()
        server.shutdown()
        server.server_close()


@pytest.mark.usefixtures("in_a_terminal")
@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_who_stops_it_finds_nothing_left(tmp_path: Path, scratch: Path, number: int, code: int) -> None:
    """Amid a dump that is being fetched."""
    pytest.importorskip("fsspec")
    with endless() as (address, asked):
        entry = {"name": "slow", "dump": address}
        (tmp_path / "fleet.json").write_text(json.dumps({"clusters": [entry]}))
        command = [sys.executable, "-m", "runup", "fleet", "preflight", "--inventory", str(tmp_path / "fleet.json")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert asked.wait(DEADLINE_S)
        assert any(scratch.rglob("runup-dump-*"))
        process.send_signal(number)
        process.communicate(timeout=DEADLINE_S)
    assert process.returncode == code
    assert list(scratch.iterdir()) == []


SERVER = """
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(*server.get_host_and_port(), flush=True)
input()
"""


@contextmanager
def object_store() -> Iterator[str]:
    """The endpoint of an S3 server."""
    process = subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        host, port = process.stdout.readline().split()
        yield f"http://{host}:{port}"
    finally:
        process.kill()
        process.communicate(timeout=DEADLINE_S)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, dumps: Path) -> Iterator[str]:
    """An S3 server with a bucket of dumps, which the environment names as it does for other tools."""
    pytest.importorskip("s3fs", reason="needs s3fs: pip install 'kube-runup[s3]'")
    pytest.importorskip("moto.server", reason="needs a server of S3: pip install 'moto[server]'")
    with object_store() as endpoint:
        for name, value in {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():
            monkeypatch.setenv(name, value)
        fill = "import sys, s3fs; s = s3fs.S3FileSystem(); s.mkdir('gathers'); s.put(*sys.argv[1:], recursive=True)"
        subprocess.run([sys.executable, "-c", fill, f"{dumps}/", "gathers/nov/"], check=True, timeout=DEADLINE_S)
        yield "s3://gathers/nov"


@pytest.mark.slow
def test_a_bucket_of_an_s3_server(run: Run, bucket: str, dumps: Path, scratch: Path) -> None:
    """It is the fleet that its folder is; a bucket that is not there is an error."""
    here = run("fleet", "preflight", "--dumps", dumps, "-o", "json")
    there = run("fleet", "preflight", "--dumps", bucket, "-o", "json")
    assert clusters(there.out) == clusters(here.out)
    ran = run("fleet", "preflight", "--dumps", "s3://nobodys/nov")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: --dumps s3://nobodys/nov: there is no such bucket or prefix;")
    assert list(scratch.iterdir()) == []


@pytest.mark.slow
def test_no_credentials(run: Run, bucket: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One sentence, with where they are looked for."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    ran = run("fleet", "preflight", "--dumps", bucket)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"error: --dumps {bucket}: ")
    assert "credentials" in ran.err
    assert ran.err.count("\n") == 1
