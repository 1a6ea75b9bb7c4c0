"""SARIF against the schema that OASIS publishes, as a Go module carries it: nothing of it is in this repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.cli.commands import Run
from tests.cli.preflight.test_run_command import CLUSTER, OPERATOR, dump

if TYPE_CHECKING:
    import jsonschema

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
# SARIF 2.1.0 with its first errata, https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas
MODULE = "github.com/owenrumney/go-sarif/v3@v3.3.1"
SCHEMA = "pkg/report/v210/sarif/schema.go"
SUM = "h1:bKY8YnWcY8zYTiGVObC5wZLlfEvMkCxK9XMGXBbzEtQ="
DEGRADED = Path(__file__).parents[4] / "shared" / "corpus" / "oc-status" / "4.14.1-degraded"
EXAMPLE = Path(__file__).parents[3] / "examples" / "skip-level"


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft4Validator:
    """The published schema; skips where Go, or its proxy, is not."""
    # It compiles grammars as it is imported: two seconds of every process that collects this file.
    import jsonschema

    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no Go, whose module proxy has the schema")
    environ = {**os.environ, "GOFLAGS": "-mod=mod", "GONOSUMDB": "*", "GOTOOLCHAIN": "local"}
    done = subprocess.run([go, "mod", "download", "-json", MODULE], env=environ, capture_output=True, check=False)
    shown = json.loads(done.stdout or b"{}")
    if shown.get("Error") or "Dir" not in shown:
        pytest.skip(f"{MODULE} could not be fetched: {shown.get('Error', done.stderr.decode()[-200:])}")
    assert shown["Sum"] == SUM
    text = Path(shown["Dir"], SCHEMA).read_text("utf-8")
    schema: dict[str, Any] = json.loads(text[text.index("`") + 1 : text.rindex("`")])
    assert schema["id"].endswith("/sarif-schema-2.1.0.json")
    return jsonschema.Draft4Validator(schema, format_checker=jsonschema.FormatChecker())


def faults(validator: jsonschema.Draft4Validator, text: str) -> list[str]:
    """Each fault with its place."""
    return [f"{fault.json_path}: {fault.message}" for fault in validator.iter_errors(json.loads(text))]


@pytest.mark.parametrize("sample", ["objects", "example", "not a cluster", "degraded"])
def test_what_is_printed_is_sarif(sample: str, validator: Any, tmp_path: Path, run: Run) -> None:
    """With places and without, with risks and with the reason why they are missing."""
    if sample == "degraded" and not DEGRADED.parent.is_dir():
        pytest.skip("the corpus of dumps is not beside this checkout")
    made = {
        "objects": lambda: dump(tmp_path / "one", CLUSTER, OPERATOR),
        "example": lambda: EXAMPLE,
        "not a cluster": lambda: dump(tmp_path / "none", OPERATOR),
        "degraded": lambda: DEGRADED,
    }[sample]()
    printed = run("preflight", "run", "--dump", made, "-o", "sarif").out
    assert faults(validator, printed) == []
    assert bool(json.loads(printed)["runs"][0]["results"]) == (sample != "not a cluster")


def test_the_schema_refuses_something(validator: Any, tmp_path: Path, run: Run) -> None:
    """A result without a message: the evaluate itself works."""
    log = json.loads(run("preflight", "run", "--dump", dump(tmp_path / "one", CLUSTER, OPERATOR), "-o", "sarif").out)
    del log["runs"][0]["results"][0]["message"]
    assert faults(validator, json.dumps(log)) != []
