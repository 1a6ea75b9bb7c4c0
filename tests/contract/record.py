"""`python -m tests.contract.record [FILE...]`: let a real kube-apiserver say what the rows must answer.

In: the names of files of rows (all where none is given; `discovery` is what the server serves). Out: the same files,
`then` written again. Rows whose answer
changed are reported on stderr: a row that was right and changes is a row that states what varies from run to run.
"""

from __future__ import annotations

import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

import yaml
from tests.contract.api import Api
from tests.contract.conftest import define_widgets
from tests.contract.rows import Row, files, run
from tests.contract.served import RECORDED, served
from tests.controlplane import build
from tests.controlplane.plane import ControlPlane


class _Dumper(yaml.SafeDumper):
    """Small collections on one line, no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def main(names: list[str]) -> int:
    """1 if a row could not be recorded; raises what the real server's start raises."""
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder), build.build()) as plane:
        api = Api("kube-apiserver", str(plane.kubeconfig))
        define_widgets(api)
        failed = 0
        if not names or RECORDED.stem in names:
            RECORDED.write_text(yaml.safe_dump(served(api), width=118))
        for path in files():
            if not names or path.stem in names or path.name in names:
                failed += _record(api, path)
    return 1 if failed else 0


def _record(api: Api, path: Path) -> int:
    """How many rows could not be: one of their first requests failed."""
    failed = 0
    raw = yaml.safe_load(path.read_text())
    for number, row in enumerate(raw):
        namespace = f"ns-{uuid.uuid4().hex[:10]}"
        api.post("/api/v1/namespaces", {"metadata": {"name": namespace}}).ok()
        try:
            then = run(api, Row(**{"file": path.stem, **row}), namespace)
        except (AssertionError, KeyError) as error:
            print(f"{path.stem}: {row['id']}: {error!r}", file=sys.stderr)
            failed += 1
            continue
        if "then" in row and row["then"] != then:
            print(f"{path.stem}: changed: {row['id']}", file=sys.stderr)
        raw[number] = {**row, "then": then}
    written = path.with_suffix(".tmp")
    written.write_text(dump(raw))
    written.rename(path)
    return failed


def dump(rows: list[dict[str, Any]]) -> str:
    """Rows with an empty line between them; each request on one line if it fits."""
    return "\n".join(
        yaml.dump([row], Dumper=_Dumper, width=118, sort_keys=False, default_flow_style=None, allow_unicode=True)
        for row in rows
    )


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
