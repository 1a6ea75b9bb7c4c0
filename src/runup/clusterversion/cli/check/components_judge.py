"""Turns the components that were found into rows: installed where, which version, ready, with its rights. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from runup.clusterversion.cli.check.prerequisite_facts import Facts, Installed, Result, Row
from runup.install.decide.component import COMPONENTS

_ROW = "components"


def component_rows(facts: Facts) -> Iterator[Row]:
    """Yields a row for each component that is installed, and one for those that are not."""
    if facts.components is None:
        why = facts.errors.get(_ROW, "they were not asked for")
        yield Row(_ROW, Result.UNKNOWN, f"which are installed: {why}", "ask again as somebody who may list Deployments")
        return
    for found in facts.components:
        yield _component_row(found)
    absent = [name for name in COMPONENTS if name not in {found.component for found in facts.components}]
    if absent:
        yield Row(_ROW, Result.OK, f"not installed as a Deployment: {', '.join(absent)}")


def _component_row(found: Installed) -> Row:
    """Returns the row of one installed component: its version, where it runs, and how many of its pods are ready."""
    name = f"component {found.component}"
    place = f"Deployment {found.namespace}/{found.deployment}"
    says = f"{_version_text(found)} in namespace {found.namespace}, {found.ready} of {found.wanted} pods ready"
    if not found.wanted:
        way_out = f"kubectl -n {found.namespace} scale deployment/{found.deployment} --replicas=1"
        return Row(name, Result.PROBLEM, f"{says}: it is scaled to 0 replicas", f"`{way_out}`")
    if found.ready < found.wanted or not found.rolled_out:
        why = found.why or "its newest pods are not available yet"
        return Row(name, Result.PROBLEM, f"{says}: {why}", f"see `kubectl -n {found.namespace} describe pods`")
    if found.lacking:
        text = f"{says}; its account may not {', '.join(found.lacking)}"
        return Row(name, Result.PROBLEM, text, f"`runup install {found.component}` gives it its roles again")
    if found.rights_error:
        text = f"{says}; whether its account has its rights: {found.rights_error}"
        return Row(name, Result.UNKNOWN, text, "ask again as somebody who may create subjectaccessreviews")
    if not found.by_install:
        return Row(name, Result.OK, f"{says}; {place} was not made by `runup install`")
    return Row(name, Result.OK, f"{says}, its account has its rights")


def _version_text(found: Installed) -> str:
    if not found.by_install:
        return found.image or "no image"
    if found.version:
        return f"runup {found.version}"
    return f"a version that could not be read ({found.version_error or 'its inventory names none'})"
