"""Write `docs/reference/what-it-looks-like.md`: `python -m tests.transcripts`."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.servers import serve
from tests.transcripts import page, stage


def main() -> None:
    """Start a server, furnish it, type the commands, write the page."""
    with tempfile.TemporaryDirectory(prefix="runup-transcripts-") as folder:
        for server in serve(Path(folder) / "data", "CustomNoUpgrade", offset_s=stage.offset_s()):
            stage.furnish(server)
            page.PAGE.write_text(page.page(server))
    print(f"wrote {page.PAGE.name}")


if __name__ == "__main__":
    main()
