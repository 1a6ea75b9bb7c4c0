"""From an answer that is no success to the error that says what happens next."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kubekit.api.meta_v1 import Status
from kubekit.kube import api_errors
from kubekit.kube.api_errors import ApiError, Transient, error_of
from kubekit.kube.request import Request

REQUEST = Request(method="GET", path="/api/v1/nodes/a")


def _status(code: int, reason: str, **more: Any) -> bytes:
    return json.dumps({"kind": "Status", "code": code, "reason": reason, "message": "m", **more}).encode()


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (400, "BadRequest", api_errors.BadRequest),
        (401, "Unauthorized", api_errors.Unauthorized),
        (403, "Forbidden", api_errors.Forbidden),
        (404, "NotFound", api_errors.NotFound),
        (409, "Conflict", api_errors.Conflict),
        (409, "AlreadyExists", api_errors.AlreadyExists),
        (410, "Gone", api_errors.Gone),
        (410, "Expired", api_errors.Gone),
        (422, "Invalid", api_errors.Invalid),
        (429, "TooManyRequests", api_errors.TooManyRequests),
        (500, "InternalError", api_errors.ServerError),
        (500, "ServerTimeout", api_errors.ServerError),
        (503, "ServiceUnavailable", api_errors.ServerError),
        (504, "Timeout", api_errors.ServerError),
        (405, "MethodNotAllowed", ApiError),
        (415, "UnsupportedMediaType", ApiError),
        (403, "", api_errors.Forbidden),
        (599, "Weird", api_errors.ServerError),
    ],
)
def test_the_reason_decides_the_type(code: int, reason: str, expected: type[ApiError]) -> None:
    """409 is two errors, and several codes are one; without a known reason the code decides."""
    error = error_of(code, {}, _status(code, reason), REQUEST)
    assert type(error) is expected
    assert (error.message, error.code, error.request) == ("m", code, REQUEST)
    assert isinstance(error, Transient) is (code == 429 or code >= 500)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("BadRequest", api_errors.BadRequest),
        ("Unauthorized", api_errors.Unauthorized),
        ("Forbidden", api_errors.Forbidden),
        ("NotFound", api_errors.NotFound),
        ("Conflict", api_errors.Conflict),
        ("AlreadyExists", api_errors.AlreadyExists),
        ("Gone", api_errors.Gone),
        ("Expired", api_errors.Gone),
        ("Invalid", api_errors.Invalid),
        ("TooManyRequests", api_errors.TooManyRequests),
        ("InternalError", api_errors.ServerError),
        ("ServerTimeout", api_errors.ServerError),
        ("ServiceUnavailable", api_errors.ServerError),
        ("Timeout", api_errors.ServerError),
    ],
)
def test_the_reason_decides_where_a_watch_tells_no_code(reason: str, expected: type[ApiError]) -> None:
    """An ERROR event is a separate Status, whose code is optional."""
    assert type(api_errors.error_of_status(Status(status="Failure", reason=reason), REQUEST)) is expected


@pytest.mark.parametrize(
    ("headers", "details", "expected"),
    [
        pytest.param({"Retry-After": "3"}, None, 3.0, id="the header"),
        pytest.param(
            {"retry-after": "3"}, {"retryAfterSeconds": 9}, 3.0, id="the header in lower case, before details"
        ),
        pytest.param({}, {"retryAfterSeconds": 9}, 9.0, id="the Status's details"),
        pytest.param({"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, None, None, id="a date is no wish"),
        pytest.param({}, None, None, id="nothing said"),
        pytest.param({"Retry-After": "\N{SUPERSCRIPT TWO}"}, None, None, id="a digit that is no number"),
        pytest.param({"Retry-After": "9" * 5000}, None, None, id="more than anybody waits"),
        pytest.param({"Retry-After": " 3 "}, None, 3.0, id="the header with blanks"),
        pytest.param({"Retry-After": "0"}, {"retryAfterSeconds": 9}, 0.0, id="at once"),
        pytest.param({"Retry-After": "-3"}, None, None, id="no number of seconds"),
        pytest.param({"Retry-After": "x"}, {"retryAfterSeconds": 1}, 1.0, id="the details where the header is none"),
        pytest.param({}, {"retryAfterSeconds": 0}, None, id="the details' nothing"),
        pytest.param({}, {"retryAfterSeconds": -1}, None, id="the details' less than nothing"),
        pytest.param({"X": "7", "Retry-After": "3", "Y": "8"}, None, 3.0, id="the header among others"),
    ],
)
def test_retry_after(headers: dict[str, str], details: Any, expected: float | None) -> None:
    """How long the server asks to wait, in seconds."""
    error = error_of(429, headers, _status(429, "TooManyRequests", details=details), REQUEST)
    assert isinstance(error, api_errors.TooManyRequests)
    assert error.retry_after_s == expected


@pytest.mark.parametrize(
    ("code", "body", "expected", "says"),
    [
        pytest.param(404, b"404 page not found\n", api_errors.NotFound, "404 page not found", id="an unknown path"),
        pytest.param(503, b"<html>" + b"x" * 9999, api_errors.ServerError, "...)", id="a proxy's page is cut short"),
        pytest.param(502, b"", api_errors.ServerError, "gateway", id="an empty body"),
        pytest.param(401, b"\xff\xfe", api_errors.Unauthorized, "provide credentials", id="bytes that are no text"),
        pytest.param(
            403, b'{"kind":"Status","code":"x"}', api_errors.Forbidden, "does not allow", id="a broken Status"
        ),
        pytest.param(307, b"", ApiError, "status code 307", id="a redirect is not followed"),
    ],
)
def test_a_body_that_is_no_status(code: int, body: bytes, expected: type[ApiError], says: str) -> None:
    """A proxy's or router's answer becomes the same error, and what it said is shown."""
    error = error_of(code, {}, body, REQUEST)
    assert type(error) is expected
    assert says in error.message
    assert len(error.message) < 400


@pytest.mark.parametrize(
    ("code", "reason", "says"),
    [
        (400, "BadRequest", "rejected our request for an unknown reason"),
        (401, "Unauthorized", "provide credentials"),
        (403, "Forbidden", "does not allow access"),
        (404, "NotFound", "could not find the requested resource"),
        (405, "MethodNotAllowed", "does not allow this method"),
        (406, "NotAcceptable", "content type that the client supports"),
        (409, "Conflict", "reported a conflict"),
        (410, "Gone", "is gone"),
        (413, "RequestEntityTooLarge", "larger than the server accepts"),
        (415, "UnsupportedMediaType", "content type of the request"),
        (422, "Invalid", "due to an error in our request"),
        (429, "TooManyRequests", "try again later"),
        (500, "InternalError", "has prevented the request from succeeding"),
        (502, "ServiceUnavailable", "a gateway in front of the server"),
        (503, "ServiceUnavailable", "currently unable to handle the request"),
        (504, "Timeout", "in the time allotted"),
        (418, "Unknown", "the status code 418"),
    ],
)
def test_a_bare_code_has_its_reason_and_words(code: int, reason: str, says: str) -> None:
    """What client-go says where a server says nothing (NewGenericServerResponse), and no other code's words."""
    error = error_of(code, {}, b"", REQUEST)
    assert error.reason == reason
    assert says in error.message


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        pytest.param(b"404 page not found", True, id="the path is unknown"),
        pytest.param(_status(404, "NotFound", details={}), True, id="the server names no object"),
        pytest.param(
            _status(404, "NotFound", details={"name": "a", "kind": "nodes"}), False, id="one object is missing"
        ),
    ],
)
def test_a_missing_kind_is_not_a_missing_object(body: bytes, missing: bool) -> None:
    """The whole API being unknown is distinguished from one object of it not being there."""
    error = error_of(404, {}, body, REQUEST)
    assert isinstance(error, api_errors.NotFound)
    assert error.api_missing is missing


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (Status(code=500), api_errors.ServerError),
        (Status(code=499), ApiError),
        (Status(code=505), api_errors.ServerError),
        (Status(code=404, reason="Weird"), api_errors.NotFound),
        (Status(), ApiError),
    ],
)
def test_a_status_without_a_reason_that_is_known(status: Status, expected: type[ApiError]) -> None:
    """Its code decides; from 500 on it is the server's own trouble."""
    error = api_errors.error_of_status(status, REQUEST)
    assert type(error) is expected
    assert error.reason == (status.reason or "Unknown")
    assert getattr(error, "retry_after_s", None) is None


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        pytest.param(b'{"kind":"Status","message":"m"}', 404, "m", id="a Status without a code"),
        pytest.param(
            b'{"kind":"Status","code":404,"message":""}',
            404,
            "the server could not find the requested resource",
            id="a Status without words",
        ),
        pytest.param(
            b'{"kind":"Status","status":"Success","message":"m"}',
            404,
            'the server could not find the requested resource ({"kind":"Status","status":"Success","message":"m"})',
            id="a success",
        ),
        pytest.param(
            b'{"message":"m"}',
            404,
            'the server could not find the requested resource ({"message":"m"})',
            id="another kind",
        ),
        pytest.param(
            b" " + b"x" * 200,
            418,
            f"the server answered with the status code 418 ({'x' * 200})",
            id="as much as is shown",
        ),
        pytest.param(
            b"x" * 201, 418, f"the server answered with the status code 418 ({'x' * 200}...)", id="a character more"
        ),
        pytest.param(b" \n", 418, "the server answered with the status code 418", id="blanks"),
    ],
)
def test_what_an_answer_says(body: bytes, code: int, message: str) -> None:
    """The server's words, else ours with what there is."""
    error = error_of(code, {}, body, REQUEST)
    assert (error.message, error.code) == (message, code)


def test_what_is_said_of_an_error() -> None:
    """Its message is the exception's text; its parts are there."""
    error = api_errors.Unreachable("https://h", "h:443", "no way", refused=True)
    assert (str(error), error.reason, error.refused) == ("could not reach https://h: no way", "Unreachable", True)
    assert api_errors.Unreachable("a", "b", "c").refused is False
    assert (api_errors.ConfigError("m").reason, api_errors.ConfigError("m", reason="R").reason) == (
        "InvalidConfiguration",
        "R",
    )
    assert api_errors.Transient("m", reason="R").retry_after_s is None
    assert api_errors.Transient("m", reason="R", retry_after_s=3).retry_after_s == 3
