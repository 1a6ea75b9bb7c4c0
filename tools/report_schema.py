"""Write the JSON Schema of the preflight's report: `python tools/report_schema.py`."""

from __future__ import annotations

import json
from pathlib import Path

from runup.domain.preflight.schema import report_schema

PATH = Path(__file__).parents[1] / "docs" / "spec" / "preflight-v1.schema.json"

if __name__ == "__main__":
    PATH.write_text(json.dumps(report_schema(), indent=2) + "\n")
    print(f"wrote {PATH}")
