"""A page as a browser takes it: tags that nest, what is read, what would be fetched."""

from __future__ import annotations

from html.parser import HTMLParser

_VOID = {"meta", "br", "hr", "link", "input"}


class Reader(HTMLParser):
    """Checks that tags nest, and collects what a browser would show and fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element begins."""
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """It ends, and was the last that began."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Collects the text."""
        if self.open and self.open[-1] not in ("style", "script") and data.strip():
            self.words.append(data)

    @property
    def text(self) -> str:
        """All that is read, in order."""
        return " ".join(" ".join(self.words).split())


def read(html: str) -> Reader:
    """The page as a browser takes it."""
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader
