"""The page of transcripts says what is so."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len
from tests.servers import serve
from tests.transcripts import page, stage

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_the_page_of_transcripts_is_current(tmp_path: Path) -> None:
    """Every command of `docs/reference/what-it-looks-like.md` still prints what the page shows."""
    for server in serve(tmp_path / "data", "CustomNoUpgrade", offset_s=stage.offset_s()):
        stage.furnish(server)
        assert page.page(server) == page.PAGE.read_text()


@pytest.mark.parametrize("width", page.WIDTHS)
def test_every_line_of_the_page_fits_its_terminal(width: int) -> None:
    """All but commands to be copied."""
    part = page.PAGE.read_text().partition(f"\n## {width} columns\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if not line.startswith("  runup upgrade accept ")]
    assert max(map(cell_len, lines)) <= width
