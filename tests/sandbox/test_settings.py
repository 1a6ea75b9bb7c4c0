"""What a sandbox keeps in its folder: a file that is damaged is named, with the way out."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesandbox.sandbox_error import SandboxError
from runup.sandbox.setup import settings


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"{", id="no JSON"),
        pytest.param(b"[]", id="of another type"),
        pytest.param(b'{"scenario":"\xff"}', id="no UTF-8"),
        pytest.param(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", id="nested too deep"),
    ],
)
def test_a_damaged_file_is_named(content: bytes, tmp_path: Path) -> None:
    """One error, that says what to do."""
    (tmp_path / settings.FILE).write_bytes(content)
    with pytest.raises(SandboxError, match=r"sandbox\.json cannot be read .*give another with --data"):
        settings.load(tmp_path)
