"""`runup checks`: from an empty folder to a tested check, every mistake with its line, and no gap between releases."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest
from tests.cli.commands import Run

from kubekit.lang import yaml as kyaml
from runup.checks.catalogue import CHECKS
from runup.checks.decide import cases
from runup.checks.decide.check_schema import cases_schema, check_schema

SPEC = Path(__file__).parents[3] / "docs" / "reference" / "spec"


@pytest.fixture
def made(tmp_path: Path, run: Run) -> Path:
    """What `new` writes."""
    words = ("--resource", "routes.v1.route.openshift.io", "--kind", "Route", "--in", tmp_path / "checks")
    assert run("checks", "new", "old-routes", *words).code == 0
    return tmp_path / "checks"


def edit(path: Path, old: str, new: str) -> None:
    """Replace words that are there."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_skeleton_is_read_and_does_not_pass_unchanged(made: Path, run: Run) -> None:
    """It is a check without a mistake, and its cases are still to be written; once they are, they pass."""
    ran = run("checks", "lint", made, "--strict")
    assert (ran.code, ran.out) == (0, "1 check read, 0 errors, 0 notes\n")
    ran = run("checks", "test", made)
    assert ran.code == 1
    assert ran.out.count("FAIL") == len(ran.out.splitlines()) == 4
    edit(made / "old-routes.test.yaml", cases.UNCHANGED_MARK, "shop")
    ran = run("checks", "test", made)
    assert (ran.code, ran.out.count("ok   old-routes: ")) == (0, 4)


@pytest.mark.parametrize("words", [["."], ["..", "."], ["old-routes.yaml"], [""]], ids=repr)
def test_the_folder_that_one_stands_in(words: list[str], made: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `new` says what to type next; a check's own file brings that of its cases."""
    monkeypatch.chdir(made)
    assert run("checks", "lint", *words).code == 0
    ran = run("checks", "test", *words)
    assert (ran.code, ran.out.count("FAIL old-routes: "), ran.err) == (1, 4, "")


CHANGES = [
    pytest.param("spec: {old: false}", "spec: {old: true}", "expected Clear, found Applies", id="another answer"),
    pytest.param("lacking: [routes.route.openshift.io]", "lacking: [pods]", "does not read", id="a read that is none"),
    pytest.param("resources: [shop]", "resources: [other]", "expected it to be about other, found shop", id="objects"),
    pytest.param("resources: [shop]", "message: who", "expected a message with 'who'", id="words"),
    pytest.param("expect: Unknown", "expect: Clear", "there is no case that expects Unknown", id="a kind is missing"),
]


@pytest.mark.parametrize(("old", "new", "message"), CHANGES)
def test_a_case_that_is_not_as_expected(old: str, new: str, message: str, made: Path, run: Run) -> None:
    """It says what was found instead."""
    edit(made / "old-routes.test.yaml", cases.UNCHANGED_MARK, "shop")
    edit(made / "old-routes.test.yaml", old, new)
    ran = run("checks", "test", made)
    assert ran.code == 1
    assert message in ran.out


MISTAKES = [
    pytest.param("severity: warning", "severity: grave", "line 24: spec.risk.severity", id="a severity that is none"),
    pytest.param("  for: objects", "  fro: objects", "unknown field `fro`", id="a typo"),
    pytest.param("object.spec.old", "object.spec.old +", "spec.expression", id="CEL that cannot be read"),
]


@pytest.mark.parametrize(("old", "new", "message"), MISTAKES)
def test_a_mistake_has_its_line(old: str, new: str, message: str, made: Path, run: Run) -> None:
    """File, line and field; exit code 1."""
    edit(made / "old-routes.yaml", old, new)
    ran = run("checks", "lint", made)
    assert ran.code == 1
    assert f"{made / 'old-routes.yaml'}" in ran.out
    assert message in ran.out


def test_secrets_may_not_be_read(made: Path, run: Run) -> None:
    """A check that would get no right says so when it is written, not on a cluster."""
    edit(made / "old-routes.yaml", "group: route.openshift.io", 'group: ""')
    edit(made / "old-routes.yaml", "resource: routes", "resource: secrets")
    ran = run("checks", "lint", made)
    assert ran.code == 1
    assert "may not be read" in ran.out


def test_what_is_likely_a_mistake(made: Path, run: Run) -> None:
    """A note; with --strict an error."""
    edit(made / "old-routes.yaml", "name: OldRoutes", "name: HeadroomShort")
    ran = run("checks", "lint", made)
    assert ran.code == 0
    assert "risk HeadroomShort is a built-in check's" in ran.out
    assert run("checks", "lint", made, "--strict").code == 1


def test_nothing_that_exists_is_replaced(made: Path, run: Run) -> None:
    """Somebody's work."""
    ran = run("checks", "new", "old-routes", "--in", made)
    assert ran.code == 1
    assert "exists; it is not replaced" in ran.err


def test_cases_are_no_check_of_a_release(made: Path, run: Run) -> None:
    """They lie next to it in the same folder."""
    release = made.parent / "release"
    release.mkdir()
    made.rename(release / "preflight-checks")
    ran = run("checks", "list", "--release-dir", release, "-o", "json")
    names = [each["name"] for each in json.loads(ran.out)]
    assert names == [*(check.name for check in CHECKS), "old-routes"]


def test_a_check_that_goes_leaves_a_gap(made: Path, tmp_path: Path, run: Run) -> None:
    """A later release that can be updated to from a covered version must cover it, too."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.yaml").write_text((made / "old-routes.yaml").read_text().replace("old-routes", "another"))
    edit(other / "x.yaml", "OldRoutes", "Another")
    words = ("--release", f"5.2.0={made}", "--release", f"5.3.0={other}", "--update", "5.1.3..5.2.0")
    assert run("checks", "coverage", *words).code == 0
    ran = run("checks", "coverage", *words, "--update", "5.1.3..5.3.0")
    assert ran.code == 1
    shown = "old-routes of 5.2.0 covers updates from 5.1.3; 5.3.0 can be updated to from 5.1.3 and does not cover it"
    assert shown in ran.out
    graph = tmp_path / "graph.json"
    graph.write_text(json.dumps({"nodes": [{"version": "5.1.3"}, {"version": "5.3.0"}], "edges": [[0, 1]]}))
    assert run("checks", "coverage", *words, "--update", graph).code == 1
    (other / "y.yaml").write_text((made / "old-routes.yaml").read_text())
    assert run("checks", "coverage", *words, "--update", graph).code == 0
    edit(other / "y.yaml", '">=5.2.0-0"', '">=5.2.0-0 <5.3.0-0"')
    assert run("checks", "coverage", *words, "--update", graph).code == 1


@pytest.mark.parametrize("text", ["[]", '{"nodes": [1], "edges": []}', "[" * 100_000], ids=["a list", "odd", "no end"])
def test_a_file_of_updates_that_is_no_graph(text: str, made: Path, tmp_path: Path, run: Run) -> None:
    """One error that says what is expected."""
    graph = tmp_path / "graph.json"
    graph.write_text(text)
    ran = run("checks", "coverage", "--release", f"5.2.0={made}", "--update", graph)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"error: --update {graph}: is neither FROM..TO nor an update graph: ")
    assert len(ran.err.splitlines()) == 1


def test_explain_has_the_page_and_the_rights(run: Run) -> None:
    """And a name that is nearly one."""
    shown = run("checks", "explain", "HeadroomShort").out
    assert shown.startswith("# HeadroomShort\n")
    assert '- apiGroups: [""], resources: [pods], verbs: [get, list, watch]' in shown
    assert "did you mean HeadroomShort?" in run("checks", "explain", "HeadromShort").err


def test_explain_knows_the_checks_of_files_and_releases(made: Path, run: Run) -> None:
    """By the check's name or its risk's, which is what a report of a cluster has."""
    edit(made / "old-routes.yaml", "severity: warning", "severity: critical")
    shown = run("checks", "explain", "old-routes", made).out
    assert shown.startswith("# old-routes\n")
    assert "its risk is `OldRoutes`" in shown
    assert "**Reads** `routes.route.openshift.io`" in shown
    assert "**Updates** to >=5.2.0-0" in shown
    assert "**severity** critical" in shown
    assert '- apiGroups: ["route.openshift.io"], resources: [routes], verbs: [get, list, watch]' in shown
    assert run("checks", "explain", "OldRoutes", made / "old-routes.yaml").out == shown
    release = made.parent / "release"
    release.mkdir()
    made.rename(release / "preflight-checks")
    assert run("checks", "explain", "old-routes", "--release-dir", release).out == shown
    row = next(
        row
        for row in json.loads(run("checks", "list", "--release-dir", release, "-o", "json").out)
        if row["name"] == "old-routes"
    )
    assert (row["severity"], row["updates"]) == ("critical", "to >=5.2.0-0")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        pytest.param(
            ("no-such",),
            "for a release's own: `runup release extract IMAGE --to DIR`, and --release-dir DIR",
            id="not built in",
        ),
        pytest.param(
            ("no-such", "{made}"), "there is no check no-such; `runup checks list` names", id="nor in the file"
        ),
        pytest.param(("old-route", "{made}"), "did you mean old-routes?", id="nearly one of the file"),
        pytest.param(("x", "{made}/nothing.yaml"), "there is no such file or folder", id="no file"),
        pytest.param(("x", "{made}/old-routes.test.yaml"), "no PreflightCheck in", id="a file without one"),
    ],
)
def test_explain_says_what_it_lacks(made: Path, run: Run, words: tuple[str, ...], shown: str) -> None:
    """And the way out."""
    ran = run("checks", "explain", *(word.format(made=made) for word in words))
    assert ran.code == 1
    assert shown in ran.err


def test_list_names_every_check(run: Run) -> None:
    """With what it reads."""
    rows = json.loads(run("checks", "list", "-o", "json").out)
    assert {row["name"] for row in rows} == {check.name for check in CHECKS}
    assert all(row["reads"] for row in rows)


def test_the_schemas_are_current_and_take_the_skeleton(made: Path) -> None:
    """`python tools/report_schema.py` writes them; what they refuse the command refuses, too."""
    assert json.loads((SPEC / "preflightcheck-v1alpha1.schema.json").read_text()) == json.loads(
        json.dumps(check_schema())
    )
    assert json.loads((SPEC / "preflightchecktest-v1alpha1.schema.json").read_text()) == json.loads(
        json.dumps(cases_schema())
    )
    check = kyaml.load((made / "old-routes.yaml").read_text())
    validator = jsonschema_rs.validator_for(check_schema())
    assert validator.is_valid(check)
    assert not validator.is_valid({**check, "spec": {**check["spec"], "fro": "x"}})
    tests = jsonschema_rs.validator_for(cases_schema())
    assert tests.is_valid(kyaml.load((made / "old-routes.test.yaml").read_text()))
    assert not tests.is_valid({"check": "x"})


def test_folders_that_hold_nothing(tmp_path: Path, run: Run) -> None:
    """One line that names them."""
    assert "no such file or folder" in run("checks", "lint", tmp_path / "x").err
    assert "contains no YAML" in run("checks", "test", tmp_path).err


QUERY = """\
apiVersion: preflight.runup.dev/v1alpha1
kind: PreflightCheck
metadata:
  name: slow-disks
  annotations: {include.release.openshift.io/self-managed-high-availability: "true"}
spec:
  component: etcd
  targets: ">=5.2.0-0"
  promql: {query: "max(disk_seconds) > bool 1"}
  risk: {name: SlowDisks, message: Disks are slow., remediation: Take faster ones.}
---
apiVersion: preflight.runup.dev/v1alpha1
kind: PreflightCheckTest
check: slow-disks
cases:
- {name: slow, expect: Applies, prometheus: [1], message: Disks are slow}
- {name: fast, expect: Clear, prometheus: [0]}
- {name: no series, expect: Unknown, prometheus: []}
- {name: two series, expect: Unknown, prometheus: [0, 1]}
- {name: seconds instead of a verdict, expect: Unknown, prometheus: [0.5]}
- {name: nobody is asked, expect: Unknown}
"""


def test_a_query_is_tested_by_what_prometheus_answers(tmp_path: Path, run: Run) -> None:
    """Values of samples in, and what the real answer would come to out; what is missing is named."""
    (tmp_path / "slow.yaml").write_text(QUERY)
    ran = run("checks", "test", tmp_path)
    assert (ran.code, ran.out.count("ok   slow-disks: ")) == (0, 6)
    assert run("checks", "lint", tmp_path, "--strict").code == 0
    edit(tmp_path / "slow.yaml", "expect: Applies, prometheus: [1]", "expect: Applies, prometheus: [0]")
    ran = run("checks", "test", tmp_path)
    assert (ran.code, "expected Applies, found Clear" in ran.out) == (1, True)
    (tmp_path / "slow.yaml").write_text(QUERY[: QUERY.index("- {name: no series")])
    ran = run("checks", "test", tmp_path)
    assert "no case that expects Unknown: leave `prometheus` out, or give it no sample" in ran.out


KINDS = [
    pytest.param(("--kind", "Pod"), "v1 pods Pod", id="a kind that runup knows"),
    pytest.param(
        ("--resource", "machineconfigpools.v1.machineconfiguration.openshift.io"),
        "v1 machineconfigpools MachineConfigPool",
        id="a resource that runup knows",
    ),
    pytest.param((), "v1 configmaps ConfigMap", id="neither"),
    pytest.param(("--resource", "pods"), "v1 pods Pod", id="a resource of the core, without its version"),
    pytest.param(("--kind", "ClusterOperator"), "v1 clusteroperators ClusterOperator", id="a kind of a group"),
    pytest.param(
        ("--resource", "clusteroperators.v2.config.openshift.io"),
        "v2 clusteroperators ClusterOperator",
        id="a resource in another version",
    ),
    pytest.param(("--resource", "pods.v3", "--kind", "Pot"), "v3 pods Pot", id="both, whatever runup knows"),
]


@pytest.mark.parametrize(("words", "read"), KINDS)
def test_what_a_skeleton_reads(words: tuple[str, ...], read: str, tmp_path: Path, run: Run) -> None:
    """Resource and kind belong together, whichever of them was typed."""
    assert run("checks", "new", "mine", *words, "--in", tmp_path).code == 0
    spec = kyaml.load((tmp_path / "mine.yaml").read_text())["spec"]["reads"][0]
    assert f"{spec['version']} {spec['resource']} {spec['kind']}" == read
    group = "config.openshift.io" if spec["kind"] == "ClusterOperator" else spec["group"]
    assert spec["group"] == group
    cases_of = kyaml.load((tmp_path / "mine.test.yaml").read_text())["cases"]
    versions = {obj["apiVersion"] for case in cases_of for obj in case.get("objects", ())}
    assert versions == {f"{group}/{spec['version']}" if group else spec["version"]}
    lacking = [name for case in cases_of for name in case.get("lacking", ())]
    assert lacking == [f"{spec['resource']}.{group}" if group else spec["resource"]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(
            ("mine", "--kind", "Widget"),
            "--kind Widget is not a kind that runup knows; give its --resource, too",
            id="a kind",
        ),
        pytest.param(
            ("mine", "--resource", "widgets.v1.example.com"),
            "--resource widgets.v1.example.com is not a kind that runup knows; give its --kind, too",
            id="a resource",
        ),
        pytest.param(
            ("mine", "--resource", "pods.v1.example.com"),
            "--resource pods.v1.example.com is not a kind that runup knows; give its --kind, too",
            id="a resource of another group",
        ),
        pytest.param(
            ("Mine",),
            "'Mine' is not a name of a check; use small letters, digits and dashes, for example old-routes",
            id="a capital letter",
        ),
        pytest.param(("mine-",), "'mine-' is not a name of a check; use ", id="a dash at the end"),
        pytest.param(("m" * 64,), "is not a name of a check; use ", id="a name that is too long"),
        pytest.param(("mine", "--target", "5.x"), "--target: ", id="a target that is none"),
    ],
)
def test_what_no_check_can_be_made_of(words: tuple[str, ...], said: str, tmp_path: Path, run: Run) -> None:
    """A check of Widgets that lists ConfigMaps would be clear for ever; nothing is written."""
    ran = run("checks", "new", *words, "--in", tmp_path)
    assert (ran.code, ran.out, said in ran.err) == (1, "", True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "risk"), [("m" * 63, "M" + "m" * 62), ("a-1-bc", "A1Bc")], ids=["the longest name", "several words"]
)
def test_what_the_risk_of_a_skeleton_is_called(name: str, risk: str, tmp_path: Path, run: Run) -> None:
    """As the check, in capitals where words begin."""
    assert run("checks", "new", name, "--in", tmp_path).code == 0
    assert kyaml.load((tmp_path / f"{name}.yaml").read_text())["spec"]["risk"]["name"] == risk


def test_the_cases_beside_a_check_are_run_with_it(made: Path, run: Run) -> None:
    """As the skeleton's first line has it typed."""
    edit(made / "old-routes.test.yaml", cases.UNCHANGED_MARK, "shop")
    ran = run("checks", "test", made / "old-routes.yaml")
    assert (ran.code, ran.out.count("ok   old-routes: ")) == (0, 4)


def test_a_release_takes_checks_with_their_cases(made: Path, run: Run, tmp_path: Path) -> None:
    """The guide's last steps: the folder as it is becomes a release, whose check is run on a dump."""
    made.rename(tmp_path / "preflight-checks")
    ran = run("release", "new", "--from-dir", tmp_path, "--version", "5.3.0", "--to", f"oci:{tmp_path}/made")
    assert ran.code == 0, ran.err
    version = {
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": {"name": "version"},
        "spec": {"clusterID": "a"},
        "status": {"desired": {"version": "5.2.0", "image": "x@sha256:1"}, "history": []},
    }
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "version.json").write_text(json.dumps(version))
    ran = run("preflight", "run", "--to-image", f"oci:{tmp_path}/made", "--dump", tmp_path / "dump", "-o", "json")
    found = {check["name"]: check["result"] for check in json.loads(ran.out)["checks"]}
    assert found["old-routes"] == "Unknown"
    assert not [name for name in found if "test" in name]


BROKEN = [
    pytest.param(("checks", "test", "{made}"), id="test"),
    pytest.param(("checks", "list", "{made}"), id="list"),
    pytest.param(("checks", "explain", "old-routes", "{made}"), id="explain"),
    pytest.param(("checks", "coverage", "--release", "5.2.0={made}", "--update", "5.0.0..5.2.0"), id="coverage"),
]
SPOILT = [
    pytest.param(b"kind: [", "old-routes.yaml", id="no YAML"),
    pytest.param(b"\xff\xfe\xff", "cannot be read: 'utf-8' codec", id="no text"),
    pytest.param(b"apiVersion: preflight.runup.dev/v1alpha1\nkind: PreflightCheck\n", "metadata", id="no check"),
    pytest.param(b"kind: PreflightCheckTest\ncases: 1\n", "old-routes.yaml: ", id="cases that are none"),
]


@pytest.mark.parametrize("words", BROKEN)
@pytest.mark.parametrize(("content", "said"), SPOILT)
def test_nothing_is_made_of_files_of_which_one_cannot_be_read(
    words: tuple[str, ...], content: bytes, said: str, made: Path, run: Run
) -> None:
    """Whatever would come out would be about the others alone."""
    (made / "old-routes.yaml").write_bytes(content)
    if words[1] in ("list", "explain"):
        (made.parent / "r").mkdir()
        made.rename(made.parent / "r" / "preflight-checks")
        words = (*(word for word in words if "{" not in word), "--release-dir", str(made.parent / "r"))
    ran = run(*(word.format(made=made) for word in words))
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err
    assert str(made.parent) in ran.err


NOTES = [
    pytest.param("  targets: ", "  # ", "spec.targets is missing: it is for updates to every later", id="every update"),
    pytest.param("    remediation: ", "    # ", "spec.risk.remediation is missing: say what helps", id="no way out"),
    pytest.param(': "true"', ': "yes"', "has no annotation include.release.openshift.io/", id="for no usual cluster"),
]


@pytest.mark.parametrize(("old", "new", "said"), NOTES)
def test_what_lint_notes(old: str, new: str, said: str, made: Path, run: Run) -> None:
    """It is no mistake, unless one is strict."""
    edit(made / "old-routes.yaml", old, new)
    ran = run("checks", "lint", made)
    assert (ran.code, ran.out.count(f"old-routes: {said}")) == (0, 1), ran.out
    assert "0 errors, 1 note\n" in ran.out
    assert run("checks", "lint", made, "--strict").code == 1


def test_the_table_of_checks(made: Path, run: Run) -> None:
    """Name, component, severity, updates, and what is read."""
    (made.parent / "r").mkdir()
    made.rename(made.parent / "r" / "preflight-checks")
    head, *lines = run("checks", "list", "--release-dir", made.parent / "r").out.splitlines()
    assert head.split() == ["CHECK", "COMPONENT", "SEVERITY", "UPDATES", "READS"]
    (line,) = [line for line in lines if line.startswith("old-routes ")]
    assert line.split()[-1] == "routes.route.openshift.io"
    assert len(lines) >= len(CHECKS) + 1


UPDATES = [
    pytest.param("5.0.0..5.x", "--update: ", id="a version that is none"),
    pytest.param("{graph}", "is neither FROM..TO nor an update graph: ", id="a file that is none"),
    pytest.param("nowhere", "is neither FROM..TO nor an update graph: ", id="no file"),
]


@pytest.mark.parametrize(("update", "said"), UPDATES)
def test_updates_that_are_none(update: str, said: str, made: Path, tmp_path: Path, run: Run) -> None:
    """The error names the flag, and what a graph was read for."""
    (tmp_path / "graph").write_text('{"nodes": [{"version": "5.0.0"}], "edges": [[0, 1]]}')
    typed = update.format(graph=tmp_path / "graph")
    ran = run("checks", "coverage", "--release", f"5.2.0={made}", "--update", typed)
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err


def test_updates_of_a_graph_with_and_without_risks(made: Path, tmp_path: Path, run: Run) -> None:
    """Edges by their numbers, conditional ones by their versions."""
    nodes = [{"version": version} for version in ("5.0.0", "5.1.0", "5.2.0")]
    conditional = [{"edges": [{"from": "5.0.0", "to": "5.2.0"}], "risks": []}]
    (tmp_path / "graph").write_text(json.dumps({"nodes": nodes, "edges": [[0, 1]], "conditionalEdges": conditional}))
    words = ("--release", "5.1.0=", "--release", f"5.2.0={made}", "--update", tmp_path / "graph")
    ran = run("checks", "coverage", *words)
    assert (ran.code, ran.out) == (0, "2 releases, 2 updates, 0 gaps\n")


def test_a_graph_may_lie_anywhere(made: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two dots in a path are no update."""
    graph = {"nodes": [{"version": "5.0.0"}, {"version": "5.2.0"}], "edges": [[0, 1]]}
    (tmp_path / "graph.json").write_text(json.dumps(graph))
    monkeypatch.chdir(made)
    ran = run("checks", "coverage", "--release", "5.2.0=", "--update", "../graph.json")
    assert (ran.code, ran.out, ran.err) == (0, "1 release, 1 update, 0 gaps\n", "")


def test_what_else_lies_in_a_folder_is_not_read(made: Path, run: Run) -> None:
    """Neither notes nor a folder that is called like a file."""
    (made / "notes.txt").write_text("kind: [")
    (made / "folder.yaml").mkdir()
    ran = run("checks", "lint", made)
    assert (ran.code, ran.out) == (0, "1 check read, 0 errors, 0 notes\n")


def test_how_many_checks_and_mistakes_there_are(made: Path, run: Run) -> None:
    """Of one there is one, of two there are two."""
    (made / "other.yaml").write_text((made / "old-routes.yaml").read_text().replace("old-routes", "other"))
    assert run("checks", "lint", made).out.endswith("2 checks read, 0 errors, 0 notes\n")
    (made / "broken.yaml").write_text("kind: [")
    assert run("checks", "lint", made).out.endswith("2 checks read, 1 error, 0 notes\n")
    assert "no PreflightCheck" not in run("checks", "lint", made / "broken.yaml").err


def test_a_folder_that_cannot_be_written(tmp_path: Path, run: Run) -> None:
    """One error that names it."""
    (tmp_path / "file").touch()
    ran = run("checks", "new", "mine", "--in", tmp_path / "file")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"error: {tmp_path / 'file'}: cannot be written: ")
