"""The variable `authorizer` of expressions: questions about rights (k8s.io/apiserver/pkg/cel/library/authz.go).

The engine has no opaque values: an authorizer, a question, and a decision are maps. `authorizer_value` makes the
variable; within `answering` the function `check` asks the given authorizer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from kubekit.lang.cel_cost import pay_cost
from kubekit.lang.cel_functions import Function, Kind, Tagged


class Decision(NamedTuple):
    """The answer of an authorizer; `error` is the reason why it could not decide."""

    allowed: bool
    reason: str = ""
    error: str = ""


# Decides on the attributes of a request: user (UserInfo), verb, and either path, or group, resource and their details.
Authorize = Callable[[Mapping[str, Any]], Decision]

_CHECK_COST = 350_000
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_AUTHORIZE: ContextVar[Authorize | None] = ContextVar("authorize", default=None)


@contextmanager
def answering(authorize: Authorize | None) -> Iterator[None]:
    """Lets `authorize` answer the checks of expressions that are evaluated in the block."""
    before = _AUTHORIZE.set(authorize)
    try:
        yield
    finally:
        _AUTHORIZE.reset(before)


def authorizer_value(user: Mapping[str, Any], resource: Mapping[str, str]) -> Tagged:
    """Returns the variable `authorizer` for a user and the resource of their request."""
    return {"authorizer": dict(user), "requestResource": {"check": {"user": dict(user), **resource}}}


def _content(value: Tagged, tag: str) -> Any:
    if tag not in value:
        raise ValueError("no such overload")
    return value[tag]


def _path(value: Tagged, path: str) -> Tagged:
    user = _content(value, "authorizer")
    if not path.strip():
        raise ValueError("path must not be empty")
    return {"check": {"user": user, "path": path}}


def _group(value: Tagged, group: str) -> Tagged:
    return {"group check": {"user": _content(value, "authorizer"), "group": group}}


def _service_account(value: Tagged, namespace: str, name: str) -> Tagged:
    _content(value, "authorizer")
    if len(name) > 253 or not _SUBDOMAIN.fullmatch(name):
        raise ValueError("Invalid service account name")
    if not _LABEL.fullmatch(namespace):
        raise ValueError("Invalid service account namespace")
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    return {"authorizer": {"username": f"system:serviceaccount:{namespace}:{name}", "groups": groups}}


def _resource(value: Tagged, resource: str) -> Tagged:
    about = _content(value, "group check")
    if not resource.strip():
        raise ValueError("resource must not be empty")
    return {"check": {**about, "resource": resource}}


def _detail(key: str) -> Callable[[Tagged, str], Tagged]:
    """Returns the function that adds a detail to a question about a resource."""

    def add_detail(value: Tagged, text: str) -> Tagged:
        about = _content(value, "check")
        if "resource" not in about:
            raise ValueError("no such overload")
        return {"check": {**about, key: text}}

    return add_detail


def _check(value: Tagged, verb: str) -> Tagged:
    about, authorize = _content(value, "check"), _AUTHORIZE.get()
    pay_cost(_CHECK_COST)
    if authorize is None:
        raise ValueError("there is no authorizer to ask")
    return {"decision": authorize({**about, "verb": verb})._asdict()}


def _part(key: str) -> Callable[[Tagged], Any]:
    return lambda value: _content(value, "decision")[key]


def _of_texts(name: str, texts: int, call: Callable[..., Tagged]) -> Function:
    """Returns a member function that takes `texts` strings."""

    def checked(value: Tagged, *arguments: Any) -> Tagged:
        if not all(isinstance(argument, str) for argument in arguments):
            raise ValueError("no such overload")
        return call(value, *arguments)

    # The checker of types refuses other arguments, in the words of cel-go.
    parameters: tuple[Kind, ...] = ("map", "dyn") if texts == 1 else ("map", "dyn", "dyn")
    return Function(name, parameters, "map", checked)


FUNCTIONS: tuple[Function, ...] = (
    _of_texts("path", 1, _path),
    _of_texts("group", 1, _group),
    _of_texts("serviceAccount", 2, _service_account),
    _of_texts("resource", 1, _resource),
    *(
        _of_texts(name, 1, _detail(name))
        for name in ("subresource", "namespace", "name", "fieldSelector", "labelSelector")
    ),
    _of_texts("check", 1, _check),
    Function("allowed", ("map",), "bool", _part("allowed")),
    Function("reason", ("map",), "string", _part("reason")),
    Function("error", ("map",), "string", _part("error")),
    Function("errored", ("map",), "bool", lambda value: bool(_content(value, "decision")["error"])),
)
