"""The report format as a JSON Schema, generated from the types that read and write it.

`docs/reference/spec/preflight-v1.schema.json` is the checked-in copy, which a test compares. `tools/report_schema.py`
writes it. What a schema cannot express (unique names, at most 1 MiB) is described in
`docs/reference/spec/preflight-v1.md`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from runup.report.report import FORMAT, MAX_NAME, MAX_RISKS, MAX_URL, NAME, URL, Report

ID = "https://docs.runup.example/spec/preflight-v1.schema.json"


def report_schema() -> dict[str, Any]:
    """Returns the JSON Schema (draft 2020-12). Unknown members are allowed, because a reader ignores them."""
    (root,), components = msgspec.json.schema_components([Report], ref_template="#/$defs/{name}")
    definitions = {name: components[name] for name in sorted(components)}
    definitions["Report"]["properties"]["format"] = {"const": FORMAT}
    # A reader that knows the request supplies the rest.
    definitions["Report"]["required"] = ["format"]
    definitions["Report"]["properties"]["risks"]["maxItems"] = MAX_RISKS
    for time in ("startedTime", "completionTime", "observedTime"):
        definitions["Report"]["properties"][time] = {"type": "string", "format": "date-time"}
    risk = definitions["ReportedRisk"]["properties"]
    risk["name"] |= {"pattern": f"^{NAME.pattern}$", "maxLength": MAX_NAME}
    risk["message"] |= {"minLength": 1}
    risk["url"] |= {"pattern": f"^({URL.pattern})?$", "maxLength": MAX_URL}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": FORMAT,
        **root,
        "$defs": definitions,
    }
