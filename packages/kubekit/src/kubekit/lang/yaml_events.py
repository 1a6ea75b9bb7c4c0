"""Reads any YAML from libyaml's events; errors name line and column.

Values are built from events rather than from PyYAML's node tree, because its composer recurses without a limit: a file
of 50,000 brackets ends the process.
"""

from __future__ import annotations

import base64
import binascii
import math
from typing import Any

import yaml

from kubekit.lang.yaml_errors import YamlError
from kubekit.lang.yaml_scalars import scalar

MAX_DEPTH = 200
"""Maximum depth of nesting; the deepest CRD of OpenShift has fewer than 60 levels."""

MAX_ALIASED = 100_000
"""Maximum number of values that aliases add to a document, so that small files cannot expand to gigabytes."""

_TAG = "tag:yaml.org,2002:"
_STR, _NULL, _BOOL, _INT, _FLOAT = (_TAG + name for name in ("str", "null", "bool", "int", "float"))
_BINARY, _MERGE, _TIMESTAMP = (_TAG + name for name in ("binary", "merge", "timestamp"))


def read_documents(text: str, name: str, *, strict: bool) -> list[Any]:
    """Returns every document of `text`, as `kubekit.lang.yaml.load_all` does. Raises YamlError."""
    return _Builder(text, name, strict).documents()


class _Events(yaml.CSafeLoader):
    """libyaml's parser, used for its events only."""


def item_lines(text: str) -> list[int]:
    """Returns the number of the line on which each entry of `items` begins; none if `text` cannot be parsed."""
    lines: list[int] = []
    depth, is_key, key, in_items = 0, True, "", False
    try:
        for event in yaml.parse(text, Loader=_Events):
            starts, ends = isinstance(event, yaml.CollectionStartEvent), isinstance(event, yaml.CollectionEndEvent)
            if starts or isinstance(event, yaml.NodeEvent):
                if in_items and depth == _IN_ITEMS and event.start_mark is not None:
                    lines.append(event.start_mark.line + 1)
                if depth == 1:
                    key = getattr(event, "value", "") if is_key else key
                    in_items, is_key = not is_key and key == "items", not is_key
            depth += starts - ends
    except (yaml.YAMLError, ValueError):
        return []
    return lines


# The depth of an entry of the sequence that a key of the document's mapping has.
_IN_ITEMS = 2


class _Builder:
    """Builds values from the events of one text."""

    __slots__ = ("_aliased", "_anchors", "_depth", "_events", "_name", "_strict")

    def __init__(self, text: str, name: str, strict: bool) -> None:
        self._name = name
        self._strict = strict
        self._depth = 0
        self._aliased = 0
        # The value of each anchor; None while it is being built, because an alias to it would then contain itself.
        self._anchors: dict[str, tuple[Any] | None] = {}
        try:
            self._events = _Events(text)
        except yaml.YAMLError as error:
            raise self._from_libyaml(error) from error

    def documents(self) -> list[Any]:
        """Returns every document of the stream. Raises YamlError."""
        values: list[Any] = []
        try:
            while True:
                event = self._events.get_event()
                if event is None or isinstance(event, yaml.StreamEndEvent):
                    return values
                if isinstance(event, yaml.DocumentStartEvent):
                    self._anchors.clear()
                    self._aliased = 0
                    values.append(self._build_value(self._events.get_event()))
        except yaml.YAMLError as error:
            raise self._from_libyaml(error) from error
        finally:
            self._events.dispose()

    def _build_value(self, event: Any) -> Any:
        """Returns the value that begins with `event`, and keeps it if it has an anchor.

        Raises YamlError if it is too deep.
        """
        kind = type(event)
        if kind is yaml.AliasEvent:
            anchored = self._anchors.get(event.anchor, ())
            if anchored is None:
                raise self._error_at(event, f"anchor {event.anchor!r} contains itself")
            if not anchored:
                raise self._error_at(event, f"alias {event.anchor!r} has no anchor before it")
            return self._copy_counted(anchored[0], event)
        anchor = event.anchor
        if anchor is not None:
            self._anchors[anchor] = None
        if kind is yaml.ScalarEvent:
            tag, text = event.tag, event.value
            plain = tag is None and event.implicit[0]
            value = scalar(text) if plain else self._tagged_value(tag, text, event)
            if isinstance(value, float) and not math.isfinite(value):
                raise self._error_at(event, f"{text!r} is not a number that JSON can represent")
        else:
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise self._error_at(event, f"is nested more than {MAX_DEPTH} levels deep")
            value = self._build_mapping() if kind is yaml.MappingStartEvent else self._build_sequence()
            self._depth -= 1
        if anchor is not None:
            self._anchors[anchor] = (value,)
        return value

    def _build_sequence(self) -> list[Any]:
        items: list[Any] = []
        while type(event := self._events.get_event()) is not yaml.SequenceEndEvent:
            items.append(self._build_value(event))
        return items

    def _build_mapping(self) -> dict[str, Any]:
        """Returns the members up to the end of the mapping, those of `<<` included. Raises YamlError."""
        members: dict[str, Any] = {}
        own_keys: set[str] = set()
        while type(event := self._events.get_event()) is not yaml.MappingEndEvent:
            if type(event) is yaml.ScalarEvent and (
                event.value == "<<" and (event.tag == _MERGE or (event.tag is None and event.implicit[0]))
            ):
                # In the order written, later members override earlier ones, as in the Go library.
                value = self._build_value(self._events.get_event())
                # In a sequence, earlier mappings take precedence.
                sources = list(reversed(value)) if isinstance(value, list) else [value]
                if not all(isinstance(source, dict) for source in sources):
                    raise self._error_at(event, "`<<` wants a mapping, or a sequence of mappings")
                for merged in sources:
                    members.update(merged)
                continue
            key = self._key_text(event)
            value = self._build_value(self._events.get_event())
            if self._strict and key in own_keys:
                raise self._error_at(event, f"key {key!r} is there twice")
            own_keys.add(key)
            members[key] = value
        return members

    def _key_text(self, event: Any) -> str:
        """Returns a key as text, as JSON needs it. Raises YamlError for a key that is null, a mapping or a sequence."""
        key = self._build_value(event)
        if isinstance(key, str):
            return key
        if isinstance(key, bool):
            return "true" if key else "false"
        if isinstance(key, int | float):
            return str(key)
        raise self._error_at(
            event, "a key is null, a mapping or a sequence; only text, numbers and booleans can be keys"
        )

    def _copy_counted(self, value: Any, event: Any) -> Any:
        """Returns a deep copy. Raises YamlError beyond the limit of aliased values in a document."""
        # A copy, so that no two places share a value; counted, to limit the size of the result.
        self._aliased += 1
        if self._aliased > MAX_ALIASED:
            raise self._error_at(event, f"aliases expand to more than {MAX_ALIASED} values")
        if isinstance(value, dict):
            return {key: self._copy_counted(member, event) for key, member in value.items()}
        if isinstance(value, list):
            return [self._copy_counted(item, event) for item in value]
        return value

    def _tagged_value(self, tag: str, text: str, event: Any) -> Any:
        """Returns a scalar's value by its tag, such as `!!int`. Raises YamlError if the text does not fit it."""
        if tag == _BINARY:
            try:
                return base64.b64decode(text).decode("utf-8", "surrogateescape")
            except binascii.Error as error:
                raise self._error_at(event, "!!binary is not base64") from error
        accepted = _TAGGED.get(tag)
        if accepted is None:
            return text
        value = scalar(text)
        if type(value) not in accepted:
            raise self._error_at(event, f"cannot read {text!r} as !!{tag.removeprefix(_TAG)}")
        return value

    def _error_at(self, event: Any, problem: str) -> YamlError:
        mark = event.start_mark
        return YamlError(problem, name=self._name, line=mark.line + 1, column=mark.column + 1)

    def _from_libyaml(self, error: yaml.YAMLError) -> YamlError:
        """Returns libyaml's error as ours, with its line and column if it has them."""
        if isinstance(error, yaml.MarkedYAMLError):
            problem = ", ".join(part for part in (error.context, error.problem) if part)
            mark = error.problem_mark or error.context_mark
            if mark is not None:
                return YamlError(problem, name=self._name, line=mark.line + 1, column=mark.column + 1)
            return YamlError(problem, name=self._name)
        return YamlError(" ".join(str(error).split()), name=self._name)


# The types that a tag allows; with any other tag, including custom ones, the text is kept.
_TAGGED: dict[str, tuple[type, ...]] = {
    _NULL: (type(None),),
    _BOOL: (bool,),
    _INT: (int,),
    _FLOAT: (float, int),
}
