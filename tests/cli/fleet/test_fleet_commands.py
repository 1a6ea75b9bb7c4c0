"""`runup fleet` as it is typed: the commands of its page, what they write, and how one cluster costs itself alone."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tarfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.cli.commands import Run

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "how-to" / "fleets.md").read_text()
GATES = (ROOT / "docs" / "how-to" / "gates.md").read_text()
TYPED = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```", PAGE + GATES, re.MULTILINE | re.DOTALL)
    for line in block.splitlines()
]
# Exit codes by how a line begins: the first that fits. A dump for `rehearse` has no rows of operators for `status`.
CODES = (
    ("runup fleet status", 1),
    ("runup fleet recommend", 0),
    ("runup fleet history", 0),
    ("runup preflight compare", 0),
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the examples, in which everything is typed."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Some fifteen commands, each of which reads a whole fleet.
@pytest.mark.slow
def test_what_the_page_types(run: Run) -> None:
    """Every line of the page, and of that about gates, in order: later ones read what earlier ones wrote."""
    assert len(TYPED) > 13
    for line in TYPED:
        words = shlex.split(line)
        ran = run(*words[1:])
        # The update of one cluster is refused, which no baseline lifts.
        wanted = next((code for start, code in CODES if line.startswith(start)), 2)
        assert ran.code == wanted, (line, ran.out, ran.err)


def test_what_the_page_shows(run: Run) -> None:
    """The lines that the page shows are printed."""
    (shown,) = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert set(shown.splitlines()) <= set(
        run("fleet", "preflight", "--inventory", "examples/fleet.yaml").out.splitlines()
    )


def test_in_the_process_itself_the_result_is_the_same(run: Run) -> None:
    """`--parallel 0` prints what workers find, and starts none."""
    fleet = ("fleet", "preflight", "--inventory", "examples/fleet.yaml", "-v")
    assert run(*fleet, "--parallel", "0") == run(*fleet)


def test_several_forms_in_one_run(run: Run, folder: Path) -> None:
    """Each in its file, and one on the standard output; all of the same clusters."""
    ran = run("fleet", "preflight", "--inventory", "examples/fleet.yaml", "-o", "json,html=a.html", "-o", "junit=a.xml")
    names = [each["cluster"] for each in json.loads(ran.out)["clusters"]]
    assert names == ["harbour", "lighthouse", "orchard"]
    assert "orchard" in (folder / "a.html").read_text()
    assert len(ElementTree.parse(folder / "a.xml").getroot().findall(".//testsuite")) == 3


@pytest.mark.slow
def test_a_fleet_against_an_earlier_run(run: Run, folder: Path) -> None:
    """As Markdown it is what came and went since then, and only then; other forms are the whole fleet."""
    fleet = ("fleet", "preflight", "--inventory", "examples/fleet.yaml")
    whole = run(*fleet, "-o", "json=base.json,markdown")
    assert "Since base.json" not in whole.out
    ran = run(*fleet, "-o", "markdown,json=again.json", "--baseline", "base.json")
    assert ran.code == 2
    assert ran.out.splitlines()[0].endswith(": 0 new, 0 gone, 2 still refuse the update")
    assert "Since base.json, for 3 clusters." in ran.out
    assert len(json.loads((folder / "again.json").read_text())["clusters"]) == 3


NODES, CLUSTER = "nodes.json", "clusterversions.config.openshift.io.json"
ONE_ID, OTHER_ID = "0f9f81c4-74a3-4fd2-9d2b-bd84a4f2a2ad", "1f9f81c4-74a3-4fd2-9d2b-bd84a4f2a2ad"


def edited(folder: Path, name: str, *, cordon: str = "", cluster_id: str = ONE_ID) -> None:
    """A dump of the example in a separate folder, with one more node cordoned, or of another cluster."""
    dump = folder / name / name
    shutil.copytree(folder / "examples" / "skip-level", dump)
    nodes = json.loads((dump / NODES).read_text())
    for node in nodes["items"]:
        node["spec"] |= {"unschedulable": True} if node["metadata"]["name"] == cordon else {}
    (dump / NODES).write_text(json.dumps(nodes))
    (dump / CLUSTER).write_text((dump / CLUSTER).read_text().replace(ONE_ID, cluster_id))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "change", "known", "said"),
    [
        pytest.param("east", {}, True, "", id="the same"),
        pytest.param("renamed", {}, True, "", id="under another name"),
        pytest.param("east", {"cordon": "worker-0"}, False, "now also Node worker-0", id="one more node is cordoned"),
        pytest.param("west", {"cluster_id": OTHER_ID}, False, "does not have west", id="another cluster"),
        pytest.param(
            "east", {"cluster_id": OTHER_ID}, False, "another cluster than east", id="another one of that name"
        ),
    ],
)
def test_a_baseline_counts_for_its_cluster_and_objects(
    run: Run, folder: Path, name: str, change: dict[str, str], known: bool, said: str
) -> None:
    """Whatever the cluster is called; in each form what is known is accepted, and what has grown is not."""
    edited(folder, "before")
    (folder / "before" / "before").rename(folder / "before" / "east")
    assert run("fleet", "preflight", "--dumps", "before", "-o", "json=base.json").code == 2
    edited(folder, name, **change)
    ran = run("fleet", "preflight", "--dumps", name, "--baseline", "base.json", "-o", "markdown,json=now.json")
    # The example's update is refused, which no baseline lets pass.
    assert ran.code == 2
    assert said in ran.out + ran.err
    (cluster,) = json.loads((folder / "now.json").read_text())["clusters"]
    assert cluster["clusterID"] == change.get("cluster_id", ONE_ID)
    (cordoned,) = (risk for risk in cluster["risks"] if risk["name"] == "NodeCordoned")
    assert cordoned["accepted"] is known
    assert (cordoned["grown"] or {}).get("objects") == (["Node worker-0"] if "cordon" in change else None)


SUPPRESSIONS = 'suppressions: [{risk: "*", reason: the new hardware comes first}]'


@pytest.mark.parametrize("form", ["text", "json", "yaml", "markdown", "html", "junit", "sarif"])
@pytest.mark.parametrize("option", ["--suppressions", "--baseline"])
def test_what_is_accepted_is_listed_with_its_reason(run: Run, folder: Path, form: str, option: str) -> None:
    """In each form: a cluster in which nothing else is found is not one without risks."""
    edited(folder, "east")
    (folder / "--suppressions").write_text(SUPPRESSIONS)
    fleet = ("fleet", "preflight", "--dumps", "east")
    run(*fleet, "-o", "json=--baseline")
    ran = run(*fleet, option, option, *(() if form == "text" else ("-o", form)))
    because = "known: it is in the baseline" if option == "--baseline" else "suppressed: the new hardware comes first"
    assert "NodeCordoned" in ran.out
    assert because in " ".join(ran.out.split())


def test_an_archive_of_dumps_and_a_cluster_that_is_none(run: Run, folder: Path) -> None:
    """The archive is a fleet like its folder; what cannot be evaluated is named, and decides the exit code."""
    (folder / "dumps" / "ruin").mkdir(parents=True)
    (folder / "dumps" / "ruin" / "nodes.json").write_text("{")
    shutil.copytree(folder / "examples" / "plain-kubernetes", folder / "dumps" / "orchard")
    with tarfile.open(folder / "dumps.tar.gz", "w:gz") as tar:
        tar.add(folder / "dumps", "dumps")
    for dumps in ("dumps", "dumps.tar.gz"):
        ran = run("fleet", "preflight", "--dumps", dumps)
        assert ran.code == 1
        assert "1 could not be evaluated, 1 with risks that apply" in ran.out
        assert re.search(r"nothing is known about them:\n +ruin: ", ran.out)


def test_an_archive_of_archives_loses_no_cluster(run: Run, folder: Path) -> None:
    """Packed dumps in a packed folder are as many clusters as in the folder, also next to dumps that are not packed."""
    shutil.copytree(folder / "examples" / "plain-kubernetes", folder / "dumps" / "orchard")
    with tarfile.open(folder / "dumps" / "meadow.tar.gz", "w:gz") as tar:
        tar.add(folder / "examples" / "plain-kubernetes", "meadow")
    for around, name in (("dumps", "wrapped.tar"), (".", "bare.tar")):
        with tarfile.open(folder / name, "w") as tar:
            tar.add(folder / "dumps", around)
        ran = run("fleet", "preflight", "--dumps", name, "-o", "json")
        assert [each["cluster"] for each in json.loads(ran.out)["clusters"]] == ["meadow", "orchard"]


def test_the_files_of_a_case_are_not_left_out(run: Run, folder: Path) -> None:
    """Those before its mark, by name, neither."""
    (folder / "cases").mkdir()
    for name in ("a-co.yaml", "a-cv.yaml", "a-node.yaml", "notes.txt"):
        (folder / "cases" / name).write_text("kind: List\nitems: []\n")
    seen = run("fleet", "preflight", "--dumps", "cases").err
    assert "left out: notes.txt\n" in seen


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (("--dumps", "nowhere"), "--dumps nowhere: does not exist"),
        (("--dumps", __file__), f"error: --dumps {__file__} is not a readable archive ("),
        (("--dumps", "examples/skip-level"), "is one dump; give the folder that it is in"),
        (("--inventory", "examples/fleet.yaml", "-l", "env=nowhere"), "env=nowhere"),
        (("--inventory", "examples/fleet.yaml", "--inventory", "examples/fleet.yaml"), "is given twice"),
        ((), "--contexts"),
        (("--context", "a", "--contexts", "a"), "a fleet is named by --contexts"),
    ],
)
def test_fleets_that_nobody_could_read(run: Run, typed: tuple[str, ...], says: str) -> None:
    """One error that names the input and the way out, and nothing printed."""
    ran = run("fleet", "preflight", *typed)
    assert (ran.code, ran.out) == (1, "")
    assert says in ran.err


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_each_cluster_is_a_line_of_json_lines(run: Run, folder: Path, form: str) -> None:
    """With the fields of `-o json`, and both are a baseline of the next run."""
    for name in ("west", "east"):
        edited(folder, name)
        (folder / "dumps").mkdir(exist_ok=True)
        (folder / name / name).rename(folder / "dumps" / name)
    fleet = ("fleet", "preflight", "--dumps", "dumps")
    ran = run(*fleet, "-o", "jsonl", "-o", "json=all.json,jsonl=all.jsonl")
    clusters = json.loads((folder / "all.json").read_text())["clusters"]
    lines: list[dict[str, Any]] = [json.loads(line) for line in ran.out.splitlines()]
    assert sorted(lines, key=lambda each: str(each["cluster"])) == clusters
    assert (folder / "all.jsonl").read_text() == ran.out
    run(*fleet, "--baseline", f"all.{form}", "-o", "jsonl=again.jsonl")
    known = [json.loads(line)["sinceBaseline"] for line in (folder / "again.jsonl").read_text().splitlines()]
    assert [(each["new"], each["gone"]) for each in known] == [([], [])] * 2
    assert all("NodeCordoned" in each["same"] for each in known)
