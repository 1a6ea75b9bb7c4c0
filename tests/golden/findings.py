"""What every check says about its example, and of one in which everything is there twice.

`python -m tests.golden.findings` writes it anew. Whoever does that reads the difference: whether it is right, and right
English for one and for two.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from runup.checks.catalogue import CHECKS
from runup.checks.decide import check_page
from runup.checks.decide.engine import run_check
from runup.checks.decide.model import Check, Finding

KEPT = Path(__file__).parent / "findings.txt"
SHOWN = tuple(check for check in CHECKS if check.about)
# There is one of them in any cluster.
_SINGLE = frozenset({"cluster", "version"})


def findings(check: Check) -> str:
    """A paragraph for each finding of a check's example."""
    parts = [_paragraph(f"{check.name}{title}", made) for title, made in (("", check), (", twice", twice(check)))]
    return "\n".join(parts)


def twice(check: Check) -> Check:
    """With another of everything, which comes first, and whose name comes later."""
    documents = [each for each in yaml.safe_load_all(check.example) if each]
    others = [_other(each) for each in documents if "metadata" in each and each["metadata"]["name"] not in _SINGLE]
    return replace(check, example=yaml.safe_dump_all([*others, *documents], sort_keys=False, allow_unicode=True))


def _other(document: dict[str, Any]) -> dict[str, Any]:
    other = copy.deepcopy(document)
    other["metadata"]["name"] += "-other"
    return other


def _paragraph(title: str, check: Check) -> str:
    return f"== {title}\n" + "".join(map(_text_of, run_check(check, *check_page.example(check)).findings))


def _text_of(finding: Finding) -> str:
    about = (filter(None, (each.group, each.kind, each.namespace, each.name)) for each in finding.resources)
    lines = (
        f"{finding.name} applies={finding.applies.value} severity={finding.severity} reason={finding.reason}",
        finding.message,
        f"Fix: {finding.remediation}",
        f"About: {', '.join(map('/'.join, about)) or 'nothing'}",
    )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    KEPT.write_text("\n".join(map(findings, SHOWN)), encoding="utf-8")
