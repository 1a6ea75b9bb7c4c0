"""Changes of bytes and of JSON documents, drawn from a `random.Random`: what the fuzzers make of valid inputs."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

JSON = Any
ODD: tuple[JSON, ...] = (
    *(None, True, -1, 0, 1.5, 10**40, -(10**400), "", " ", "\0", "\x1b[2J", "\u202e", "\ud800", "\N{PILE OF POO}" * 50),
    *("x" * 300, "A" * 5000, "../../etc", "javascript:x", "http://[", "https://x/%zz", "9999-99-99T00:00:00Z"),
    *([], {}, [[]] * 100, {"name": "X"}, "0001-01-01T00:00:00+23:59", ["X"], "True", "completed"),
)
_NUMBERS = (b"-1", b"0", b"1e999", b"9" * 20, b"9" * 5000, b"0x10", b"1_0", "\u0663".encode(), b"NaN")
_DIGITS = re.compile(rb"[0-9]+")
# Bytes of what a value is swollen to.
_MOST = 1 << 20
# Sizes to which a piece is repeated: what takes quadratic time shows at the larger ones.
_SIZES = (1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20)


def drawn(reader: str, seed: int, index: int) -> random.Random:
    """Returns the random that an input is made of."""
    return random.Random(f"{reader} {seed} {index}")


def changed_bytes(drawn: random.Random, data: bytes, words: Sequence[bytes] = (), largest: int = 1 << 20) -> bytes:
    """Returns `data` after one to four changes, of at most `largest` bytes; `words` are put in at any place."""
    for _ in range(drawn.choice((1, 1, 1, 2, 3, 4))):
        data = drawn.choice(_CHANGES)(drawn, data, words)[:largest]
    return data


def _flipped(drawn: random.Random, data: bytes, _words: Sequence[bytes]) -> bytes:
    changed = bytearray(data or b" ")
    for _ in range(drawn.randint(1, 8)):
        changed[drawn.randrange(len(changed))] = drawn.choice((drawn.randrange(256), 0, 0x20, 0x22, 0x7F, 0xFF))
    return bytes(changed)


def _spliced(drawn: random.Random, data: bytes, _words: Sequence[bytes]) -> bytes:
    start, end = _part(drawn, data)
    return data[:end] + data[start:] if drawn.random() < 0.5 else data[:start] + data[end:]


def _cut(drawn: random.Random, data: bytes, _words: Sequence[bytes]) -> bytes:
    return data[: drawn.randrange(len(data) + 1)]


def _with_word(drawn: random.Random, data: bytes, words: Sequence[bytes]) -> bytes:
    at = drawn.randrange(len(data) + 1)
    return data[:at] + drawn.choice(words or (b"\0",)) + data[at:]


def _with_number(drawn: random.Random, data: bytes, _words: Sequence[bytes]) -> bytes:
    places = list(_DIGITS.finditer(data, 0, 1 << 16))
    if not places:
        return data
    place = drawn.choice(places)
    return data[: place.start()] + drawn.choice(_NUMBERS) + data[place.end() :]


def _repeated(drawn: random.Random, data: bytes, words: Sequence[bytes]) -> bytes:
    start, end = _part(drawn, data)
    piece = drawn.choice((data[start : start + drawn.randint(1, 8)], data[start:end], *words)) or b"("
    at = drawn.choice((start, end, len(data)))
    return data[:at] + piece * max(2, drawn.choice(_SIZES) // len(piece)) + data[at:]


_CHANGES: tuple[Callable[[random.Random, bytes, Sequence[bytes]], bytes], ...] = (
    *(_flipped, _flipped, _spliced, _spliced, _cut, _with_word, _with_word, _with_number, _repeated),
)


def _part(drawn: random.Random, data: bytes) -> tuple[int, int]:
    start, end = sorted((drawn.randrange(len(data) + 1), drawn.randrange(len(data) + 1)))
    return start, end


def with_odd_values(drawn: random.Random, document: JSON, odd: Sequence[JSON] = ODD) -> JSON:
    """Returns `document`, changed in place: one to three values are others."""
    for _ in range(drawn.randint(1, 3)):
        holder, key = place(document, drawn)
        holder[key] = copy.deepcopy(drawn.choice(odd))
    return document


def without_members(drawn: random.Random, document: JSON) -> JSON:
    """Returns `document`, changed in place: one to three members are gone."""
    for _ in range(drawn.randint(1, 3)):
        holder, key = place(document, drawn)
        del holder[key]
        if not document:
            break
    return document


def swollen(drawn: random.Random, document: JSON) -> JSON:
    """Returns `document`, changed in place: one value or list is up to a thousand times as large, 1 MiB at most."""
    holder, key = place(document, drawn)
    value = holder[key]
    times = min(drawn.choice((50, 1000)) if isinstance(value, str | list) else 1000, _MOST // len(encoded(value)))
    holder[key] = value * times if isinstance(value, str | list) else [value] * times
    return document


def with_another_place(drawn: random.Random, document: JSON) -> JSON:
    """Returns `document`, changed in place: a value stands at another one's place as well."""
    holder, key = place(document, drawn)
    other, there = place(document, drawn)
    holder[key] = copy.deepcopy(other[there])
    return document


def changed_document(drawn: random.Random, document: JSON, odd: Sequence[JSON] = ODD) -> JSON:
    """Returns a changed copy of `document`, an object or list that is not empty."""
    document = copy.deepcopy(document)
    for _ in range(drawn.choice((1, 1, 2, 3))):
        if not document:
            return document
        drawn.choice((_with_odd(odd), without_members, with_another_place))(drawn, document)
    # Once, and last: what is swollen twice would be a million times as large.
    return swollen(drawn, document) if document and drawn.random() < 0.2 else document


def _with_odd(odd: Sequence[JSON]) -> Callable[[random.Random, JSON], JSON]:
    return lambda drawn, document: with_odd_values(drawn, document, odd)


def encoded(document: JSON) -> bytes:
    """Returns `document` as JSON."""
    return json.dumps(document).encode()


def place(document: JSON, drawn: random.Random) -> tuple[Any, Any]:
    """Returns a random member of a random object or list inside: what holds it, and its key."""
    holder: Any = document
    while True:
        key = drawn.choice(tuple(holder)) if isinstance(holder, dict) else drawn.randrange(len(holder))
        value = holder[key]
        if not isinstance(value, dict | list) or not value or drawn.random() < 0.2:
            return holder, key
        holder = value
