"""Checks that several kinds share."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from typing import Any

from kubesandbox.apiserver.schema import Fault, FieldError, object_meta

JSON = dict[str, Any]
Faults = Iterator[FieldError]

PROTOCOLS = ("SCTP", "TCP", "UDP")
NOT_NEGATIVE = "must be greater than or equal to 0"


def value_at(obj: JSON, path: str) -> Any:
    """Returns the value at a dotted path, or None."""
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def not_negative(obj: JSON, path: str, *names: str) -> Faults:
    """Yields a fault for each member that is a negative number."""
    for name in names:
        value = obj.get(name)
        if isinstance(value, int) and value < 0:
            yield FieldError(Fault.INVALID, f"{path}.{name}", value, NOT_NEGATIVE)


def changed_paths(obj: JSON, old: JSON, *paths: str) -> Faults:
    """Yields a fault for each path whose value changed."""
    for path in paths:
        if value_at(obj, path) != value_at(old, path):
            yield FieldError(Fault.INVALID, path, value_at(obj, path), "field is immutable")


def selector_faults(selector: JSON | None, path: str) -> Faults:
    """Yields the faults of a label selector (apimachinery's ValidateLabelSelector)."""
    yield from object_meta.label_faults((selector or {}).get("matchLabels") or {}, f"{path}.matchLabels")
    for index, each in enumerate((selector or {}).get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{index}]"
        key, operator, values = each.get("key") or "", each.get("operator") or "", each.get("values") or ()
        if operator in ("In", "NotIn"):
            if not values:
                why = "must be specified when `operator` is 'In' or 'NotIn'"
                yield FieldError(Fault.REQUIRED, f"{at}.values", detail=why)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield FieldError(Fault.FORBIDDEN, f"{at}.values", detail=why)
        else:
            yield FieldError(Fault.INVALID, f"{at}.operator", operator, "not a valid selector operator")
        for why in object_meta.qualified_name(key):
            yield FieldError(Fault.INVALID, f"{at}.key", key, why)
        for number, value in enumerate(values):
            for why in object_meta.label_value(value):
                yield FieldError(Fault.INVALID, f"{at}.values[{number}]", value, why)


def port_number(value: Any, path: str) -> Faults:
    """Yields a fault unless the value is a port from 1 to 65535."""
    if not isinstance(value, int) or not 1 <= value <= 65535:
        yield FieldError(Fault.INVALID, path, value, "must be between 1 and 65535, inclusive")


def is_address(text: str) -> bool:
    """Returns whether the text is an IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def port_name(name: str) -> list[str]:
    """Returns the faults of a port's name (apimachinery's IsValidPortName)."""
    faults = []
    if len(name) > 15:
        faults.append("must be no more than 15 characters")
    if not re.fullmatch(r"[a-z0-9-]+", name):
        faults.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search(r"[a-z]", name):
        faults.append("must contain at least one letter (a-z)")
    if "--" in name:
        faults.append("must not contain consecutive hyphens")
    if name[0] == "-" or name[-1] == "-":
        faults.append("must not begin or end with a hyphen")
    return faults
