"""A fast reader of the YAML that cluster tools write: one key or item per line, without libyaml.

In: text. Out: the values that `yaml_events` builds from it, or `NotPlain` if that is not certain: for an anchor, a tag,
a folded scalar, a tab, an empty document, anything invalid. It never guesses and reports no errors. Flow
collections are for `yaml_flow`. Importing PyYAML and reading libyaml's events takes four times as long, which for a
command that reads a kubeconfig or a dump is most of its run time
(docs/decisions/0043-a-command-in-five-interpreters.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from kubekit.lang.yaml_scalars import NotPlain, scalar, unescape_json

_MAX_DEPTH = 60
_MAX_KEY = 256
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./"
_IN_KEYS = _LETTERS + '-:{}",@~+()$='
# Characters, besides letters and digits, with which a plain scalar may begin; `-` only if no blank follows.
_FIRST_OF_PLAIN = frozenset("_./+<=$(~^;\\-")


_PRINTABLE = bytes([*range(0x20, 0x7F), 0x0A])

_BLANK, _END = (-2, ""), (-1, "")
"""Rows without content: of a line that is blank or a comment, and after the last line."""


def read_plain_documents(text: str, *, strict: bool = False) -> list[Any]:
    """Returns the documents of `text`, each as `read_plain_document` does; a line `---` separates them.

    Raises NotPlain, also for a document that is empty.
    """
    pieces = text.split("\n---\n")
    if len(pieces) > 1 and all(_row(line) is _BLANK for line in pieces[0].split("\n")):
        del pieces[0]
    if any(piece.startswith("---") for piece in pieces[1:]):  # an empty document between two separators
        raise NotPlain
    # A line's end was taken from all but the last.
    last = pieces.pop()
    return [read_plain_document(each, strict=strict) for each in (*(f"{piece}\n" for piece in pieces), last)]


def read_plain_document(text: str, *, strict: bool = False) -> Any:
    """Returns the only document of `text`; `strict` leaves a duplicate key to the other reader. Raises NotPlain."""
    # Some non-ASCII characters end a line or are invalid; none of them is printable.
    if "\n---" in text or not _is_printable(text):
        raise NotPlain
    return _Reader(text, strict).document()


def _is_printable(text: str) -> bool:
    if text.isascii():
        return not text.encode().translate(None, _PRINTABLE)  # a fifth of the time
    return text.replace("\n", " ").isprintable()


class _Reader:
    """The lines of one text, and the current position: `_indent` and `_content` are those of line `_at`.

    A file of a hundred objects has few different lines, so what a line says is kept for when it comes again: `_rows`
    has the indent and content of each, `_pairs` the key and value of a content, `_items` the columns from a dash to
    its content and that content, `_keys` and `_known` keys and values by their text.
    """

    __slots__ = (
        "_at",
        "_content",
        "_depth",
        "_indent",
        "_items",
        "_keys",
        "_known",
        "_lines",
        "_pairs",
        "_rows",
        "_strict",
    )

    def __init__(self, text: str, strict: bool) -> None:
        self._lines = text.split("\n")
        rows = {line: _row(line) for line in set(self._lines)}
        self._rows = [*map(rows.__getitem__, self._lines), _END]
        self._strict = strict
        self._depth = 0
        self._keys: dict[str, str] = {}
        self._known: dict[str, Any] = {}
        self._pairs: dict[str, tuple[str, Any]] = {}
        self._items: dict[str, tuple[int, str]] = {}
        self._move_to(0)

    def document(self) -> Any:
        """Returns the only document. Raises NotPlain if it is empty or something follows it."""
        if self._content == "---" and self._indent == 0:
            self._move_to(self._at + 1)
        value = self._read_collection() if self._content else None
        if self._content or value is None:
            raise NotPlain
        return value

    def _move_to(self, at: int) -> None:
        """Moves to line `at`, or to the first after it that is neither blank nor a comment."""
        row = self._rows[at]
        while row is _BLANK:
            at += 1
            row = self._rows[at]
        self._at = at
        self._indent, self._content = row

    def _read_collection(self) -> Any:
        """Returns the collection that begins at the current line."""
        content = self._content
        return (
            self._read_sequence(self._indent, content)
            if _is_item(content)
            else self._read_mapping(self._indent, content)
        )

    def _go_deeper(self) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise NotPlain

    def _read_mapping(self, indent: int, content: str) -> dict[str, Any]:
        """Returns the mapping whose keys are at `indent`, the first of them in `content`."""
        self._go_deeper()
        members: dict[str, Any] = {}
        rows, pairs = self._rows, self._pairs
        while True:
            pair = pairs.get(content)
            if pair is None:
                self._read_member(members, indent, content)
            else:
                members[pair[0]] = pair[1]
                # `_move_to`, in place: two lines in three come here.
                self._at += 1
                self._indent, self._content = row = rows[self._at]
                if row is _BLANK:
                    self._move_to(self._at)
            if self._indent != indent:
                break
            content = self._content
        if self._indent > indent:
            raise NotPlain
        self._depth -= 1
        return members

    def _read_member(self, members: dict[str, Any], indent: int, content: str) -> None:
        """Adds the key in `content` and its value to `members`."""
        key_text, separator, value = content.partition(": ")
        if not separator:
            if content[-1] != ":":
                raise NotPlain
            key_text = content[:-1]
        key = self._keys.get(key_text) or self._read_key(key_text)
        if self._strict and key in members:
            raise NotPlain
        if not value:
            members[key] = self._read_value_below(indent, items_at=indent)
            return
        members[key] = self._read_value(value, indent)
        if value in self._known and not self._strict:
            self._pairs[content] = key, self._known[value]

    def _read_key(self, text: str) -> str:
        """Returns the key that `text` is, and remembers it for the next time. Raises NotPlain."""
        # `strip` leaves nothing exactly if every character is one of these.
        if not text or len(text) > _MAX_KEY:
            raise NotPlain
        if text[0] in "\"'":
            quote, inner = text[0], text[1:-1]
            if text[-1] != quote or not inner or quote in inner or "\\" in inner:
                raise NotPlain
            key = inner
        elif text[0] not in _LETTERS or text.strip(_IN_KEYS) or text[-1] == ":" or scalar(text) is not text:
            raise NotPlain
        else:
            key = text
        self._keys[text] = key
        return key

    def _read_sequence(self, indent: int, content: str) -> list[Any]:
        """Returns the sequence whose dashes are at `indent`, the first of them in `content`."""
        self._go_deeper()
        items: list[Any] = []
        known_items = self._items
        while True:
            known = known_items.get(content)
            if known is None:
                items.append(self._read_item(indent, content))
            else:
                items.append(self._read_mapping(indent + known[0], known[1]))
            if self._indent != indent:
                break
            content = self._content
            if content not in known_items and not _is_item(content):
                break
        if self._indent > indent:
            raise NotPlain
        self._depth -= 1
        return items

    def _read_item(self, indent: int, content: str) -> Any:
        """Returns the item whose dash is at `indent`, at the beginning of `content`."""
        rest = content[1:].lstrip(" ")
        if not rest:
            return self._read_value_below(indent, items_at=None)
        to_rest = len(content) - len(rest)
        if _is_item(rest):
            return self._read_sequence(indent + to_rest, rest)
        if rest[0] not in "\"'[{" and (": " in rest or rest[-1] == ":"):
            self._items[content] = to_rest, rest
            return self._read_mapping(indent + to_rest, rest)
        return self._read_value(rest, indent)

    def _read_value_below(self, indent: int, items_at: int | None) -> Any:
        """Returns the value on the lines below a key or a dash at `indent`; its items may also are at `items_at`."""
        self._move_to(self._at + 1)
        if self._indent > indent:
            content = self._content
            return self._read_flow(content, indent) if content[0] in "[{" else self._read_collection()
        if self._indent == items_at and _is_item(self._content):
            return self._read_sequence(indent, self._content)
        return None

    def _read_value(self, text: str, indent: int) -> Any:
        """Returns the value that begins with `text` after a key or dash at `indent`, and moves to the line after it."""
        start = self._at
        if text in self._known:
            self._move_to(start + 1)
            if self._indent <= indent:
                return self._known[text]
            raise NotPlain
        value: Any
        item_text, first = text, text[0]
        if first == " ":
            text = text.lstrip(" ")
            first = text[0]
        if first.isalnum() or first > "~" or (first in _FIRST_OF_PLAIN and not _is_item(text)):
            value = self._read_plain_scalar(text, indent)
        elif first == '"':
            value = unescape_json(self._read_quoted(text, indent, _ends_double))
        elif first == "'":
            value = self._read_quoted(text, indent, _ends_single).replace("''", "'")
        elif first == "|":
            return self._read_literal_block(text, indent)
        elif text in ("{}", "[]"):
            self._move_to(start + 1)
            return {} if first == "{" else []
        elif first in "[{":
            return self._read_flow(text, indent)
        else:
            raise NotPlain
        if self._at == start + 1:
            self._known[item_text] = value
        return value

    def _read_plain_scalar(self, text: str, indent: int) -> Any:
        """Returns the value of an unquoted scalar, which may continue below `indent`. Raises NotPlain."""
        _check_plain(text)
        start = self._at
        self._move_to(start + 1)
        if self._indent > indent:
            return self._read_continued_scalar(text, indent, start)
        value = scalar(text)
        if isinstance(value, float) and not math.isfinite(value):
            raise NotPlain
        return value

    def _read_continued_scalar(self, text: str, indent: int, start: int) -> str:
        """Returns a plain scalar of several lines; `start` is the first line."""
        parts, last = [text], start
        for at in range(start + 1, len(self._lines)):
            line = self._lines[at]
            content = line.strip(" ")
            if content:
                if len(line) - len(line.lstrip(" ")) <= indent:
                    break
                _check_plain(content)
                if content[0] == "#":  # a comment ends a scalar
                    raise NotPlain
                last = at
            parts.append(content)
        self._move_to(last + 1)
        return _fold_lines(parts[: last - start + 1], "\n")

    def _read_flow(self, text: str, indent: int) -> Any:
        """Returns the flow collection that begins with `text`, on the lines until its brackets are closed."""
        from kubekit.lang.yaml_flow import read_flow

        parts, at, still_open = [text], self._at, _opened(text)
        while still_open > 0:
            at += 1
            own_indent, content = self._rows[at]
            if not content or own_indent <= indent:
                raise NotPlain
            parts.append(content)
            still_open += _opened(content)
        self._move_to(at + 1)
        if self._indent > indent:
            raise NotPlain
        return read_flow("\n".join(parts), self._read_key, strict=self._strict)

    def _read_quoted(self, text: str, indent: int, ends: Callable[[str], bool]) -> str:
        """Returns the text between the quotes, its lines folded; `ends` reports whether a piece closes them."""
        if ends(text[1:]):
            self._move_to(self._at + 1)
            inner = text[1:-1]
        else:
            parts, at = [text[1:]], self._at
            while not parts[1:] or not parts[-1] or not ends(parts[-1]):
                at += 1
                if at >= len(self._lines):
                    raise NotPlain
                line = self._lines[at]
                parts.append(line.strip(" "))
                if parts[-1] and len(line) - len(line.lstrip(" ")) <= indent:
                    raise NotPlain
            parts[-1] = parts[-1][:-1]
            self._move_to(at + 1)
            inner = _fold_lines(parts, "\\n" if text[0] == '"' else "\n")
        if self._indent > indent:
            raise NotPlain
        return inner

    def _read_literal_block(self, header: str, indent: int) -> str:
        """Returns the text of a literal block scalar (`|`, `|-` or `|+`)."""
        if header not in ("|", "|-", "|+") or self._lines[-1]:
            raise NotPlain
        first = end = self._at + 1
        margin = 0
        for end in range(first, len(self._lines)):
            line = self._lines[end]
            content = line.lstrip(" ")
            if content:
                own_indent = len(line) - len(content)
                if own_indent <= indent:
                    break
                margin = margin or own_indent
                if own_indent < margin:
                    raise NotPlain
            elif not margin and line:  # blanks that may be more than the margin
                raise NotPlain
        if not margin:
            raise NotPlain
        self._move_to(end)
        text = "\n".join([line[margin:] for line in self._lines[first:end]]) + "\n"
        if header == "|+":
            return text
        block = text.rstrip("\n")
        return block if header == "|-" else block + "\n"


def _row(line: str) -> tuple[int, str]:
    """Returns the indent and the content of a line."""
    content = line.lstrip(" ")
    return (len(line) - len(content), content.rstrip(" ")) if content and content[0] != "#" else _BLANK


def _is_item(content: str) -> bool:
    return content == "-" or content[:2] == "- "


def _opened(text: str) -> int:
    """Returns the number of unclosed brackets, including those between quotes."""
    return text.count("[") + text.count("{") - text.count("]") - text.count("}")


def _check_plain(text: str) -> None:
    if ": " in text or " #" in text or text[-1] == ":":
        raise NotPlain


def _fold_lines(parts: list[str], line_end: str) -> str:
    """Returns a scalar's lines folded into one: a line break becomes a blank, n blank lines become n line breaks."""
    text = parts[0].rstrip(" ")
    breaks = 0
    for part in parts[1:-1]:
        if not part:
            breaks += 1
            continue
        text += (line_end * breaks or " ") + part
        breaks = 0
    return text + (line_end * breaks or " ") + parts[-1] if len(parts) > 1 else text


def _ends_single(text: str) -> bool:
    """Returns whether `text`, after an opening single quote, has the closing one. Raises NotPlain if more follows."""
    unescaped = text.replace("''", "")
    if "'" not in unescaped:
        return False
    if unescaped.index("'") != len(unescaped) - 1:
        raise NotPlain
    return True


def _ends_double(text: str) -> bool:
    """Returns whether `text`, after an opening double quote, has the closing one. Raises NotPlain if more follows."""
    unescaped = text.replace("\\\\", "").replace('\\"', "") if "\\" in text else text
    if '"' not in unescaped:
        # A backslash at the end joins lines without a blank, one before blanks keeps them.
        if unescaped[-1:] == "\\":
            raise NotPlain
        return False
    if unescaped.index('"') != len(unescaped) - 1:
        raise NotPlain
    return True
