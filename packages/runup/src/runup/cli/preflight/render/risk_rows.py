"""Renders preflights as a table for spreadsheets and queries: a row for each risk of each cluster. Pure."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kubekit.lang.text import timestamp
from runup.cli.preflight.outputs import Shown
from runup.evaluation.results import ClusterResult

_CLUSTER_COLUMNS = ("cluster", "clusterID", "source", "target", "judged", "observed")
_RISK_COLUMNS = ("risk", "severity", "applies", "state", "accepted", "because", "message", "objects")
# A spreadsheet evaluates cells that begin so (https://owasp.org/www-community/attacks/CSV_Injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def rows(results: Iterable[ClusterResult]) -> Iterator[dict[str, Any]]:
    """Yields a row for each risk of each cluster.

    For a cluster without risks, or not evaluated, yields one row whose risk columns are empty, except
    `message`: it says why the cluster could not be evaluated.
    """
    for result in results:
        findings = result.findings
        cluster = {
            "cluster": result.name,
            "clusterID": findings.cluster_id or None,
            "source": findings.source or None,
            "target": findings.target or None,
            "judged": findings.completed,
            "observed": findings.observed or result.tried,
        }
        for risk in findings.risks:
            yield cluster | {
                "risk": risk.name,
                "severity": risk.severity or None,
                "applies": risk.applies,
                "state": risk.state,
                "accepted": risk.accepted,
                "because": risk.because or None,
                "message": risk.message,
                "objects": len(risk.resources),
            }
        if not findings.risks:
            problem = findings.failed.message if findings.failed else None
            yield cluster | dict.fromkeys(_RISK_COLUMNS) | {"message": problem}


def as_csv(shown: Shown) -> Iterator[str]:
    """Yields the rows as CSV with a header, in lines that end as text does (RFC 4180 has CRLF).

    An apostrophe precedes a text that would be a formula.
    """
    yield _line((*_CLUSTER_COLUMNS, *_RISK_COLUMNS))
    for row in rows(shown.results):
        yield _line([_cell(row[column]) for column in (*_CLUSTER_COLUMNS, *_RISK_COLUMNS)])


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = value if isinstance(value, str) else str(value) if isinstance(value, int) else timestamp(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _line(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(cells)
    return line.getvalue()
