"""Renders an UpdateStatus as one self-contained HTML page; the entry point is `page.page`."""

from __future__ import annotations

from runup.cli.updatestatus.render.html.page import page

__all__ = ["page"]
