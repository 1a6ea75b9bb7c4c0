"""Markdown of the pages of risks, as a page shows it."""

from __future__ import annotations

import pytest

from runup.cli.render.html.prose import markdown

PAGES = {
    "paragraphs": ("one\ntwo\n\nthree", "<p>one two</p><p>three</p>"),
    "several blank lines": ("one\n\n \n\ntwo\n", "<p>one</p><p>two</p>"),
    "a title": ("# Title\n\none", "<p>one</p>"),
    "a title that follows at once": ("one\n# Title\ntwo", "<p>one</p><p>two</p>"),
    "code": ("one\n\n```sh\noc get a\n```\n\ntwo", "<p>one</p><pre><code>oc get a</code></pre><p>two</p>"),
    "blank lines and comments in code": (
        "```sh\n# first\noc get a\n\n# then\noc get b\n```",
        "<pre><code># first\noc get a\n\n# then\noc get b</code></pre>",
    ),
    "marks": ("a `b` **c** [d](https://e/) [f](g.md)", "<code>b</code> <strong>c</strong>"),
    "markup of others": ("<b>a</b>", "<p>&lt;b&gt;a&lt;/b&gt;</p>"),
}


@pytest.mark.parametrize("name", PAGES)
def test_pages(name: str) -> None:
    """Blocks in their order; what is in a fence is left as it is."""
    page, html = PAGES[name]
    assert html in str(markdown(page))
