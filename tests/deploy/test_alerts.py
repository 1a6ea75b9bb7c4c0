"""The alerts as Prometheus itself evaluates them, and each of them tried."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ALERTS = Path(__file__).parents[2] / "deploy/manifests/0000_90_cluster-version-operator_02_alerts.yaml"
TESTS = Path(__file__).parent / "alerts_test.yaml"


def test_every_alert_is_tried() -> None:
    """Silent and firing: a rule whose metric has another name never fires, and nobody notices."""
    (resource,) = yaml.safe_load_all(ALERTS.read_text())
    alerts = {rule["alert"] for group in resource["spec"]["groups"] for rule in group["rules"]}
    tried = [each for test in yaml.safe_load(TESTS.read_text())["tests"] for each in test["alert_rule_test"]]
    assert {each["alertname"] for each in tried if "exp_alerts" in each} == alerts
    assert {each["alertname"] for each in tried if "exp_alerts" not in each} == alerts


def test_prometheus_evaluates_them(tmp_path: Path) -> None:
    """By its own program, which Debian's package `prometheus` brings."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("needs promtool, of Debian's package prometheus")
    (resource,) = yaml.safe_load_all(ALERTS.read_text())
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(resource["spec"]))
    shutil.copy(TESTS, tmp_path)
    done = subprocess.run(
        [promtool, "test", "rules", TESTS.name], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=90
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout
