"""Write the JSON Schemas of the report, of PreflightCheck and of its tests: `python tools/report_schema.py`."""

from __future__ import annotations

import json
from pathlib import Path

from runup.checks.decide.check_schema import cases_schema, check_schema
from runup.report.schema import report_schema

SPEC = Path(__file__).parents[1] / "docs" / "reference" / "spec"
SCHEMAS = {
    "preflight-v1.schema.json": report_schema,
    "preflightcheck-v1alpha1.schema.json": check_schema,
    "preflightchecktest-v1alpha1.schema.json": cases_schema,
}

if __name__ == "__main__":
    for name, made in SCHEMAS.items():
        (SPEC / name).write_text(json.dumps(made(), indent=2) + "\n")
        print(f"wrote {SPEC / name}")
