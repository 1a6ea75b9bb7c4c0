"""structlog without rich, in a separate process as the operator's program begins."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        pytest.param("print('rich' in sys.modules, structlog.dev.rich)", "False None", id="structlog has no rich"),
        pytest.param("import rich.table; print(rich.table.Table.__name__)", "Table", id="others have it as ever"),
        pytest.param(
            "from structlog.processors import JSONRenderer, format_exc_info\n"
            "structlog.configure(processors=[format_exc_info, JSONRenderer()])\n"
            "try: 1 / 0\n"
            "except ZeroDivisionError: structlog.get_logger().exception('it failed')",
            None,
            id="an exception is logged",
        ),
    ],
)
def test_structlog_does_without_rich(code: str, printed: str | None) -> None:
    """Who else imports it afterwards has it."""
    begin = "import sys; from runup.cli.startup.plain_logs import leave_rich_out; leave_rich_out(); import structlog\n"
    done = subprocess.run([sys.executable, "-c", begin + code], capture_output=True, text=True, check=True)
    if printed is None:
        assert "ZeroDivisionError" in done.stdout
        assert '"event": "it failed"' in done.stdout
    else:
        assert done.stdout.strip() == printed


def test_the_operators_program_begins_with_it() -> None:
    """Its first import installs the finder, and the command that it runs then has no rich."""
    begin = "import sys; from runup.cli.operator import entry; sys.argv = ['x', 'version']; entry.main()"
    code = f"{begin}; import structlog; "
    done = subprocess.run(
        [sys.executable, "-c", code + "print('rich' in sys.modules)"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "False"
