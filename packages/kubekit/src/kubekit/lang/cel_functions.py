"""Kubernetes' functions for CEL as a table: name, parameter kinds, result kind, and a Python function.

Values without a CEL type of their own are maps with one marking member each (`quantity`, `ip`, `cidr`, `semver`,
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
from kubekit.lang.formats import URLError, parse_request_uri
from kubekit.lang.quantity import parse_quantity, plain_text
from kubekit.lang.regexp import Regexp, RegexpError, compile_regexp
from kubekit.lang.version import Version

Kind = Literal["dyn", "bool", "int", "double", "string", "bytes", "list", "strings", "map", "timestamp", "duration"]
Tagged = dict[str, Any]


class Function(msgspec.Struct, frozen=True):
    """A function for expressions.

    A member function's first parameter stands before the dot. It may raise ValueError.
    """

    name: str
    parameters: tuple[Kind, ...]
    result: Kind
    call: Callable[..., Any]
    member: bool = False


def _parses_with(parse: Callable[..., Any]) -> Callable[..., bool]:
    """Returns a function that reports whether `parse` accepts its arguments."""

    def check(*arguments: Any) -> bool:
        """Reports whether `parse` accepts the arguments."""
        try:
            parse(*arguments)
        except ValueError:
            return False
        return True

    return check


# --- url ------------------------------------------------------------------------------------------------------------


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


def _getter(name: str) -> Callable[[Tagged], Any]:
    return lambda value: value[name]


# --- quantity and semver: both compare ------------------------------------------------------------------------------


def _parse_tagged_quantity(text: str) -> Tagged:
    return {"quantity": plain_text(parse_quantity(text))}


def _parse_semver(text: str, normalize: bool = False) -> Tagged:
    version = Version(_normalize_semver(text) if normalize else text)
    return {"semver": version.text, "major": version.major, "minor": version.minor, "patch": version.patch}


def _normalize_semver(text: str) -> str:
    """Returns `v01.2` as `1.2.0`, which semver(text, true) tolerates."""
    match = re.fullmatch(r"v?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?([-+].*)?", text)
    if match is None:
        return text
    numbers = ".".join(str(int(number or 0)) for number in match.groups()[:3])
    return numbers + (match.group(4) or "")


def _compare(left: Tagged, right: Tagged) -> int:
    """Returns -1, 0 or 1 for two quantities or two semantic versions. Raises ValueError for anything else."""
    if "quantity" in left and "quantity" in right:
        a, b = Decimal(left["quantity"]), Decimal(right["quantity"])
        return (a > b) - (a < b)
    if "semver" in left and "semver" in right:
        first, second = Version(left["semver"]), Version(right["semver"])
        return (first > second) - (first < second)
    raise ValueError("no such overload")


def _add(left: Tagged, right: Any) -> Tagged:
    return {"quantity": plain_text(Decimal(left["quantity"]) + _decimal_of(right))}


def _sub(left: Tagged, right: Any) -> Tagged:
    return {"quantity": plain_text(Decimal(left["quantity"]) - _decimal_of(right))}


def _decimal_of(value: Any) -> Decimal:
    return Decimal(value) if isinstance(value, int) else Decimal(value["quantity"])


def _sign(value: Tagged) -> int:
    number = Decimal(value["quantity"])
    return (number > 0) - (number < 0)


def _as_integer(value: Tagged) -> int:
    number = Decimal(value["quantity"])
    if number != number.to_integral_value() or not -(2**63) <= number < 2**63:
        raise ValueError("cannot convert value to integer")
    return int(number)


def _is_integer(value: Tagged) -> bool:
    return _parses_with(_as_integer)(value)


# --- ip and cidr ----------------------------------------------------------------------------------------------------


def _parse_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped or address.scope_id):
        raise ValueError(f"IPv4-mapped IPv6 addresses and zones are not allowed: {text}")
    return address


def _ip_of(value: Any) -> Tagged:
    """Returns the address for `ip("10.0.0.1")` and for `cidr(...).ip()`."""
    if isinstance(value, str):
        return {"ip": str(_parse_address(value))}
    return {"ip": value["address"]}


def _ip_flag(name: str) -> Callable[[Tagged], bool]:
    return lambda value: bool(getattr(_parse_address(value["ip"]), name))


def _is_global_unicast(value: Tagged) -> bool:
    address = _parse_address(value["ip"])
    plain_address = not (address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local)
    return plain_address and str(address) != "255.255.255.255"


def _link_local_multicast(value: Tagged) -> bool:
    address = _parse_address(value["ip"])
    network = "224.0.0.0/24" if address.version == 4 else "ff02::/16"
    return address in ipaddress.ip_network(network)


def _is_canonical(text: str) -> bool:
    return str(_parse_address(text)) == text


def _parse_interface(text: str) -> ipaddress.IPv4Interface | ipaddress.IPv6Interface:
    if "/" not in text:
        raise ValueError(f"netip.ParsePrefix({text!r}): no '/'")
    return ipaddress.ip_interface(text)


def _parse_cidr(text: str) -> Tagged:
    interface = _parse_interface(text)
    return {"cidr": str(interface), "address": str(interface.ip)}


def _contains_ip(value: Tagged, other: Any) -> bool:
    address = _parse_address(other if isinstance(other, str) else other["ip"])
    network = _parse_interface(value["cidr"]).network
    return address.version == network.version and address in network


def _contains_cidr(value: Tagged, other: Any) -> bool:
    inner = _parse_interface(other if isinstance(other, str) else other["cidr"]).network
    outer = _parse_interface(value["cidr"]).network
    return inner.version == outer.version and inner.subnet_of(outer)  # type: ignore[arg-type]


def _network_of(value: Tagged) -> Tagged:
    return _parse_cidr(str(_parse_interface(value["cidr"]).network))


def _prefix_length(value: Tagged) -> int:
    return _parse_interface(value["cidr"]).network.prefixlen


def _ip_version(value: Tagged) -> int:
    return _parse_address(value["ip"]).version


# --- text and lists -------------------------------------------------------------------------------------------------


def _first_match(text: str, pattern: str) -> str:
    return _paid_regexp(text, pattern).find(text)


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


def _is_sorted(items: list[Any]) -> bool:
    return all(item <= following for item, following in pairwise(items))


def _min_or_max(choose: Callable[[list[Any]], Any], name: str) -> Callable[[list[Any]], Any]:
    """Returns the function `name`, which chooses one of a list's items and refuses an empty list."""

    def choose_from(items: list[Any]) -> Any:
        if not items:
            raise ValueError(f"{name} called on empty list")
        return choose(items)

    return choose_from


def _index_of(items: list[Any], item: Any) -> int:
    return items.index(item) if item in items else -1


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


def _have_same_items(items: list[Any], other_items: list[Any]) -> bool:
    return _contains_all(items, other_items) and _contains_all(other_items, items)


def _share_an_item(items: list[Any], other_items: list[Any]) -> bool:
    pay_cost(len(items) * len(other_items))
    return any(item in items for item in other_items)


_URL_PARTS: tuple[tuple[str, str, Kind], ...] = (
    ("getScheme", "scheme", "string"),
    ("getHost", "host", "string"),
    ("getHostname", "hostname", "string"),
    ("getPort", "port", "string"),
    ("getEscapedPath", "path", "string"),
    ("getQuery", "query", "map"),
)

FUNCTIONS: tuple[Function, ...] = (
    Function("isURL", ("string",), "bool", _parses_with(parse_request_uri)),
    Function("url", ("string",), "map", _parse_url),
    *(Function(name, ("map",), result, _getter(part), member=True) for name, part, result in _URL_PARTS),
    Function("isQuantity", ("string",), "bool", _parses_with(parse_quantity)),
    Function("quantity", ("string",), "map", _parse_tagged_quantity),
    Function("compareTo", ("map", "map"), "int", _compare, member=True),
    Function("isGreaterThan", ("map", "map"), "bool", lambda a, b: _compare(a, b) > 0, member=True),
    Function("isLessThan", ("map", "map"), "bool", lambda a, b: _compare(a, b) < 0, member=True),
    Function("add", ("map", "dyn"), "map", _add, member=True),
    Function("sub", ("map", "dyn"), "map", _sub, member=True),
    Function("sign", ("map",), "int", _sign, member=True),
    Function("asInteger", ("map",), "int", _as_integer, member=True),
    Function("isInteger", ("map",), "bool", _is_integer, member=True),
    Function("asApproximateFloat", ("map",), "double", lambda value: float(value["quantity"]), member=True),
    Function("isSemver", ("string",), "bool", _parses_with(_parse_semver)),
    Function("isSemver", ("string", "bool"), "bool", _parses_with(_parse_semver)),
    Function("semver", ("string",), "map", _parse_semver),
    Function("semver", ("string", "bool"), "map", _parse_semver),
    Function("major", ("map",), "int", _getter("major"), member=True),
    Function("minor", ("map",), "int", _getter("minor"), member=True),
    Function("patch", ("map",), "int", _getter("patch"), member=True),
    Function("isIP", ("string",), "bool", _parses_with(_parse_address)),
    Function("ip", ("string",), "map", _ip_of),
    Function("ip", ("map",), "map", _ip_of, member=True),
    Function("ip.isCanonical", ("string",), "bool", _is_canonical),
    Function("family", ("map",), "int", _ip_version, member=True),
    Function("isUnspecified", ("map",), "bool", _ip_flag("is_unspecified"), member=True),
    Function("isLoopback", ("map",), "bool", _ip_flag("is_loopback"), member=True),
    Function("isLinkLocalUnicast", ("map",), "bool", _ip_flag("is_link_local"), member=True),
    Function("isLinkLocalMulticast", ("map",), "bool", _link_local_multicast, member=True),
    Function("isGlobalUnicast", ("map",), "bool", _is_global_unicast, member=True),
    Function("isCIDR", ("string",), "bool", _parses_with(_parse_interface)),
    Function("cidr", ("string",), "map", _parse_cidr),
    Function("containsIP", ("map", "dyn"), "bool", _contains_ip, member=True),
    Function("containsCIDR", ("map", "dyn"), "bool", _contains_cidr, member=True),
    Function("prefixLength", ("map",), "int", _prefix_length, member=True),
    Function("masked", ("map",), "map", _network_of, member=True),
    Function("find", ("string", "string"), "string", _first_match, member=True),
    Function("findAll", ("string", "string"), "strings", _find_all, member=True),
    Function("findAll", ("string", "string", "int"), "strings", _find_all, member=True),
    Function("isSorted", ("list",), "bool", _is_sorted, member=True),
    Function("sum", ("list",), "dyn", _sum, member=True),
    Function("min", ("list",), "dyn", _min_or_max(min, "min"), member=True),
    Function("max", ("list",), "dyn", _min_or_max(max, "max"), member=True),
    Function("indexOf", ("list", "dyn"), "int", _index_of, member=True),
    Function("lastIndexOf", ("list", "dyn"), "int", _last_index_of, member=True),
    Function("sets.contains", ("list", "list"), "bool", _contains_all),
    Function("sets.equivalent", ("list", "list"), "bool", _have_same_items),
    Function("sets.intersects", ("list", "list"), "bool", _share_an_item),
)
