"""Writes the preflights of a fleet as Parquet, a row for each risk of each cluster, by the optional package pyarrow."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from runup.cli.errors import CommandError
from runup.cli.preflight.outputs import STDOUT, Shown, Target
from runup.evaluation.results import ClusterResult
from runup.extras import missing_package

FORM = "parquet"
_ROWS_AT_ONCE = 10_000
_RISK_COLUMNS = ("risk", "severity", "applies", "state", "accepted", "because", "message", "objects")


def check(targets: Sequence[Target]) -> None:
    """Raises CommandError if Parquet is asked for and cannot be written; before any cluster is read."""
    paths = [path for form, path in targets if form == FORM]
    if STDOUT in paths:
        raise CommandError("-o parquet: is no text; give it a file: -o parquet=FILE")
    if paths and importlib.util.find_spec("pyarrow") is None:
        raise CommandError(f"-o parquet: {missing_package('pyarrow', 'parquet')}, or use -o json")


def rows(results: Iterable[ClusterResult]) -> Iterator[dict[str, Any]]:
    """Yields a row for each risk of each cluster.

    For a cluster without risks, or not evaluated, yields one row whose risk columns are empty.
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
            yield cluster | dict.fromkeys(_RISK_COLUMNS)


def as_parquet(shown: Shown) -> bytes:
    """Returns the bytes of a Parquet file."""
    import pyarrow as arrow
    from pyarrow import parquet

    text, flag = arrow.string(), arrow.bool_()
    schema = arrow.schema(
        {
            **dict.fromkeys(("cluster", "clusterID", "source", "target"), text),
            "judged": flag,
            "observed": arrow.timestamp("us", tz="UTC"),
            **dict.fromkeys(("risk", "severity", "applies", "state"), text),
            "accepted": flag,
            "because": text,
            "message": text,
            "objects": arrow.int64(),
        }
    )
    stream = io.BytesIO()
    all_rows = rows(shown.results)
    with parquet.ParquetWriter(stream, schema) as writer:
        while part := list(islice(all_rows, _ROWS_AT_ONCE)):
            writer.write_table(arrow.Table.from_pylist(part, schema=schema))
    return stream.getvalue()
