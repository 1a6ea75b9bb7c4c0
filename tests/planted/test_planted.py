"""Clusters with risks and lookalikes that somebody planted who had not read the checks.

What a release would say of each plant stands in its `expected.yaml`: what is missed there is missed for the reason that
it gives, and a lookalike of which something is told has one, too.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from runup.python_api import Findings, ReportedResource, Risk, evaluate

HERE = Path(__file__).parent
CLUSTERS = sorted(str(each.parent.relative_to(HERE)) for each in HERE.glob("*/*/truth.yaml"))
# What makes pods again is named by its pods, too.
OWNERS = ("Deployment", "StatefulSet", "ReplicaSet", "Job")
Plant = dict[str, Any]


@cache
def read(cluster: str, name: str) -> Any:
    """A file of the cluster's folder, read once; nobody changes it."""
    return yaml.load((HERE / cluster / name).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


@cache
def findings_of(cluster: str) -> Findings:
    """What a preflight of the next minor version says of the cluster."""
    return evaluate(dump=HERE / cluster / "cluster.tar.gz")


def is_about(risk: Risk, plant: Plant) -> bool:
    """Whether the risk names an object of the plant, or a pod of one."""
    return any(_names(about, text) for text in plant["objects"] for about in risk.resources)


def _names(about: ReportedResource, text: str) -> bool:
    kind, _, key = text.partition(" ")
    namespace, _, name = key.rpartition("/")
    if (about.kind, about.name) == (kind, name):
        return about.namespace in ("", namespace)
    its_pod = kind in OWNERS and about.kind == "Pod" and about.namespace == namespace
    return its_pod and about.name.startswith(f"{name}-")


def names_plant(risk: Risk, plant: Plant) -> bool:
    """Whether the risk is about the plant, or its words name an object of it."""
    names = [text.partition(" ")[2] for text in plant["objects"]]
    return is_about(risk, plant) or any(name in f"{risk.name} {risk.message}" for name in names)


def rows(kind: str) -> list[Any]:
    """Every plant of that kind with its cluster, which one process judges for all of its plants."""
    every = [(cluster, plant) for cluster in CLUSTERS for plant in read(cluster, "truth.yaml")]
    return [
        pytest.param(cluster, plant, id=plant["id"], marks=pytest.mark.xdist_group(f"planted {cluster}"))
        for cluster, plant in every
        if plant["plant"] == kind
    ]


@pytest.mark.parametrize(("cluster", "plant"), rows("risk"))
def test_a_risk(cluster: str, plant: Plant) -> None:
    """It is found under the name that is expected, or missed for a reason."""
    expected = read(cluster, "expected.yaml")
    applying = [risk for risk in findings_of(cluster).risks if risk.applies == "True"]
    if name := expected["found"].get(plant["id"]):
        # A name with what it is about in it is enough.
        assert name in {risk.name for risk in applying if "-" in risk.name or names_plant(risk, plant)}
    else:
        reported = {risk.name for risk in applying if is_about(risk, plant)}
        assert reported == set(expected["beside"].get(plant["id"], ()))


@pytest.mark.parametrize(("cluster", "plant"), rows("lookalike"))
def test_a_lookalike(cluster: str, plant: Plant) -> None:
    """Nothing is told of it, or for a reason."""
    reported = {risk.name for risk in findings_of(cluster).risks if risk.applies == "True" and is_about(risk, plant)}
    assert reported == set(read(cluster, "expected.yaml")["told"].get(plant["id"], {}))


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_plant_has_its_line(cluster: str) -> None:
    """No line is about something else."""
    expected, truth = read(cluster, "expected.yaml"), read(cluster, "truth.yaml")
    risks = {plant["id"] for plant in truth if plant["plant"] == "risk"}
    assert {*expected["found"], *expected["missed"]} == risks
    assert not {*expected["found"]} & {*expected["missed"]}
    assert {*expected["told"]} <= {plant["id"] for plant in truth if plant["plant"] == "lookalike"}
    assert all(reason for reason in expected["missed"].values())
