"""UpdateStatus as one self-contained HTML page; `page.page` makes it."""

from __future__ import annotations

from runup.updatestatus.cli.render.html.page import page

__all__ = ["page"]
