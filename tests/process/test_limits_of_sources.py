"""How much, how far and how often others are asked: each limit at its end and one beyond."""

from __future__ import annotations

import asyncio
import base64
import errno
import json
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web as server_side
from structlog.testing import capture_logs
from tests.advice.control.test_prometheus import asking, quiet, rounds, until
from tests.kubekit.kube.apiscript import ScriptedApi, reply, scripted_api
from tests.release.control.test_release_verification import DIGEST, GOOD, checked, config_maps, sent

from kubekit.http.proxies import Egress
from kubekit.kube.auth import Static, bearer_credential
from kubekit.kube.clock import ManualClock, SystemClock
from kubekit.oci.layers import Pick
from kubekit.oci.registry_errors import OciError
from kubekit.oci.signatures import MAX_SIGNATURE_BYTES
from runup.advice.control import prometheus, update_service
from runup.advice.control.prometheus import Prometheus
from runup.advice.control.update_service import UpdateService
from runup.advice.decide import promql
from runup.advice.decide.service import Query
from runup.facts import catalog_images as catalogs
from runup.facts.catalog_images import CatalogSelection, read_catalog
from runup.preflight.control.report_reader import ReportReader, read_file, read_up_to
from runup.preflight.decide.deployment_steps import Trust
from runup.preflight.decide.outcome import BadReportSeen
from runup.process import http_fetch, monitoring
from runup.process.ca_file import MAX_BYTES, Authorities
from runup.process.monitoring import Monitoring
from runup.release.control import signatures as signature_stores
from runup.release.control.signatures import bytes_of, fetch_signature, reason_of
from runup.report.report import MAX_BYTES as MAX_REPORT
from runup.updatestatus.control import alert_queries

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
async def api() -> AsyncIterator[ScriptedApi]:
    """A server to script."""
    async with scripted_api() as found:
        yield found


def redirect(status: int, place: str) -> Any:
    """An answer of that status that names a place."""

    async def handler(_request: server_side.Request) -> server_side.StreamResponse:
        return server_side.Response(status=status, headers={"Location": place} if place else {})

    return handler


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_every_sort_of_redirect_is_followed(api: ScriptedApi, status: int) -> None:
    """Where it names a place; else it is the answer."""
    api.answers(redirect(status, "/b"), sent(b"found"))
    assert (await http_fetch.fetch(f"{api.url}/a", within_s=60, limit=100)).body == b"found"
    api.answers(redirect(status, ""))
    assert (await http_fetch.fetch(f"{api.url}/a", within_s=60, limit=100)).status == status


@pytest.mark.parametrize("status", [201, 300, 304, 305])
async def test_what_is_no_redirect_is_an_answer(api: ScriptedApi, status: int) -> None:
    """Whatever place it names."""
    api.answers(redirect(status, "/b"))
    assert (await http_fetch.fetch(f"{api.url}/a", within_s=60, limit=100)).status == status
    assert len(api.requests) == 1


async def test_ten_redirects_are_followed_and_no_more(api: ScriptedApi) -> None:
    """The tenth leads to the page; of eleven the last is named, as far as a hundred characters go."""
    api.answers(*[redirect(302, f"/{number}") for number in range(10)], sent(b"found"))
    assert (await http_fetch.fetch(f"{api.url}/a", within_s=60, limit=100)).body == b"found"
    long = "x" * 300
    api.answers(redirect(302, f"/{long}"))
    with pytest.raises(aiohttp.ClientPayloadError) as caught:
        await http_fetch.fetch(f"{api.url}/a", within_s=60, limit=100)
    assert str(caught.value) == f"more than 10 redirects, the last to {f'{api.url}/{long}'[:100]}"


async def test_headers_go_along_with_every_request(api: ScriptedApi) -> None:
    """Those that were given, and no password in the clear."""
    api.answers(redirect(302, "/b"), sent(b"found"))
    await http_fetch.fetch(f"{api.url}/a", within_s=60, limit=100, headers={"Accept": "a/b"}, authorization="Bearer t")
    assert [request.headers["Accept"] for request in api.requests] == ["a/b"] * 2
    assert not any("Authorization" in request.headers for request in api.requests)


@pytest.mark.parametrize(
    ("place", "url", "same"),
    [
        pytest.param("https://a/x", "https://a/y", True, id="another page of it"),
        pytest.param("https://a:444/x", "https://a/x", False, id="another port"),
        pytest.param("https://b/x", "https://a/x", False, id="another host"),
        pytest.param("http://a/x", "https://a/x", False, id="in the clear"),
        pytest.param("http://a/x", "http://a/x", False, id="in the clear from the beginning"),
        pytest.param("https://a/x", "http://a/x", True, id="by TLS in the end"),
    ],
)
def test_who_may_have_the_password(place: str, url: str, same: bool) -> None:
    """The server that was named, over TLS."""
    assert http_fetch.is_same_server(place, url) is same


async def test_what_is_no_address_is_told_as_one(api: ScriptedApi) -> None:
    """Whoever redirects may write what no parser takes."""
    api.answers(redirect(302, "http://["))
    with pytest.raises(aiohttp.InvalidURL):
        await http_fetch.fetch(f"{api.url}/a", within_s=60, limit=100)
    with pytest.raises(aiohttp.InvalidURL):
        await http_fetch.fetch("http://[", within_s=60, limit=100)
    api.answers(redirect(302, "ftp://there/" + "x" * 200))
    with pytest.raises(aiohttp.ClientPayloadError) as caught:
        await http_fetch.fetch(f"{api.url}/a", within_s=60, limit=100)
    assert (
        str(caught.value)
        == f"a redirect to {('ftp://there/' + 'x' * 200)[:100]}, which is not an http or https address"
    )


async def test_an_address_that_nobody_may_lead_to_is_an_error_of_the_system(api: ScriptedApi) -> None:
    """Of permission."""
    api.answers(redirect(302, "http://169.254.169.254/"))
    with pytest.raises(OSError) as caught:
        await http_fetch.fetch(f"{api.url}/a", within_s=60, limit=100)
    assert caught.value.errno == errno.EACCES


@pytest.mark.parametrize(("size", "cut"), [(99, 99), (100, 100), (101, 101), (102, 101)])
async def test_how_much_of_a_page_is_read(api: ScriptedApi, size: int, cut: int) -> None:
    """One byte more than the limit at most."""
    api.answers(sent(b"x" * size))
    assert len((await http_fetch.fetch(api.url, within_s=60, limit=100)).body) == cut


@pytest.mark.parametrize(("size", "fits"), [(1000, True), (1001, False)])
async def test_how_long_an_answer_of_prometheus_may_be(
    api: ScriptedApi, monkeypatch: pytest.MonkeyPatch, size: int, fits: bool
) -> None:
    """As long as the limit; without a header that it would not know."""
    monkeypatch.setattr(monitoring, "MAX_BYTES", 1000)
    api.answers(sent(b"x" * size))
    server = Monitoring(f"{api.url}//", Static(bearer_credential("secret")), SystemClock(), asker="Test")
    assert server.url == api.url
    if fits:
        assert len(await server.get("/a", within_s=60)) == size
    else:
        with pytest.raises(aiohttp.ClientError, match="the answer is longer than 1000 bytes"):
            await server.get("/a", within_s=60)
    assert api.requests[0].headers["Accept"] == "application/json"
    assert api.requests[0].headers["User-Agent"].startswith("Test/")


@pytest.mark.parametrize(
    ("statuses", "code", "taken"),
    [
        pytest.param((200,), 200, True, id="well"),
        pytest.param((200,), 422, False, id="a refusal that is not wanted"),
        pytest.param(prometheus.ANSWERED, 422, True, id="one that says what is wrong with a query"),
        pytest.param(prometheus.ANSWERED, 400, True, id="another one"),
        pytest.param(prometheus.ANSWERED, 401, False, id="who asks"),
    ],
)
async def test_which_answers_of_prometheus_are_read(
    api: ScriptedApi, statuses: tuple[int, ...], code: int, taken: bool
) -> None:
    """It says what is wrong with a query in the body of a 400 or 422."""
    api.answers(reply({}, code))
    server = Monitoring(api.url, Static(), SystemClock(), asker="Test")
    if taken:
        assert await server.get("/a", within_s=60, statuses=statuses) == b"{}"
        return
    with pytest.raises(aiohttp.ClientError, match=f"unexpected HTTP status: {code}"):
        await server.get("/a", within_s=60, statuses=statuses)


def test_why_in_words() -> None:
    """Whom was asked; an error without words by its name."""
    server = Monitoring("http://there", Static(), SystemClock(), asker="Test")
    assert server.why("/a", TimeoutError()) == "http://there/a: TimeoutError"
    assert server.why("", ValueError("no")) == "http://there: no"


def test_what_each_may_send_at_most() -> None:
    """8 MiB of alerts, 1 of a rule, a graph of 16, a certificate bundle of 256 KiB, a file of a catalog of 32 MiB."""
    mib = 1 << 20
    assert (8 * mib, mib, 16 * mib, mib // 4) == (
        monitoring.MAX_BYTES,
        promql.MAX_BYTES,
        update_service.MAX_BYTES,
        MAX_BYTES,
    )
    assert (32 * mib, 512 * mib) == (catalogs.MAX_FILE_BYTES, catalogs.MAX_CATALOG_BYTES)


def test_what_the_monitoring_is_asked_at_most() -> None:
    """Eight queries at once, none longer than half a minute, alerts by themselves no longer than twenty seconds."""
    assert (prometheus.AT_ONCE, prometheus.TIMEOUT_S, prometheus.TELL_S) == (8, 30, 1)
    assert alert_queries.TIMEOUT_S == 20


@pytest.mark.parametrize(("size", "fits"), [(20, True), (21, False)])
async def test_how_long_a_graph_may_be(
    api: ScriptedApi, monkeypatch: pytest.MonkeyPatch, size: int, fits: bool
) -> None:
    """As long as the limit; a longer one is an answer that could not be had."""
    monkeypatch.setattr(update_service, "MAX_BYTES", 20)
    api.answers(sent(b"{}".ljust(size)))
    service, answered = (
        UpdateService(SystemClock(), lambda: None),
        Query(url=api.url, channel="c", architecture="amd64", cluster_id="id", version="5.0.0"),
    )
    service.ask(answered)
    await until(lambda: not service.state.asking)
    failure = service.state.failure
    assert (failure.reason if failure else "") == ("" if fits else "RemoteFailed")
    assert ("the answer is longer than 20 bytes" in (failure.message if failure else "")) is not fits
    assert (service.state.asking, service.state.succeeded_at is not None) == (False, fits)


@pytest.mark.parametrize(
    ("alert_age_s", "again"),
    [pytest.param(29, False, id="not before half a minute"), pytest.param(30, True, id="then")],
)
async def test_how_often_alerts_are_asked_for(alert_age_s: int, again: bool) -> None:
    """By the clock on the wall; one that was set back is no reason to wait."""
    async with asking() as (_played, asks, clock, _changed):
        answered = []
        for passed_s in (0.0, alert_age_s, -alert_age_s - 1):
            clock.jump(passed_s)
            asks.want([])
            answered.append(len(rounds()))
            await until(quiet)
        assert answered == [1, 1 if again else 0, 1]
        without = Prometheus("http://127.0.0.1:9", Static(), clock, lambda: None, alerts=False)
        without.want([])
        assert rounds() == []


async def test_the_longest_without_an_answer_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was never asked before all others; one at a time, or the server might read the second before the first."""
    monkeypatch.setattr(prometheus, "AT_ONCE", 1)
    async with asking() as (played, asks, clock, _changed):
        played.go.set()
        asks.want(["older"])
        await until(quiet)
        clock.jump(5)
        asks.want(["older", "old"])
        await until(quiet)
        clock.jump(60)
        played.asked.clear()
        asks.want(("old", "new", "older"))
        await until(quiet)
        assert played.asked == ["new", "older", "old"]


@pytest.mark.slow
async def test_whoever_is_told_is_told_at_once_where_all_is_known() -> None:
    """And as often as there are answers while others are still waited for; a second round asks nobody twice."""
    async with asking() as (played, asks, _clock, changed):
        asks.want(["q"])
        await until(lambda: played.open == 1)
        first = rounds()
        asks.want(["q"])
        assert rounds() == first
        await asyncio.wait_for(changed.wait(), 90)  # the alerts, which are there already
        assert "q" not in asks.state.answers
        changed.clear()
        played.go.set()
        await asyncio.wait_for(changed.wait(), 90)
        assert asks.state.answers["q"].applies is True
        assert asks.state.alerting.at == _clock.now()


async def test_prometheus_is_told_of_by_its_flag() -> None:
    """`configured` says whether there is one to ask."""
    assert not Prometheus("", Static(), ManualClock(), lambda: None).state.configured
    assert Prometheus("http://there", Static(), ManualClock(), lambda: None).state.configured


@pytest.mark.parametrize(("size", "fits"), [(MAX_BYTES, True), (MAX_BYTES + 1, False)])
def test_how_long_a_bundle_may_be(tmp_path: Path, size: int, fits: bool) -> None:
    """As long as the limit; a longer one is reported with its size."""
    file = tmp_path / "ca.crt"
    file.write_text("x" * size)
    with capture_logs() as logs:
        assert len(Authorities(str(file)).pem()) == (size if fits else 0)
    assert [line["error"] for line in logs] == ([] if fits else [f"it has {size} bytes; {MAX_BYTES} at most are read"])


def test_a_bundle_s_trouble_is_told_again_when_it_comes_back(tmp_path: Path) -> None:
    """Once each time, and when it is another one."""
    file = tmp_path / "ca.crt"
    authorities = Authorities(str(file))
    with capture_logs() as logs:
        for text in (None, None, b"\xff", b"good", None):
            file.unlink(missing_ok=True)
            if text is not None:
                file.write_bytes(text)
            authorities.pem()
    said = [line["error"] for line in logs]
    assert ["No such file" in each for each in said] == [True, False, True]
    assert authorities.pem() == "good"


@pytest.mark.parametrize(
    ("path", "reads"),
    [
        pytest.param("configs/a/catalog.json", True, id="a file of the package"),
        pytest.param("configs/a/deep/catalog.yaml", True, id="deeper"),
        pytest.param("configs/a/index.yml", True, id="by another ending"),
        pytest.param("configs/a/README.md", False, id="of an ending that is not known"),
        pytest.param("configs/a/catalog", False, id="without an ending"),
        pytest.param("configs/.indexignore", True, id="what says which files do not count"),
        pytest.param("configs/other/.indexignore", True, id="the same of another folder, which is not chosen for it"),
        pytest.param("configs/a.json", False, id="in no folder of its own"),
    ],
)
def test_which_files_of_a_catalog_are_read(path: str, reads: bool) -> None:
    """Those of the packages that are looked for, and of one other for how folders are called."""
    choice = CatalogSelection(frozenset({"a"}))
    assert choice.reads(path) is reads
    assert choice.specimen == ""
    assert choice.reads("configs/b/catalog.json")
    assert choice.reads("configs/b/more.json")
    assert not choice.reads("configs/c/catalog.json")
    assert choice.specimen == "b"


def folders(files: dict[str, bytes]) -> Any:
    """Reads those of these files that are wanted."""

    def read(roots: tuple[str, ...], pick: Pick) -> dict[str, bytes]:
        assert roots == ("configs",)
        return {path: pick.keeps(path, data) if pick.reads(path) else b"" for path, data in files.items()}

    return read


def package(name: str) -> bytes:
    """The file of a package."""
    return json.dumps({"schema": "olm.package", "name": name, "defaultChannel": "stable"}).encode()


def unread(path: str) -> str:
    """What is said about a file that may have any package."""
    return f"its file {path} was not read and may have a part of any package, so that what it has of a is not known"


def leaves_out(path: str) -> str:
    """What is said about a file whose patterns are not followed."""
    return (
        f"its file {path} has patterns of what to leave out, which are not followed here, so that what it has of a is "
        "not known"
    )


ELSEWHERE = "its packages are not all in folders of their names, so that what it has of a is not known"


@pytest.mark.parametrize(
    ("files", "found", "problem"),
    [
        pytest.param({"configs/a/c.json": package("a")}, ["a"], "", id="it is there"),
        pytest.param(
            {"configs/a/c.json": package("a"), "configs/b/c.json": package("b")}, ["a"], "", id="and another one"
        ),
        pytest.param({"configs/b/c.json": package("b")}, [], "", id="it is not, and others are where they should be"),
        pytest.param(
            {"configs/b/c.json": package("b"), "configs/c/c.json": package("c")},
            [],
            "",
            id="it is not, nor was all read",
        ),
        pytest.param({"configs/team/c.json": package("b")}, [], "", id="it is not, and all was read"),
        pytest.param(
            {"configs/team/c.json": package("b"), "configs/team/README.md": b"", "configs/.indexignore": b""},
            [],
            unread("configs/team/README.md"),
            id="a file of an ending that is not known was not read",
        ),
        pytest.param(
            {"configs/team/c.json": package("a"), "configs/.indexignore": b""}, ["a"], "", id="all but what says so"
        ),
        pytest.param(
            {"configs/one/c.json": package("b"), "configs/two/c.json": package("a")}, [], ELSEWHERE, id="elsewhere"
        ),
        pytest.param(
            {"configs/one/c.json": package("a"), "configs/two/c.json": package("b")},
            [],
            ELSEWHERE,
            id="it is there by chance, and the other folder may have more of it",
        ),
        pytest.param(
            {"configs/a/c.json": package("a"), "configs/one/c.json": package("b"), "configs/two/c.json": package("c")},
            [],
            ELSEWHERE,
            id="in its own folder, and another is not",
        ),
        pytest.param(
            {"configs/a/c.json": package("d"), "configs/b/c.json": package("b"), "configs/c/c.json": package("c")},
            [],
            ELSEWHERE,
            id="its folder has another one",
        ),
        pytest.param(
            {"configs/a/c.json": b"", "configs/b/c.json": package("b"), "configs/c/c.json": package("c")},
            [],
            ELSEWHERE,
            id="its folder has nothing",
        ),
        pytest.param(
            {"configs/b/c.json": package("b") + package("c"), "configs/d/c.json": package("d")},
            [],
            ELSEWHERE,
            id="a folder has its own and another one",
        ),
        pytest.param(
            {"configs/b/c.json": package("b"), "configs/more.json": package("a")},
            [],
            unread("configs/more.json"),
            id="a file is beside the folders",
        ),
        pytest.param(
            {"configs/b/c.json": package("b"), "configs/catalog": package("a")},
            [],
            unread("configs/catalog"),
            id="a file without an ending is beside the folders",
        ),
        pytest.param(
            {"configs/b/c.json": package("b"), "configs/a/catalog": package("a")},
            [],
            unread("configs/a/catalog"),
            id="its folder has a file without an ending",
        ),
        pytest.param(
            {"configs/a/c.json": package("a"), "configs/a/deep/more.json.old": b"", "configs/b/c.json": package("b")},
            [],
            unread("configs/a/deep/more.json.old"),
            id="it is there, and an unread file may have more of it",
        ),
        pytest.param(
            {"configs/b/c.json": package("b"), "configs/b/more": package("a"), "configs/d/c.json": package("d")},
            [],
            unread("configs/b/more"),
            id="the other folder that is read has an unread file",
        ),
        pytest.param(
            {"configs/a/c.json": package("a"), "configs/b/c.json": package("b"), "configs/d/more": package("d")},
            ["a"],
            "",
            id="an unread file is in a folder that is not read anyway",
        ),
        pytest.param({"configs/d/more": package("d")}, [], ELSEWHERE, id="nothing was read"),
        pytest.param(
            {"configs/.indexignore": b"# none\n", "configs/b/c.json": package("b"), "configs/d/c.json": package("d")},
            [],
            "",
            id="nothing is left out",
        ),
        pytest.param(
            {"configs/.indexignore": b"a", "configs/a/c.json": package("a"), "configs/b/c.json": package("b")},
            [],
            leaves_out("configs/.indexignore"),
            id="it is there, and left out",
        ),
        pytest.param(
            {"configs/a/.indexignore": b"*", "configs/a/c.json": package("a")},
            [],
            leaves_out("configs/a/.indexignore"),
            id="it is left out in its own folder, and all was read",
        ),
        pytest.param(
            {"configs/b/c.json": package("b"), "configs/b/deep/.indexignore": b"*", "configs/d/c.json": package("d")},
            [],
            leaves_out("configs/b/deep/.indexignore"),
            id="something is left out in the other folder that is read",
        ),
        pytest.param(
            {"configs/b/c.json": package("b"), "configs/d/.indexignore": b"*", "configs/d/c.json": package("d")},
            [],
            "",
            id="something is left out where nobody reads",
        ),
        pytest.param({}, [], "it is not a file-based catalog: it has no folder configs", id="nothing"),
        pytest.param({"configs/a/catalog.json": b""}, [], "it has no package", id="an empty file"),
        pytest.param({"configs/a/catalog.yaml": b"# of nobody\n"}, [], "it has no package", id="only comments"),
    ],
)
def test_what_a_catalog_has_of_the_packages_that_are_looked_for(
    files: dict[str, bytes], found: list[str], problem: str
) -> None:
    """Or why that is not known."""
    catalog = read_catalog("i", frozenset({"a"}), folders(files))
    assert (list(catalog.packages), catalog.looked_for, catalog.image) == (found, {"a"}, "i")
    assert catalog.problem.startswith(problem)
    assert bool(catalog.problem) is bool(problem)


@pytest.mark.parametrize(
    ("packages", "problem"),
    [
        pytest.param("ab", ELSEWHERE.replace("of a is", "of a, b is"), id="both"),
        pytest.param("a", ELSEWHERE, id="the one that is in the folder that is read"),
        pytest.param("b", ELSEWHERE.replace("of a is", "of b is"), id="the other one"),
    ],
)
def test_a_package_that_is_found_by_chance_proves_no_layout(packages: str, problem: str) -> None:
    """The one folder that was read happened to have it; package b was said to be absent, and is in the other one."""
    files = {"configs/team1/a.json": package("a"), "configs/team2/b.json": package("b")}
    catalog = read_catalog("i", frozenset(packages), folders(files))
    assert (catalog.problem, list(catalog.packages)) == (problem, [])


def test_a_catalog_that_cannot_be_read_says_why() -> None:
    """In the registry's words."""

    def fails(_roots: tuple[str, ...], _pick: Pick) -> dict[str, bytes]:
        raise OciError("no such image")

    assert read_catalog("i", frozenset({"a"}), fails).problem == "no such image"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        pytest.param(200, b"{}", id="there"),
        pytest.param(399, b"{}", id="an odd answer that is none of an error"),
        pytest.param(404, None, id="not there"),
    ],
)
async def test_a_signature_of_a_web_server(api: ScriptedApi, code: int, expected: bytes | None) -> None:
    """Or that there is none."""
    api.answers(reply({}, code))
    assert await fetch_signature(f"{api.url}/s", None, Egress()) == expected


@pytest.mark.parametrize("code", [400, 403, 500])
async def test_a_web_server_that_refuses_a_signature(api: ScriptedApi, code: int) -> None:
    """Is told by its status."""
    api.answers(reply({}, code))
    with pytest.raises(aiohttp.ClientPayloadError, match=f"unexpected HTTP status: {code}"):
        await fetch_signature(f"{api.url}/s", None, Egress())


async def test_a_signature_on_disk(tmp_path: Path) -> None:
    """Read one byte beyond the limit, so that what is too large shows; a space in its name is none in the address."""
    file = tmp_path / "a b"
    file.write_bytes(b"x" * (MAX_SIGNATURE_BYTES + 100))
    found = await fetch_signature(file.as_uri(), None, Egress())
    assert found is not None
    assert len(found) == MAX_SIGNATURE_BYTES + 1
    assert await fetch_signature((tmp_path / "other").as_uri(), None, Egress()) is None


@pytest.mark.parametrize(
    ("error", "said"),
    [
        pytest.param(TimeoutError(), "no answer within 30 s", id="no answer"),
        pytest.param(ValueError(), "ValueError()", id="an error without words"),
        pytest.param(TimeoutError("late"), "late", id="its own words"),
    ],
)
def test_why_a_store_did_not_answer(error: Exception, said: str) -> None:
    """Never nothing."""
    assert reason_of(error) == said
    assert signature_stores.TIMEOUT_S == 30


def test_a_value_of_binary_data() -> None:
    """As the API writes it, or as it is."""
    assert bytes_of(base64.b64encode(b"x").decode()) == bytes_of(b"x") == b"x"


async def test_signatures_of_other_digests_in_a_config_map_are_passed_over(api: ScriptedApi) -> None:
    """Those of this one count, in the order of their keys."""
    async with scripted_api() as cluster:
        cluster.answers(reply(config_maps(**{f"sha256_{'b' * 64}_1": b"odd", f"sha256_{'a' * 64}_2": GOOD})))
        assert (await checked(cluster, [])).trust is Trust.VERIFIED
        cluster.answers(reply(config_maps(**{f"sha256_{'b' * 64}_1": GOOD})))
        found = await checked(cluster, [])
    assert found.trust is Trust.FAILED
    assert "sha256-b" not in found.error


async def test_a_store_s_address_may_end_with_a_slash(api: ScriptedApi) -> None:
    """One is enough."""
    async with scripted_api() as cluster:
        cluster.answers(reply(config_maps()))
        api.answers(sent(GOOD))
        assert (await checked(cluster, [f"{api.url}/s/"])).trust is Trust.VERIFIED
    assert api.targets == [f"GET /s/{DIGEST.replace(':', '=')}/signature-1"]


@pytest.mark.parametrize(
    ("size", "reason"),
    [
        pytest.param(MAX_REPORT, "ReportInvalid", id="the most"),
        pytest.param(MAX_REPORT + 1, "ReportTooLarge", id="more"),
    ],
)
def test_how_long_a_report_may_be(tmp_path: Path, size: int, reason: str) -> None:
    """No more of it is read than shows that it is too long."""
    path = tmp_path / "report.json"
    path.write_bytes(b"x" * size)
    seen = read_file(path, "id", ManualClock()).content
    assert isinstance(seen, BadReportSeen)
    assert seen.reason == reason


def test_a_file_is_read_in_as_many_parts_as_it_takes(tmp_path: Path) -> None:
    """Up to a limit, which one part may reach exactly."""
    reader, writer = os.pipe()
    os.write(writer, b"abcdef")
    assert read_up_to(reader, 4) == b"abcd"
    assert read_up_to(reader, 0) == b""
    os.close(writer)
    assert read_up_to(reader, 10) == b"ef"
    os.close(reader)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        pytest.param(lambda path: None, "the report could not be read: No such file or directory", id="no folder"),
        pytest.param(lambda path: path.parent.mkdir(), "the report could not be read: No such file", id="no file"),
        pytest.param(
            lambda path: (path.parent.mkdir(), path.symlink_to("/etc/hostname")),
            "the report is a symbolic link",
            id="a link",
        ),
        pytest.param(
            lambda path: (path.parent.mkdir(), path.mkdir()), "the report is not a regular file", id="a folder"
        ),
        pytest.param(
            lambda path: path.parent.symlink_to("/tmp"), "the report could not be read: ", id="a folder that is a link"
        ),
    ],
)
def test_what_is_said_of_what_is_no_report(tmp_path: Path, make: Any, said: str) -> None:
    """In the system's words, or ours."""
    path = tmp_path / "folder" / "report.json"
    make(path)
    seen = read_file(path, "id", ManualClock()).content
    assert isinstance(seen, BadReportSeen)
    assert seen.message.startswith(said)


async def test_a_report_that_is_followed_is_looked_at_25_times_a_second(tmp_path: Path) -> None:
    """Waiters hear of a new one, and of no other look."""
    clock, answered = ManualClock(), list[float]()
    reader = ReportReader(tmp_path, clock, lambda: answered.append(clock.monotonic()))
    reader.follow("id")
    running = asyncio.create_task(reader.run())
    await clock.advance(0.1)
    (tmp_path / "id").mkdir()
    (tmp_path / "id" / "report.json").write_bytes(b"{}")
    await clock.advance(1)
    running.cancel()
    assert answered == [pytest.approx(0.12)]
    assert not reader.poll()
    reader.follow("")
    assert not reader.poll()
