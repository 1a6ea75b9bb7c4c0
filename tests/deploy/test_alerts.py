"""The alerts as Prometheus itself evaluates them, and each of them tried."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.few_or_many import first_and_rest

from runup.release.decide.payload import Values, render

HERE = Path(__file__).parent
ALERTS = sorted((HERE.parents[1] / "deploy").glob("*/*alerts.yaml"))
TESTS = tuple(sorted(path.name for path in HERE.glob("*alerts_test.yaml")))


def groups() -> Iterator[dict[str, Any]]:
    """The groups of rules, as a cluster gets them: what is Prometheus' own template is text in ours."""
    for path in ALERTS:
        # Only the manifests of a release are templates, by the name of their files.
        text = render(path.read_text(), Values()) if path.name.startswith("0000_") else path.read_text()
        for resource in yaml.safe_load_all(text):
            yield from resource["spec"]["groups"]


def test_every_alert_is_tried() -> None:
    """Silent and firing: a rule whose metric has another name never fires, and nobody notices."""
    alerts = {rule["alert"] for group in groups() for rule in group["rules"]}
    files = [yaml.safe_load((HERE / name).read_text()) for name in TESTS]
    tried = [each for file in files for test in file["tests"] for each in test["alert_rule_test"]]
    assert {each["alertname"] for each in tried if "exp_alerts" in each} == alerts
    assert {each["alertname"] for each in tried if "exp_alerts" not in each} == alerts


@pytest.mark.slow
@pytest.mark.parametrize("name", first_and_rest(TESTS))
def test_prometheus_evaluates_them(tmp_path: Path, name: str) -> None:
    """By its own program, which Debian's package `prometheus` brings."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("needs promtool, of Debian's package prometheus")
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": list(groups())}))
    shutil.copy(HERE / name, tmp_path)
    done = subprocess.run(
        [promtool, "test", "rules", name], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=90
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout
