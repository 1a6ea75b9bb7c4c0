"""Which requests are answered: by method, host and origin; and where a login leads."""

from __future__ import annotations

import pytest

from runup.console.decide import request_rules as rules

LOCAL = rules.hosts_of("127.0.0.1", ())
NAMED = rules.hosts_of("0.0.0.0", ("Console.Example",))
ANSWERED = None


@pytest.mark.parametrize(
    ("method", "path", "headers", "hosts", "status"),
    [
        pytest.param("GET", "/", {"Host": "127.0.0.1:8600"}, LOCAL, ANSWERED, id="this machine by its address"),
        pytest.param("HEAD", "/", {"Host": "localhost"}, LOCAL, ANSWERED, id="by its name"),
        pytest.param("GET", "/", {"Host": "[::1]:8600"}, LOCAL, ANSWERED, id="by its other address"),
        pytest.param("GET", "/", {"Host": "LOCALHOST:1"}, LOCAL, ANSWERED, id="in large letters, through a tunnel"),
        pytest.param("GET", "/", {"Host": "evil.example"}, LOCAL, 421, id="a name that was made to lead here"),
        pytest.param("GET", "/", {"Host": "localhost.evil.example"}, LOCAL, 421, id="one that begins like ours"),
        pytest.param("GET", "/", {"Host": "localhost@evil.example"}, LOCAL, 421, id="one with a user"),
        pytest.param("GET", "/", {"Host": "localhost:80:80"}, LOCAL, 421, id="two ports"),
        pytest.param("GET", "/", {"Host": "localhost\n"}, LOCAL, 421, id="a line end"),
        pytest.param("GET", "/", {"Host": ""}, LOCAL, 421, id="an empty host"),
        pytest.param("GET", "/", {}, LOCAL, 421, id="no host"),
        pytest.param("GET", "/", {"Host": "console.example:8443"}, NAMED, ANSWERED, id="a name that was given"),
        pytest.param("GET", "/", {"Host": "0.0.0.0"}, NAMED, 421, id="every address is no name"),
        pytest.param("GET", "/", {"Host": "localhost"}, NAMED, 421, id="this machine, where others are served"),
        pytest.param("GET", "/healthz", {"Host": "10.1.2.3:8443"}, NAMED, ANSWERED, id="a kubelet"),
        pytest.param("POST", "/healthz", {"Host": "10.1.2.3:8443"}, NAMED, 421, id="not a kubelet"),
        pytest.param("POST", "/", {"Host": "localhost"}, LOCAL, 405, id="a change"),
        pytest.param("DELETE", "/clusters/a", {"Host": "localhost"}, LOCAL, 405, id="a removal"),
        pytest.param("POST", "/login", {"Host": "localhost"}, LOCAL, ANSWERED, id="a login by a program"),
        pytest.param(
            "POST", "/login", {"Host": "localhost:1", "Origin": "https://localhost:1"}, LOCAL, ANSWERED, id="our form"
        ),
        pytest.param(
            "POST", "/login", {"Host": "localhost:1", "Origin": "https://localhost:2"}, LOCAL, 403, id="another port"
        ),
        pytest.param("POST", "/login", {"Host": "localhost", "Origin": "null"}, LOCAL, 403, id="a frame in a sandbox"),
        pytest.param(
            "POST", "/login", {"Host": "localhost", "Origin": "https://evil.example"}, LOCAL, 403, id="another site"
        ),
        pytest.param("POST", "/login", {"Host": "localhost", "Origin": "https://[evil"}, LOCAL, 403, id="no address"),
        pytest.param(
            "POST", "/login", {"Host": "localhost", "Sec-Fetch-Site": "cross-site"}, LOCAL, 403, id="as browsers say it"
        ),
    ],
)
def test_what_is_answered(
    method: str, path: str, headers: dict[str, str], hosts: frozenset[str], status: int | None
) -> None:
    """Only reads, the login and its end, and only by a name that the server knows."""
    refused = rules.refusal(method, path, headers, hosts)
    assert (refused and refused[0]) == status


OWN = {"Host": "localhost:1", "Origin": "https://localhost:1", "Sec-Fetch-Site": "same-origin"}


@pytest.mark.parametrize(
    ("path", "headers", "acts", "status"),
    [
        pytest.param("/logout", OWN, False, ANSWERED, id="the end of a login"),
        pytest.param("/logout", {**OWN, "Origin": "https://evil.example"}, False, 403, id="by another site"),
        pytest.param("/logout", {**OWN, "Sec-Fetch-Site": "same-site"}, False, 403, id="by a neighbour"),
        pytest.param("/clusters/a/accept", OWN, False, 405, id="an action where there are none"),
        pytest.param("/clusters/a/accept", OWN, True, ANSWERED, id="an acceptance"),
        pytest.param("/clusters/a/b/start", OWN, True, ANSWERED, id="a start, of a name with a slash"),
        pytest.param("/clusters/a/start", {**OWN, "Origin": "https://localhost:2"}, True, 403, id="by another port"),
        pytest.param("/clusters/a/start", {**OWN, "Origin": "null"}, True, 403, id="by a frame in a sandbox"),
        pytest.param("/clusters/a/start", {**OWN, "Host": "evil.example"}, True, 421, id="by another name"),
        pytest.param("/clusters/a/graph", OWN, True, 405, id="a page"),
        pytest.param("/accept", OWN, True, 405, id="of no cluster"),
    ],
)
def test_which_forms_are_taken(path: str, headers: dict[str, str], acts: bool, status: int | None) -> None:
    """The console's own, and those of actions only where the console was started with them."""
    refused = rules.refusal("POST", path, headers, LOCAL, acts=acts)
    assert (refused and refused[0]) == status


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        pytest.param("/clusters/a%2Fb/update", "/clusters/a%2Fb/update", id="a page"),
        pytest.param("/history?cluster=a&by=week", "/history?cluster=a&by=week", id="with what was asked"),
        pytest.param(
            "/clusters/apps%2Fapi-a:6443%2Fkube:admin/graph",
            "/clusters/apps%2Fapi-a:6443%2Fkube:admin/graph",
            id="a context as OpenShift calls it",
        ),
        pytest.param("/clusters/a@b,c;d!e$f'(g)*", "/clusters/a@b,c;d!e$f'(g)*", id="all that needs no escape"),
        pytest.param("//evil.example/", "/", id="another server"),
        pytest.param("//evil.example:1/@", "/", id="another server with a port"),
        pytest.param("/\\evil.example/", "/", id="another server, as browsers read it"),
        pytest.param("https://evil.example/", "/", id="another server in full"),
        pytest.param("javascript:alert(1)", "/", id="a script"),
        pytest.param("/a\r\nSet-Cookie: a=b", "/", id="another header"),
        pytest.param("/login?next=/login", "/", id="the login again"),
        pytest.param("/logout", "/", id="the end of the login"),
        pytest.param("", "/", id="nothing"),
    ],
)
def test_where_a_login_leads(asked: str, shown: str) -> None:
    """To a page of this server."""
    assert rules.next_page(asked) == shown


@pytest.mark.parametrize(
    ("host", "is_local", "is_any"),
    [
        pytest.param("127.0.0.1", True, False, id="loopback"),
        pytest.param("127.8.9.1", True, False, id="all of 127/8"),
        pytest.param("::1", True, False, id="IPv6"),
        pytest.param("localhost", True, False, id="its name"),
        pytest.param("localhost.example", False, False, id="a name like it"),
        pytest.param("0.0.0.0", False, True, id="every address"),
        pytest.param("::", False, True, id="every address of IPv6"),
        pytest.param("10.0.0.1", False, False, id="an address"),
    ],
)
def test_who_reaches_an_address(host: str, is_local: bool, is_any: bool) -> None:
    """An address that is not certainly local counts as public."""
    assert (rules.is_loopback(host), rules.is_any_address(host)) == (is_local, is_any)


def test_browsers_tell_where_a_form_comes_from() -> None:
    """Under no-referrer they send `Origin: null` with every form, which is refused: nobody could log in.

    https://fetch.spec.whatwg.org/#append-a-request-origin-header
    """
    assert rules.HEADERS["Referrer-Policy"] == "same-origin"


def test_no_script_of_others() -> None:
    """The policy lets no inline script run, and no page be framed or sent elsewhere."""
    policy = dict(part.strip().split(" ", 1) for part in rules.HEADERS["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["form-action"] == "'self'"
    assert policy["base-uri"] == policy["frame-ancestors"] == "'none'"
