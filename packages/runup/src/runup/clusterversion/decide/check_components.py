"""Turns the components that were found into rows: namespace, version, readiness and rights of each. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from runup.clusterversion.decide.prerequisite_facts import Facts, Installed, PrerequisiteRow, Result
from runup.install.decide.component import COMPONENTS

_ROW = "components"


def component_rows(facts: Facts) -> Iterator[PrerequisiteRow]:
    """Yields a row for each component that is installed, and one for those that are not."""
    if facts.components is None:
        why = facts.errors.get(_ROW, "they were not asked for")
        yield PrerequisiteRow(
            _ROW, Result.UNKNOWN, f"which are installed: {why}", "ask again as somebody who may list Deployments"
        )
        return
    for component in facts.components:
        yield _component_row(component)
    absent = [name for name in COMPONENTS if name not in {component.component for component in facts.components}]
    if absent:
        yield PrerequisiteRow(_ROW, Result.OK, f"not installed as a Deployment: {', '.join(absent)}")


def _component_row(installed: Installed) -> PrerequisiteRow:
    """Returns the row of one installed component: its version, where it runs, and how many of its pods are ready."""
    name = f"component {installed.component}"
    place = f"Deployment {installed.namespace}/{installed.deployment}"
    pods = f"{installed.ready} of {installed.wanted} pods ready"
    says = f"{_version_text(installed)} in namespace {installed.namespace}, {pods}"
    if not installed.wanted:
        way_out = f"kubectl -n {installed.namespace} scale deployment/{installed.deployment} --replicas=1"
        return PrerequisiteRow(name, Result.PROBLEM, f"{says}: it is scaled to 0 replicas", f"`{way_out}`")
    if installed.ready < installed.wanted or not installed.rolled_out:
        why = installed.why or "its newest pods are not available yet"
        return PrerequisiteRow(
            name, Result.PROBLEM, f"{says}: {why}", f"see `kubectl -n {installed.namespace} describe pods`"
        )
    if installed.lacking:
        text = f"{says}; its account may not {', '.join(installed.lacking)}"
        return PrerequisiteRow(
            name, Result.PROBLEM, text, f"`runup install {installed.component}` gives it its roles again"
        )
    if installed.rights_error:
        text = f"{says}; whether its account has its rights: {installed.rights_error}"
        return PrerequisiteRow(name, Result.UNKNOWN, text, "ask again as somebody who may create subjectaccessreviews")
    if not installed.by_install:
        return PrerequisiteRow(name, Result.OK, f"{says}; {place} was not made by `runup install`")
    return PrerequisiteRow(name, Result.OK, f"{says}, its account has its rights")


def _version_text(installed: Installed) -> str:
    """Returns the installed component's version in words."""
    if not installed.by_install:
        return installed.image or "no image"
    if installed.version:
        return f"runup {installed.version}"
    return f"a version that could not be read ({installed.version_error or 'its inventory names none'})"
