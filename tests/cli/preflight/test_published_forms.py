"""Forms for CI against what their readers publish: JUnit's elements and GitLab's fields."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from tests.cli.preflight.test_forms import EVALUATED_ONE, FAILED_ONE, SILENT, as_text
from tests.cli.preflight.test_run_command import CLUSTER, OPERATOR, Run, dump

from runup.cli.preflight.render import output_formats as forms

# Elements with the attributes that are required, those that are allowed, and the elements in them:
# https://github.com/jenkinsci/xunit-plugin, src/main/resources/org/jenkinsci/plugins/xunit/types/model/xsd/junit-10.xsd
JUNIT: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name"},
        {"time", "classname", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    **{name: (set(), {"type", "message"}, set()) for name in ("failure", "error", "skipped")},
    **{name: (set(), set(), set()) for name in ("system-out", "system-err")},
}


def junit_faults(element: ElementTree.Element) -> list[str]:
    """Returns the attributes and elements that the schema refuses or misses, also of elements inside."""
    if element.tag not in JUNIT:
        return [f"<{element.tag}>"]
    required, allowed, inside = JUNIT[element.tag]
    given = set(element.keys())
    faults = [f"<{element.tag} {name}>" for name in (required - given) | (given - required - allowed)]
    faults += [f"<{child.tag}> in <{element.tag}>" for child in element if child.tag not in inside]
    return faults + [fault for child in element for fault in junit_faults(child)]


def test_junit_has_the_elements_of_its_schema() -> None:
    """Of a cluster with risks, one that could not be evaluated, and one without an answer."""
    assert junit_faults(ElementTree.fromstring("".join(forms.junit([EVALUATED_ONE, FAILED_ONE, SILENT])))) == []


def test_junit_of_a_command_has_the_elements_of_its_schema(tmp_path: Path, run: Run) -> None:
    """With all checks of the catalogue."""
    folder = tmp_path / "dump"
    dump(folder, CLUSTER, OPERATOR)
    assert junit_faults(ElementTree.fromstring(run("preflight", "run", "--dump", folder, "-o", "junit").out)) == []


def test_gitlab_has_the_fields_that_it_reads() -> None:
    """https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format."""
    entries = json.loads(as_text("gitlab", EVALUATED_ONE, FAILED_ONE))
    assert entries
    for entry in entries:
        assert {"description", "check_name", "fingerprint", "severity", "location"} <= entry.keys()
        assert entry["severity"] in ("info", "minor", "major", "critical", "blocker")
        path = entry["location"]["path"]
        assert not path.startswith(("/", "./"))
        assert isinstance(entry["location"]["lines"]["begin"], int)
    assert len({entry["fingerprint"] for entry in entries}) == len(entries)
