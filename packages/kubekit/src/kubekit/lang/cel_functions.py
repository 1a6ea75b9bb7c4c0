"""Kubernetes' functions for CEL as two tables: name, parameter kinds, result kind, and a Python function.

Values without a separate CEL type are maps with one marking member each (`quantity`, `ip`, `cidr`, `semver`,
`url`), in a canonical form, so that `==` means what it means in Kubernetes. Semantics:
k8s.io/apiserver/pkg/cel/library.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from itertools import islice, pairwise
from typing import Any, Literal
from urllib.parse import parse_qs

import msgspec

from kubekit.lang.cel_cost import pay_cost, pay_for_match
from kubekit.lang.formats import URLError, is_accepted, parse_request_uri
from kubekit.lang.quantity import parse_quantity, plain_text
from kubekit.lang.regexp import Regexp, RegexpError, compile_regexp
from kubekit.lang.version import Version

Kind = Literal["dyn", "bool", "int", "double", "string", "bytes", "list", "strings", "map", "timestamp", "duration"]
Tagged = dict[str, Any]


class Function(msgspec.Struct, frozen=True):
    """A function for expressions, which may raise ValueError; a member function's first parameter precedes the dot."""

    name: str
    parameters: tuple[Kind, ...]
    result: Kind
    call: Callable[..., Any]


def _accepts(parse: Callable[..., Any]) -> Callable[..., bool]:
    """Returns a function that reports whether `parse` accepts its arguments."""
    return lambda *arguments: is_accepted(parse, *arguments)


def _getter(name: str) -> Callable[[Tagged], Any]:
    return lambda value: value[name]


def _parse_url(text: str) -> Tagged:
    """Returns a URL's parts, tagged as a URL. Raises ValueError."""
    try:
        url = parse_request_uri(text)
    except URLError as error:
        raise ValueError(f"URL parse error during conversion from string: parse {text!r}: {error}") from error
    return {
        "url": text,
        "scheme": url.scheme,
        "host": url.host,
        "hostname": url.hostname,
        "port": url.port,
        "path": url.path,
        "query": {key: list(values) for key, values in parse_qs(url.query, keep_blank_values=True).items()},
    }


# --- quantity and semver: both compare ------------------------------------------------------------------------------


def _quantity(value: Decimal) -> Tagged:
    return {"quantity": plain_text(value)}


def _number(value: Any) -> Decimal:
    return Decimal(value) if isinstance(value, int) else Decimal(value["quantity"])


def _order(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)


def _compare(left: Tagged, right: Tagged) -> int:
    """Returns -1, 0 or 1 for two quantities or two semantic versions. Raises ValueError for anything else."""
    if "quantity" in left and "quantity" in right:
        return _order(_number(left), _number(right))
    if "semver" in left and "semver" in right:
        first, second = Version(left["semver"]), Version(right["semver"])
        return (first > second) - (first < second)
    raise ValueError("no such overload")


def _as_integer(value: Tagged) -> int:
    number = _number(value)
    if number != number.to_integral_value() or not -(2**63) <= number < 2**63:
        raise ValueError("cannot convert value to integer")
    return int(number)


def _parse_semver(text: str, normalize: bool = False) -> Tagged:
    """Returns a semantic version; with `normalize`, also for `v01.2`, which is 1.2.0. Raises ValueError."""
    pattern = r"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?([-+].*)?"
    if normalize and (match := re.fullmatch(pattern, text)) is not None:
        text = ".".join(str(int(number or 0)) for number in match.groups()[:3]) + (match.group(4) or "")
    version = Version(text)
    return {"semver": version.text, "major": version.major, "minor": version.minor, "patch": version.patch}


# --- ip and cidr ----------------------------------------------------------------------------------------------------


def _parse_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped or address.scope_id):
        raise ValueError(f"IPv4-mapped IPv6 addresses and zones are not allowed: {text}")
    return address


def _ip_flag(name: str) -> Callable[[Tagged], bool]:
    return lambda value: bool(getattr(_parse_address(value["ip"]), name))


def _is_global_unicast(value: Tagged) -> bool:
    address = _parse_address(value["ip"])
    plain_address = not (address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local)
    return plain_address and str(address) != "255.255.255.255"


def _link_local_multicast(value: Tagged) -> bool:
    address = _parse_address(value["ip"])
    return address in ipaddress.ip_network("224.0.0.0/24" if address.version == 4 else "ff02::/16")


def _parse_interface(text: str) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
    if "/" not in text:
        raise ValueError(f"netip.ParsePrefix({text!r}): no '/'")
    return ipaddress.ip_interface(text)


def _network(value: Tagged) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    return _parse_interface(value["cidr"]).network


def _parse_cidr(text: str) -> Tagged:
    interface = _parse_interface(text)
    return {"cidr": str(interface), "address": str(interface.ip)}


def _contains_ip(value: Tagged, other: Any) -> bool:
    address = _parse_address(other if isinstance(other, str) else other["ip"])
    network = _network(value)
    return address.version == network.version and address in network


def _contains_cidr(value: Tagged, other: Any) -> bool:
    inner = _parse_interface(other if isinstance(other, str) else other["cidr"]).network
    outer = _network(value)
    return inner.version == outer.version and inner.subnet_of(outer)  # type: ignore[arg-type]


# --- text and lists -------------------------------------------------------------------------------------------------


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    # `a.*b|a` looks at all that is left for each of its matches.
    matches = _paid_regexp(text, pattern).find_all(text, lambda remaining: pay_cost(remaining / 1000))
    return list(matches if limit < 0 else islice(matches, limit))


def _paid_regexp(text: str, pattern: str) -> Regexp:
    """Returns the expression, with a search of `text` paid for."""
    try:
        pay_for_match(text, pattern)
        return compile_regexp(pattern)
    except RegexpError as error:
        raise ValueError(f"Illegal regex: {error}") from error


def _min_or_max(choose: Callable[[list[Any]], Any], name: str) -> Callable[[list[Any]], Any]:
    """Returns the function `name`, which chooses one of a list's items and refuses an empty list."""

    def choose_from(items: list[Any]) -> Any:
        if not items:
            raise ValueError(f"{name} called on empty list")
        return choose(items)

    return choose_from


def _last_index_of(items: list[Any], item: Any) -> int:
    return len(items) - 1 - items[::-1].index(item) if item in items else -1


def _sum(items: list[Any]) -> Any:
    # The sum of lists would be a list of all their items, again for each of them.
    if not all(isinstance(item, int | float | timedelta) and not isinstance(item, bool) for item in items):
        raise ValueError("no such overload")
    return sum(items[1:], items[0]) if items else 0


def _contains_all(items: list[Any], other_items: list[Any]) -> bool:
    pay_cost(len(items) * len(other_items))
    return all(item in items for item in other_items)


def _share_an_item(items: list[Any], other_items: list[Any]) -> bool:
    pay_cost(len(items) * len(other_items))
    return any(item in items for item in other_items)


GLOBAL_FUNCTIONS: tuple[Function, ...] = (
    Function("isURL", ("string",), "bool", _accepts(parse_request_uri)),
    Function("url", ("string",), "map", _parse_url),
    Function("isQuantity", ("string",), "bool", _accepts(parse_quantity)),
    Function("quantity", ("string",), "map", lambda text: _quantity(parse_quantity(text))),
    Function("isSemver", ("string",), "bool", _accepts(_parse_semver)),
    Function("isSemver", ("string", "bool"), "bool", _accepts(_parse_semver)),
    Function("semver", ("string",), "map", _parse_semver),
    Function("semver", ("string", "bool"), "map", _parse_semver),
    Function("isIP", ("string",), "bool", _accepts(_parse_address)),
    Function("ip", ("string",), "map", lambda text: {"ip": str(_parse_address(text))}),
    Function("ip.isCanonical", ("string",), "bool", lambda text: str(_parse_address(text)) == text),
    Function("isCIDR", ("string",), "bool", _accepts(_parse_interface)),
    Function("cidr", ("string",), "map", _parse_cidr),
    Function("sets.contains", ("list", "list"), "bool", _contains_all),
    Function("sets.equivalent", ("list", "list"), "bool", lambda a, b: _contains_all(a, b) and _contains_all(b, a)),
    Function("sets.intersects", ("list", "list"), "bool", _share_an_item),
)

MEMBER_FUNCTIONS: tuple[Function, ...] = (
    Function("getScheme", ("map",), "string", _getter("scheme")),
    Function("getHost", ("map",), "string", _getter("host")),
    Function("getHostname", ("map",), "string", _getter("hostname")),
    Function("getPort", ("map",), "string", _getter("port")),
    Function("getEscapedPath", ("map",), "string", _getter("path")),
    Function("getQuery", ("map",), "map", _getter("query")),
    Function("compareTo", ("map", "map"), "int", _compare),
    Function("isGreaterThan", ("map", "map"), "bool", lambda a, b: _compare(a, b) > 0),
    Function("isLessThan", ("map", "map"), "bool", lambda a, b: _compare(a, b) < 0),
    Function("add", ("map", "dyn"), "map", lambda a, b: _quantity(_number(a) + _number(b))),
    Function("sub", ("map", "dyn"), "map", lambda a, b: _quantity(_number(a) - _number(b))),
    Function("sign", ("map",), "int", lambda value: _order(_number(value), 0)),
    Function("asInteger", ("map",), "int", _as_integer),
    Function("isInteger", ("map",), "bool", _accepts(_as_integer)),
    Function("asApproximateFloat", ("map",), "double", lambda value: float(value["quantity"])),
    Function("major", ("map",), "int", _getter("major")),
    Function("minor", ("map",), "int", _getter("minor")),
    Function("patch", ("map",), "int", _getter("patch")),
    Function("ip", ("map",), "map", lambda value: {"ip": value["address"]}),
    Function("family", ("map",), "int", lambda value: _parse_address(value["ip"]).version),
    Function("isUnspecified", ("map",), "bool", _ip_flag("is_unspecified")),
    Function("isLoopback", ("map",), "bool", _ip_flag("is_loopback")),
    Function("isLinkLocalUnicast", ("map",), "bool", _ip_flag("is_link_local")),
    Function("isLinkLocalMulticast", ("map",), "bool", _link_local_multicast),
    Function("isGlobalUnicast", ("map",), "bool", _is_global_unicast),
    Function("containsIP", ("map", "dyn"), "bool", _contains_ip),
    Function("containsCIDR", ("map", "dyn"), "bool", _contains_cidr),
    Function("prefixLength", ("map",), "int", lambda value: _network(value).prefixlen),
    Function("masked", ("map",), "map", lambda value: _parse_cidr(str(_network(value)))),
    Function("find", ("string", "string"), "string", lambda text, pattern: _paid_regexp(text, pattern).find(text)),
    Function("findAll", ("string", "string"), "strings", _find_all),
    Function("findAll", ("string", "string", "int"), "strings", _find_all),
    Function("isSorted", ("list",), "bool", lambda items: all(a <= b for a, b in pairwise(items))),
    Function("sum", ("list",), "dyn", _sum),
    Function("min", ("list",), "dyn", _min_or_max(min, "min")),
    Function("max", ("list",), "dyn", _min_or_max(max, "max")),
    Function("indexOf", ("list", "dyn"), "int", lambda items, item: items.index(item) if item in items else -1),
    Function("lastIndexOf", ("list", "dyn"), "int", _last_index_of),
)
