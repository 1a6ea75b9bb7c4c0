"""Field errors, worded as k8s.io/apimachinery's `field.Error` words them, and values as Go prints them.

Clients and users search for the exact wording.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Fault(Enum):
    """The kinds of faults: the reason in a Status cause, and the words that open the message."""

    REQUIRED = ("FieldValueRequired", "Required value")
    DUPLICATE = ("FieldValueDuplicate", "Duplicate value")
    INVALID = ("FieldValueInvalid", "Invalid value")
    NOT_SUPPORTED = ("FieldValueNotSupported", "Unsupported value")
    FORBIDDEN = ("FieldValueForbidden", "Forbidden")
    TOO_LONG = ("FieldValueTooLong", "Too long")
    TOO_MANY = ("FieldValueTooMany", "Too many")
    NOT_FOUND = ("FieldValueNotFound", "Not found")
    INTERNAL = ("InternalError", "Internal error")
    TYPE_INVALID = ("FieldValueTypeInvalid", "Invalid value")


# Messages of these faults omit the value: it is absent, huge or secret.
_WITHOUT_VALUE = frozenset({Fault.REQUIRED, Fault.FORBIDDEN, Fault.TOO_LONG, Fault.INTERNAL})


# The value of a fault whose message shows no value (field.OmitValueType).
OMITTED: Any = object()


@dataclass(frozen=True, slots=True)
class FieldError:
    """A fault of one field. `path` is written as in `spec.risks[0].name`; empty for the object itself."""

    fault: Fault
    path: str
    value: Any = None
    detail: str = ""

    @property
    def reason(self) -> str:
        """The cause's `reason`, such as `FieldValueRequired`."""
        return self.fault.value[0]

    @property
    def field(self) -> str:
        """The cause's `field`: Go prints `<nil>` for the object itself."""
        return self.path or "<nil>"

    @property
    def body(self) -> str:
        """The message of a Status cause, without the path."""
        words = self.fault.value[1]
        if self.fault not in _WITHOUT_VALUE and self.value is not OMITTED:
            # kube-openapi shows the type of the value here, and the type of null is null.
            has_no_value = self.value is None and self.fault is Fault.TYPE_INVALID
            words = f"{words}: {show_value('null' if has_no_value else self.value)}"
        return f"{words}: {self.detail}" if self.detail else words

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"


def required(path: str, detail: str = "") -> FieldError:
    """Returns the fault of an absent field."""
    return FieldError(Fault.REQUIRED, path, None, detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    """Returns the fault of an invalid value."""
    return FieldError(Fault.INVALID, path, value, detail)


def forbidden(path: str, detail: str = "") -> FieldError:
    """Returns the fault of a field that must not be set, or not to this value; the message omits the value."""
    return FieldError(Fault.FORBIDDEN, path, None, detail)


def duplicate(path: str, value: Any) -> FieldError:
    """Returns the fault of a value that must be unique."""
    return FieldError(Fault.DUPLICATE, path, value)


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    """Returns the fault of a value that is not one of the supported ones."""
    listed = ", ".join(f'"{value}"' for value in supported)
    return FieldError(Fault.NOT_SUPPORTED, path, value, f"supported values: {listed}")


def one_of(path: str, value: Any, supported: Collection[str]) -> Iterator[FieldError]:
    """Yields a fault unless the value is one of the supported ones."""
    if value not in supported:
        yield not_supported(path, value, supported)


def aggregate_text(errors: list[FieldError]) -> str:
    """Returns the errors as an Invalid status quotes them: a single one bare, several in brackets."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


# -- values as Go prints them ------------------------------------------------------------------------------------------

_ESCAPED = {ord(each): f"\\u{ord(each):04x}" for each in "<>&\u2028\u2029"}


class Verbatim(str):
    """A value that is already as Go prints it."""

    __slots__ = ()


def show_value(value: Any) -> str:
    """Returns `value` as Go prints it in a field error: strings quoted, numbers and booleans bare, the rest as JSON."""
    if isinstance(value, Verbatim):
        return value
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def go_json(value: Any) -> str:
    """Returns compact JSON with members in the given order and HTML's characters escaped, as Go's encoder does."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).translate(_ESCAPED)


def go_plain(value: Any) -> str:
    """Returns a value as Go's `%v` prints it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_plain(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_plain, value))}]"
    return "<nil>" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
