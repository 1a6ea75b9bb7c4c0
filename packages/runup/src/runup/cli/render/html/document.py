"""The frame of every page: one file without scripts, fonts or images, with cluster and time at the top."""

from __future__ import annotations

from datetime import datetime

from runup import __version__
from runup.cli.render.html.markup import Child, Markup, el
from runup.cli.render.html.parts import minute_text
from runup.cli.render.html.style import STYLE

# Reports contain other people's text: even if some of it were taken for markup, no script runs and nothing is loaded.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def document(title: str, *body: Child, now: datetime, cluster: str = "") -> str:
    """Returns the page `title`, of `cluster`, as of `now`."""
    full_title = f"{title}: {cluster}" if cluster else title
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        el("meta", name="color-scheme", content="light dark"),
        el("title", full_title),
        el("style", Markup(STYLE)),
    )
    cluster_part = (el("span", "Cluster ", el("strong", cluster)),) if cluster else ()
    top = el("header", *cluster_part, el("span", "As of ", el("strong", minute_text(now))), class_="top")
    foot = el("footer", f"All times are UTC. Made by runup {__version__}.")
    return f"<!DOCTYPE html>\n{el('html', head, el('body', el('main', top, *body, foot)), lang='en')}\n"
