"""Makes other people's text safe to show and store, and short enough for places with size limits.

A terminal obeys what it is sent, a reader believes the order in which words appear, and `kubectl get -o yaml` fails on
a control character. So such characters are written as escapes: `\\x1b`, `\\u202e`. Line ends and tabs stay.

Limits are bytes as the API server stores them (JSON as Go writes it): a text that fits in bytes fits in characters too.
A text that fits is not changed, so that cutting it again has no effect.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

_ESCAPE = r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|[nr])"
_LONGEST_ESCAPE = 6


# The characters that are escaped: C0 but tab and newline, DEL and C1; marks and overrides of writing direction; line
# and paragraph separators; the byte order mark, annotations and non-characters, which YAML refuses; halves of surrogate
# pairs, which UTF-8 cannot carry.
_UNPRINTABLE = re.compile(
    "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069"
    "\\ufeff\\ufff9-\\ufffb\\ufffe\\uffff\\ud800-\\udfff]"
)


def printable(text: str) -> str:
    """Returns `text` with control and direction characters escaped. Doing it twice changes nothing."""
    return _UNPRINTABLE.sub(_visible_escape, text)


def _visible_escape(match: re.Match[str]) -> str:
    number = ord(match[0])
    if match[0] == "\r":
        return "\\r"
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


def one_line(text: str) -> str:
    """Returns `text` escaped and on one line, for a table's cell or a name in a sentence."""
    return printable(text).replace("\n", "\\n")


def escape_in_json(text: str) -> str:
    """Returns JSON text (or YAML with double-quoted strings) of the same value without such characters in it."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def as_json(value: Any) -> str:
    """Returns `value` as indented JSON that is safe to show; a program reads the same value back."""
    import json  # not needed to start

    return escape_in_json(json.dumps(value, indent=2, ensure_ascii=False))


def as_json_line(value: Any) -> str:
    """Returns `value` as JSON on one line, with its line feed, that is safe to show."""
    import json

    return escape_in_json(json.dumps(value, ensure_ascii=False)) + "\n"


def is_hazardous(text: str) -> bool:
    """Returns whether `text` has a character that `printable` would escape."""
    return _UNPRINTABLE.search(text) is not None


def printable_value(value: Any) -> Any:
    """Returns `value` (dicts, lists, text) with every text made printable."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {printable_value(key): printable_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [printable_value(item) for item in value]
    return value


def cut_position(text: str, end: int) -> int:
    """Returns the greatest position up to `end` at which `text` can be cut without splitting an escape."""
    pattern = re.compile(_ESCAPE)  # `re` keeps it; most commands cut nothing
    for start in range(max(0, end - _LONGEST_ESCAPE + 1), end):
        escape = pattern.match(text, start)
        if escape is not None and escape.end() > end:
            return start
    return end


# Room for ` ... and 1234567 more characters` and for `... and 1234567 more`.
_ENDING = 40
# The least limit that `cut` takes.
_LEAST_LIMIT = 64


def shorten(text: str, most: int, *, keep: int = 0, mark: str = "...", at_word: bool = False) -> str:
    """Returns `text` if it has at most `most` characters, else its beginning and `mark`.

    The beginning has `keep` characters, by default as many as leave room for the mark. With `at_word`, it ends with a
    word, if it has a whole one.
    """
    if len(text) <= most:
        return text
    beginning = text[: keep or most - len(mark)]
    return (beginning.rpartition(" ")[0] if at_word and " " in beginning else beginning) + mark


def stored_bytes(text: str) -> int:
    """Returns the number of bytes that `text` takes inside a stored object: Go writes `<`, `>` and `&` as six."""
    data = text.encode("utf-8", "surrogatepass")
    one_more = len(data) - len(data.translate(None, b'"\\\n\t'))
    five_more = len(data) - len(data.translate(None, b"<>&"))
    return len(data) + one_more + 5 * five_more


def cut(text: str, limit: int) -> str:
    """Returns `text`, or its beginning and how many characters are left out: at most `limit` (>= 64) bytes."""
    if stored_bytes(text) <= limit:
        return text
    # The number of characters whose stored form fits, by bisection.
    low, high = 0, min(len(text), limit - _ENDING)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if stored_bytes(text[:middle]) <= limit - _ENDING else (low, middle - 1)
    end = cut_position(text, low)
    return f"{text[:end]} ... and {len(text) - end} more characters"


def join_within(parts: Sequence[str], separator: str, limit: int) -> str:
    """Joins as many whole `parts` as fit, cuts a first one that does not, and says how many are left out."""
    whole = separator.join(parts)
    if stored_bytes(whole) <= limit:
        return whole
    if len(parts) == 1:
        return cut(whole, limit)
    room = limit - _ENDING - stored_bytes(separator)
    kept: list[str] = []
    for part in parts:
        part = part if kept else cut(part, max(room, _LEAST_LIMIT))
        room -= stored_bytes(part) + stored_bytes(separator)
        if kept and room < 0:
            break
        kept.append(part)
    more = len(parts) - len(kept)
    return separator.join([*kept, f"... and {more} more"]) if more else separator.join(kept)


def sentence_case(sentence: str) -> str:
    """Returns `sentence` with its first letter large; the others stay as they are."""
    return sentence[:1].upper() + sentence[1:]


def timestamp(moment: datetime | None) -> str:
    """Returns a time as Kubernetes writes it, in UTC, or an empty string."""
    return in_utc(moment).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else ""


# By how much the clocks of two machines may differ.
CLOCKS_DIFFER = timedelta(minutes=5)


def is_to_come(moment: datetime, now: datetime) -> bool:
    """Reports whether a time is further in the future than clocks may differ, so that an age is not known."""
    return moment - now > CLOCKS_DIFFER


def in_utc(moment: datetime) -> datetime:
    """Returns a time in UTC; a time that would leave the years 1 to 9999 in UTC is returned without its offset."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return moment.replace(tzinfo=UTC)


def count(number: int, noun: str) -> str:
    """Returns the number with its noun: `1 node`, `2 nodes`, `2 NetworkPolicies`, `2 StorageClasses`."""
    if number == 1:
        return f"{number} {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{number} {noun[:-1]}ies"
    return f"{number} {noun}es" if noun.endswith(("s", "ch", "x")) else f"{number} {noun}s"


def last_words(text: str, most: int) -> str:
    """Returns `text` on one line; of a long text, the last words with about `most` characters."""
    text = " ".join(text.split())
    if len(text) <= most:
        return text
    ending = text[-most:]
    if not text[-most - 1].isspace() and " " in ending:
        ending = ending.partition(" ")[2]
    return f"...{ending.lstrip()}"
