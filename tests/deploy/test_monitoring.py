"""Dashboards ask for what is served, in expressions that Prometheus reads; alerts lead to a runbook that there is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from runup.clusterversion.control.metrics import Metrics
from runup.kernelmodules.control.controller import Metrics as KernelModuleMetrics
from runup.rollout.control.metrics import Metrics as UpdatePolicyMetrics
from runup.updatestatus.control.controller import Metrics as UpdateStatusMetrics

ROOT = Path(__file__).parents[2]
DASHBOARDS = sorted((ROOT / "deploy" / "grafana").glob("*.json"))
RUNBOOKS = (ROOT / "docs" / "how-to" / "runbooks.md").read_text()
NAME = re.compile(r"\b(?:cluster_\w+|update_status_\w+|kmm_\w+|kernel_module_\w+|runup_update_\w+)\b")
# What a histogram is stored as.
PARTS = ("_bucket", "_sum", "_count")


def alerts() -> Iterator[dict[str, Any]]:
    """The rules of every manifest with alerts."""
    for path in sorted((ROOT / "deploy").glob("**/*alerts.yaml")):
        for found in yaml.safe_load_all(path.read_text()):
            for group in found["spec"]["groups"]:
                yield from group["rules"]


def panels() -> Iterator[dict[str, Any]]:
    """The panels that show something."""
    for path in DASHBOARDS:
        yield from (panel for panel in json.loads(path.read_text())["panels"] if panel["type"] != "row")


def expressions() -> list[str]:
    """What the panels ask."""
    return [target["expr"] for panel in panels() for target in panel["targets"]]


def served() -> set[str]:
    """The names of what all processes serve, as Prometheus stores them."""
    names = set()
    for registry in tuple(
        made().registry for made in (Metrics, UpdateStatusMetrics, KernelModuleMetrics, UpdatePolicyMetrics)
    ):
        for family in registry.collect():
            name = family.name + ("_total" if family.type == "counter" else "")
            names |= {name + part for part in PARTS} if family.type == "histogram" else {name}
    return names


@pytest.mark.parametrize("rule", list(alerts()), ids=lambda rule: rule["alert"])
def test_every_alert_has_a_runbook(rule: dict[str, Any]) -> None:
    """Its section says what it means, where to look, and what to do."""
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert page == "https://docs.runup.example/runbooks"
    assert anchor == rule["alert"].lower()
    section = re.search(rf"^### {rule['alert']}\n(.+?)(?=^#|\Z)", RUNBOOKS, re.MULTILINE | re.DOTALL)
    assert section is not None
    assert re.search(r"\*\*Means\*\*.*\*\*Look\*\*.*\*\*Do\*\*", section[1], re.DOTALL)


def test_every_runbook_is_an_alerts() -> None:
    """A runbook section without an alert is an error."""
    assert set(re.findall(r"^### (\w+)$", RUNBOOKS, re.MULTILINE)) == {rule["alert"] for rule in alerts()}


def test_dashboards_ask_for_what_is_served() -> None:
    """A panel over a name that nobody serves is empty for ever."""
    assert expressions()
    for expression in expressions():
        # In braces are labels, whose names may look like those of metrics.
        names = set(NAME.findall(re.sub(r"\{[^}]*\}|by \([^)]*\)", "", expression)))
        assert names, expression
        assert names <= served(), expression


def test_dashboards_show_what_alerts_ask_for() -> None:
    """Who is woken sees how it came to that."""
    shown = {name for expression in expressions() for name in NAME.findall(expression)}
    for rule in alerts():
        assert set(NAME.findall(re.sub(r"\{[^}]*\}|by \([^)]*\)", "", rule["expr"]))) <= shown, rule["alert"]


def test_labels_that_dashboards_name_are_there() -> None:
    """By the page of the metrics, which a test compares with what is served."""
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| \w+ \| ([^|]*)\|", page, re.MULTILINE))
    for expression in expressions():
        known = {"le"}
        for name in NAME.findall(re.sub(r"\{[^}]*\}|by \([^)]*\)", "", expression)):
            row = rows[re.sub(f"({'|'.join(PARTS)})$", "", name)]
            known |= set(re.findall(r"`(\w+)`", row))
        asked = set(re.findall(r"(\w+)\s*(?:=~|!=|=)\s*\"", expression))
        asked |= {label.strip() for labels in re.findall(r"by \(([^)]*)\)", expression) for label in labels.split(",")}
        assert asked <= known, expression


def test_prometheus_reads_the_dashboards(tmp_path: Path) -> None:
    """Each expression, as a rule, by its own program."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("needs promtool, of Debian's package prometheus")
    rules = [{"record": f"panel:{index}", "expr": expr} for index, expr in enumerate(expressions())]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    checked = [promtool, "check", "rules", "rules.yaml"]
    done = subprocess.run(checked, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=90)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules)} rules found" in done.stdout


def test_dashboards_can_be_imported() -> None:
    """Grafana's requirements: unique panel numbers, no overlap, any Prometheus."""
    for path in DASHBOARDS:
        dashboard = json.loads(path.read_text())
        every = dashboard["panels"]
        assert len({panel["id"] for panel in every}) == len(every)
        cells = [
            (x, y)
            for place in (panel["gridPos"] for panel in every)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]
        assert len(cells) == len(set(cells))
        assert max(x for x, _ in cells) < 24
        assert [each["name"] for each in dashboard["templating"]["list"]] == ["datasource"]
        assert all(panel["datasource"]["uid"] == "${datasource}" for panel in every if panel["type"] != "row")
