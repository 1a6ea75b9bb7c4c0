"""`runup checks`: from an empty folder to a tested check, every mistake with its line, and no gap between releases."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest
from tests.cli.conftest import Run

from runup.domain.checks import cases
from runup.domain.checks.catalogue import CHECKS
from runup.domain.checks.schema import cases_schema, check_schema
from runup.lang import yaml as kyaml

SPEC = Path(__file__).parents[3] / "docs" / "spec"


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
    edit(made / "old-routes.test.yaml", cases.REPLACE, "shop")
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
    edit(made / "old-routes.test.yaml", cases.REPLACE, "shop")
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
    """They lie beside it in the same folder."""
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
    told = "old-routes of 5.2.0 covers updates from 5.1.3; 5.3.0 can be updated to from 5.1.3 and does not cover it"
    assert told in ran.out
    graph = tmp_path / "graph.json"
    graph.write_text(json.dumps({"nodes": [{"version": "5.1.3"}, {"version": "5.3.0"}], "edges": [[0, 1]]}))
    assert run("checks", "coverage", *words, "--update", graph).code == 1
    (other / "y.yaml").write_text((made / "old-routes.yaml").read_text())
    assert run("checks", "coverage", *words, "--update", graph).code == 0
    edit(other / "y.yaml", '">=5.2.0-0"', '">=5.2.0-0 <5.3.0-0"')
    assert run("checks", "coverage", *words, "--update", graph).code == 1


def test_explain_has_the_page_and_the_rights(run: Run) -> None:
    """And a name that is nearly one."""
    told = run("checks", "explain", "HeadroomShort").out
    assert told.startswith("# HeadroomShort\n")
    assert '- apiGroups: [""], resources: [pods], verbs: [get, list, watch]' in told
    assert "did you mean HeadroomShort?" in run("checks", "explain", "HeadromShort").err


def test_explain_knows_the_checks_of_files_and_releases(made: Path, run: Run) -> None:
    """By the check's name or its risk's, which is what a report of a cluster has."""
    edit(made / "old-routes.yaml", "severity: warning", "severity: critical")
    told = run("checks", "explain", "old-routes", made).out
    assert told.startswith("# old-routes\n")
    assert "its risk is `OldRoutes`" in told
    assert "**Reads** `routes.route.openshift.io`" in told
    assert "**Updates** to >=5.2.0-0" in told
    assert "**severity** critical" in told
    assert '- apiGroups: ["route.openshift.io"], resources: [routes], verbs: [get, list, watch]' in told
    assert run("checks", "explain", "OldRoutes", made / "old-routes.yaml").out == told
    release = made.parent / "release"
    release.mkdir()
    made.rename(release / "preflight-checks")
    assert run("checks", "explain", "old-routes", "--release-dir", release).out == told
    row = next(
        row
        for row in json.loads(run("checks", "list", "--release-dir", release, "-o", "json").out)
        if row["name"] == "old-routes"
    )
    assert (row["severity"], row["updates"]) == ("critical", "to >=5.2.0-0")


@pytest.mark.parametrize(
    ("words", "told"),
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
def test_explain_says_what_it_lacks(made: Path, run: Run, words: tuple[str, ...], told: str) -> None:
    """And the way out."""
    ran = run("checks", "explain", *(word.format(made=made) for word in words))
    assert ran.code == 1
    assert told in ran.err


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
    assert "holds no YAML" in run("checks", "test", tmp_path).err


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
]


@pytest.mark.parametrize(("words", "read"), KINDS)
def test_what_a_skeleton_reads(words: tuple[str, ...], read: str, tmp_path: Path, run: Run) -> None:
    """Resource and kind belong together, whichever of them was typed."""
    assert run("checks", "new", "mine", *words, "--in", tmp_path).code == 0
    spec = kyaml.load((tmp_path / "mine.yaml").read_text())["spec"]["reads"][0]
    assert f"{spec['version']} {spec['resource']} {spec['kind']}" == read


def test_a_kind_that_nobody_knows_wants_its_resource(tmp_path: Path, run: Run) -> None:
    """A check of Widgets that lists ConfigMaps would be clear for ever."""
    ran = run("checks", "new", "mine", "--kind", "Widget", "--in", tmp_path)
    assert (ran.code, "give its --resource, too" in ran.err) == (1, True)
    assert list(tmp_path.iterdir()) == []


def test_the_cases_beside_a_check_are_run_with_it(made: Path, run: Run) -> None:
    """As the skeleton's first line has it typed."""
    edit(made / "old-routes.test.yaml", cases.REPLACE, "shop")
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
