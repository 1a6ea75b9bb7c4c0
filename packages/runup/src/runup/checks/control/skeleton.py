"""Generates the skeleton of a check and of its cases as two texts.

The cases contain a forbidden word, so that an unchanged skeleton does not pass.
"""

from __future__ import annotations

import re
from pathlib import Path

from kubekit.error_types import InputError
from runup.api.kinds import RESOURCES
from runup.checks.decide.cases import UNCHANGED_MARK

CHECK = """\
# What goes wrong, in one line; who must fix it. Try it: runup checks lint {file} && runup checks test {file}
apiVersion: preflight.runup.dev/v1alpha1
kind: PreflightCheck
metadata:
  name: {name}
  annotations:
    include.release.openshift.io/self-managed-high-availability: "true"
spec:
  component: {component}
  targets: ">={target}-0"        # which updates it is for; sources: "<{target}-0" narrows it further
  reads:                         # all that the check may look at; its right to read is made of this
  - name: objects                # the variable
    group: {group}
    version: {version}
    resource: {resource}
    kind: {kind}
    fields: [spec, status]       # all that is kept; metadata is always there
  for: objects                   # evaluate once for each, as `object`
  expression: has(object.spec) && has(object.spec.old) && object.spec.old
  risk:
    name: {risk}                 # stable: administrators accept it by name
    message: Some {kind} objects use what {target} does not have.
    messageExpression: object.metadata.name + " uses what " + update.target + " does not have."
    severity: warning            # critical, warning, info
    remediation: Change them first; say how, and the command that shows it.
"""

CASES = """\
# What {name} must say. Replace each {replace}; there must be a case of each kind.
apiVersion: preflight.runup.dev/v1alpha1
kind: PreflightCheckTest
check: {name}
cases:
- name: one that is fine
  expect: Clear
  objects:
  - {{apiVersion: {api_version}, kind: {kind}, metadata: {{name: {replace}}}, spec: {{old: false}}}}
- name: one that would break
  expect: Applies
  objects:
  - {{apiVersion: {api_version}, kind: {kind}, metadata: {{name: {replace}}}, spec: {{old: true}}}}
  resources: [{replace}]
- name: not allowed to look ({replace})
  expect: Unknown
  lacking: [{plural}]
- name: an empty cluster ({replace})
  expect: Clear
"""


BUILT_IN = '''"""What goes wrong: {replace}.

Applies when a node has the annotation `example.com/old`: {replace}.

Why it matters: {replace}.

Remedy: {replace}.

Accepting it means {replace}.

Source of the rule: {replace}.
"""

from __future__ import annotations

from kubekit.api.core_v1 import Node
from runup.checks.writing import Context, Findings, Snapshot, count, declared, names_of, risk

NAME = "{name}"
EXAMPLE = """
apiVersion: v1
kind: Node
metadata: {{name: worker-0, annotations: {{example.com/old: "true"}}}}
"""


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one risk that names the nodes with the annotation."""
    old = [node for node in snapshot.all(Node) if node.metadata.annotations.get("example.com/old") == "true"]
    if old:
        yield risk(
            NAME,
            f"{{count(len(old), 'node')}} would go wrong: {{names_of(old)}}.",
            old,
            fix="Say how to correct it, and the command that shows it.",
        )


CHECK = declared(run, NAME, "{component}", reads=(Node,))
'''
_CATALOGUE, _LIST = "packages/runup/src/runup/checks/catalogue", "docs/reference/checks/README.md"
_ROWS = "tests/checks/catalogue/test_examples.py"


def built_in_files(root: Path, name: str, area: str, component: str) -> dict[Path, str]:
    """Returns the files of a checkout with a new built-in check: its module, its row in the list, a row that is clear.

    Raises InputError if the checkout has no such area, or the check already.
    """
    folder = root / _CATALOGUE / area
    module = folder / f"{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', name).lower()}.py"
    if not (folder / "__init__.py").is_file():
        raise InputError(f"{folder}: there is no such area of built-in checks; --in names the checkout of the sources")
    if module.exists():
        raise InputError(f"{module} exists; it is not replaced")
    listed, rows = ((root / path).read_text(encoding="utf-8") for path in (_LIST, _ROWS))
    # The first table ends at the first empty line behind its head.
    end = listed.index("\n\n", listed.index("|---|---|---|")) + 1
    last = rows.index("\n)\n\n\ndef changed(") + 1
    clear = f"""    Row("{name}: {UNCHANGED_MARK}", "{name}", (('old: "true"', 'old: "false"'),)),\n"""
    return {
        module: BUILT_IN.format(name=name, component=component, replace=UNCHANGED_MARK),
        root / _LIST: f"{listed[:end]}| [{name}]({name}.md) | warning | all |\n{listed[end:]}",
        root / _ROWS: rows[:last] + clear + rows[last:],
    }


def skeleton(name: str, component: str, resource: str, kind: str, target: str, file: str) -> tuple[str, str]:
    """Returns the text of the check and that of its cases.

    `resource` is `plural.version.group`, as kubectl takes it; the core group's has no group.
    """
    plural, _, version_and_group = resource.partition(".")
    version, _, group = version_and_group.partition(".")
    risk = "".join(word[:1].upper() + word[1:] for word in name.replace(".", "-").split("-"))
    placeholders = {
        "name": name,
        "component": component,
        "resource": plural,
        "version": version or "v1",
        "group": group or '""',
        "kind": kind,
        "risk": risk,
        "target": target,
        "file": file,
        "replace": UNCHANGED_MARK,
        "plural": f"{plural}.{group}" if group else plural,
        "api_version": f"{group}/{version}" if group else version or "v1",
    }
    return CHECK.format(**placeholders), CASES.format(**placeholders)


def complete_resource(resource: str, kind: str) -> tuple[str, str]:
    """Returns the resource and the kind, with the one that was not given looked up among those that runup knows.

    Raises InputError if runup knows none.
    """
    if resource and kind:
        return resource, kind
    if not resource and not kind:
        return "configmaps.v1", "ConfigMap"
    plural, _, version_and_group = resource.partition(".")
    group = version_and_group.partition(".")[2]
    for resource_type in RESOURCES.values():
        if resource_type.kind == kind or (resource_type.plural, resource_type.group) == (plural, group):
            known_resource = f"{resource_type.plural}.{resource_type.version}" + (
                f".{resource_type.group}" if resource_type.group else ""
            )
            return resource or known_resource, resource_type.kind
    typed, other = (f"--resource {resource}", "--kind") if resource else (f"--kind {kind}", "--resource")
    raise InputError(f"{typed} is not a kind that runup knows; give its {other}, too")
