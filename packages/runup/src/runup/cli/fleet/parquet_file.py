"""Writes the preflights of a fleet as Parquet, a row for each risk of each cluster, by the optional package pyarrow."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Sequence
from itertools import islice

from runup.cli.errors import CommandError
from runup.cli.preflight.outputs import STDOUT, Shown, Target
from runup.cli.preflight.render import risk_rows
from runup.extras import missing_package

FORM = "parquet"
_ROWS_AT_ONCE = 10_000


def check(targets: Sequence[Target]) -> None:
    """Raises CommandError if Parquet is asked for and cannot be written; before any cluster is read."""
    paths = [path for form, path in targets if form == FORM]
    if STDOUT in paths:
        raise CommandError("-o parquet: is no text; give it a file: -o parquet=FILE")
    if paths and importlib.util.find_spec("pyarrow") is None:
        raise CommandError(f"-o parquet: {missing_package('pyarrow', 'parquet')}, or use -o json")


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
    all_rows = risk_rows.rows(shown.results)
    with parquet.ParquetWriter(stream, schema) as writer:
        while part := list(islice(all_rows, _ROWS_AT_ONCE)):
            writer.write_table(arrow.Table.from_pylist(part, schema=schema))
    return stream.getvalue()
