"""Reports in a ConfigMap of the cluster: what is refused before anything is read, what goes, who comes too late."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

import pytest
from msgspec.structs import replace
from tests.preflight.control.test_report_store import NOON, REPORT
from tests.servers import Server

from kubekit.api.core_v1 import ConfigMap
from kubekit.error_types import Terminal
from kubekit.kube import calls, config
from kubekit.kube.api_errors import NotFound
from kubekit.kube.clock import SystemClock
from runup.evaluation import results
from runup.evaluation.evaluate import EvaluatedCluster
from runup.preflight.control import kept_reports, report_store
from runup.preflight.control.config_map_store import ConfigMapStore
from runup.preflight.control.kept_reports import HistorySink
from runup.preflight.decide import newest_report, packed_reports
from runup.preflight.decide.cluster_run import CONFIG_MAP, NAMESPACE, namespace_object
from runup.preflight.decide.packed_reports import MAX_REPORTS
from runup.report.report import encode

HOUR = timedelta(hours=1)


@pytest.fixture
def cluster(server: Server) -> Iterator[Server]:
    """A cluster with no ConfigMap of that name."""

    def remove() -> None:
        with suppress(NotFound):
            server.client.send(calls.delete(CONFIG_MAP, "kept", "default"))

    remove()
    yield server
    remove()


def store(server: Server, place: str = "default/kept") -> ConfigMapStore:
    """The store of that name."""
    return ConfigMapStore(place, lambda: config.load(str(server.kubeconfig)))


def test_whether_it_can_be_written_is_asked_of_the_server(cluster: Server) -> None:
    """Which makes nothing, before the first report and after it."""
    store(cluster).check()
    with pytest.raises(Terminal, match="there is no such ConfigMap; a run with --store makes it"):
        store(cluster).clusters()
    store(cluster).keep("a", REPORT, NOON)
    before = cluster.client.send(calls.get_raw(CONFIG_MAP, "kept", "default"))
    store(cluster).check()
    assert cluster.client.send(calls.get_raw(CONFIG_MAP, "kept", "default")) == before


def test_the_oldest_reports_go_and_that_is_said(cluster: Server) -> None:
    """By who added the new one, and to anybody who reads it later."""
    full = packed_reports.empty_config_map("default", "kept")
    keys = [packed_reports.free_key("a", NOON + number * HOUR, NOON, ()) for number in range(MAX_REPORTS)]
    value = packed_reports.pack(b'{"cluster": "a"}')
    full["binaryData"] = {key: packed_reports.codec.to_dict(value) for key in keys}
    cluster.client.send(calls.create(CONFIG_MAP, full))
    mine, later = store(cluster), NOON + 1000 * HOUR
    mine.keep("b", replace(REPORT, observed_time=later), later)
    mine.keep("b", replace(REPORT, observed_time=later + HOUR), later)
    (said,) = mine.notes()
    limits = "--store configmap:default/kept: a ConfigMap holds 200 reports and 900 KiB; the 2 oldest"
    assert said == f"{limits} had to go for it, the newest of 2026-11-23 13:00Z"
    other = store(cluster)
    assert other.clusters() == ("a", "b")
    assert len(other.reports_of("a")) == MAX_REPORTS - 2
    assert other.notes() == (f"{limits} are not there any more, the newest of 2026-11-23 13:00Z",)


def test_a_report_without_room_costs_the_others_nothing(cluster: Server) -> None:
    """It is named with its cluster; those behind it are kept."""
    full = packed_reports.empty_config_map("default", "kept")
    value = packed_reports.codec.to_dict(packed_reports.pack(b'{"cluster": "a"}'))
    keys = [packed_reports.free_key("a", NOON + number * HOUR, NOON, ()) for number in range(MAX_REPORTS)]
    full["binaryData"] = dict.fromkeys(keys, value)
    cluster.client.send(calls.create(CONFIG_MAP, full))
    later = NOON + 1000 * HOUR
    moments = {"before": later, "old": NOON - HOUR, "after": later + HOUR}
    keeper = results.ReportKeeper(store(cluster), "", later)
    for name, moment in moments.items():
        evaluated = EvaluatedCluster(where=name, report=replace(REPORT, observed_time=moment))
        keeper.keep(name, evaluated, of_dump=True)
    (problem,) = keeper.problems
    assert problem.startswith("--store configmap:default/kept: old: the report takes 1 KiB packed, and newer ones fill")
    assert store(cluster).clusters() == ("a", "after", "before")


def test_a_report_that_was_damaged_is_named(cluster: Server) -> None:
    """And costs no other one."""
    store(cluster).keep("a", REPORT, NOON)
    key = packed_reports.free_key("a", NOON + HOUR, NOON, ())
    cluster.client.send(calls.merge_patch(CONFIG_MAP, "kept", {"binaryData": {key: "e30="}}, "default"))
    mine = store(cluster)
    assert mine.clusters() == ("", "a")
    assert [each.report() for each in mine.reports_of("a")] == [REPORT]
    with pytest.raises(Terminal, match=rf"configmap:default/kept: {key}: it is not packed by gzip"):
        mine.reports_of("")[0].report()


@pytest.mark.parametrize("place", ["", "kept", "default/", "/kept", "default/kept/x", "Default/kept", "default/../x"])
def test_a_name_that_is_none(place: str) -> None:
    """With the form that it should have."""
    with pytest.raises(Terminal, match=f"--store configmap:{place}: names no ConfigMap; give configmap:NAMESPACE/NAME"):
        ConfigMapStore(place, config.load)


def test_a_config_map_of_somebody_else(cluster: Server) -> None:
    """Is neither read nor written."""
    cluster.client.send(calls.create(CONFIG_MAP, {"metadata": {"name": "kept", "namespace": "default"}}))
    for asked in (store(cluster).check, store(cluster).clusters, lambda: store(cluster).keep("a", REPORT, NOON)):
        with pytest.raises(Terminal, match="is not a store of runup's; name a ConfigMap that runup has made"):
            asked()


def test_a_namespace_that_is_not_there(cluster: Server) -> None:
    """The command that makes it is reported."""
    with pytest.raises(Terminal, match=r'"nowhere" not found; make it first: kubectl create namespace nowhere'):
        store(cluster, "nowhere/kept").check()


def test_a_scheduled_run_keeps_every_report(cluster: Server) -> None:
    """Of one update too, of which the first ConfigMap has the newest alone; by the name that the schedule says."""
    cluster.client.send(
        calls.apply(namespace_object().resource, namespace_object().object, field_manager="test", force=True)
    )
    for name in (kept_reports.NAME, packed_reports.SERIES):
        with suppress(NotFound):
            cluster.client.send(calls.delete(CONFIG_MAP, name, NAMESPACE))
    kept_reports.ensure(cluster.client)
    kept_reports.ensure_series(cluster.client)
    reports = [replace(REPORT, preflight_id=f"run-{n}", observed_time=NOON + n * HOUR) for n in range(3)]
    for report in reports:
        sink = HistorySink(config.load(str(cluster.kubeconfig)), SystemClock(), "harbour")
        sink.write(encode(report))
        assert sink.not_in_series == ""
    series = store(cluster, f"{NAMESPACE}/{packed_reports.SERIES}")
    assert series.clusters() == ("harbour",)
    assert [each.report().preflight_id for each in series.reports_of("harbour")] == ["run-0", "run-1", "run-2"]
    newest = report_store.newest(series.reports_of("harbour"), NOON + HOUR)
    assert newest is not None
    assert newest.report().preflight_id == "run-0"


def test_a_schedule_of_an_earlier_runup_has_no_such_config_map(cluster: Server) -> None:
    """Its result counts all the same, and the log says what is missing."""
    cluster.client.send(
        calls.apply(namespace_object().resource, namespace_object().object, field_manager="test", force=True)
    )
    kept_reports.ensure(cluster.client)
    taken = {"metadata": {"name": packed_reports.SERIES, "namespace": NAMESPACE}}
    with suppress(NotFound):
        cluster.client.send(calls.delete(CONFIG_MAP, packed_reports.SERIES, NAMESPACE))
    cluster.client.send(calls.create(CONFIG_MAP, taken))
    sink = HistorySink(config.load(str(cluster.kubeconfig)), SystemClock())
    sink.write(encode(replace(REPORT, preflight_id="run-9")))
    assert sink.last is not None
    assert sink.last.id == "run-9"
    assert "is not a store of runup's" in sink.not_in_series
    cluster.client.send(calls.delete(CONFIG_MAP, packed_reports.SERIES, NAMESPACE))


def test_a_report_that_travels(cluster: Server) -> None:
    """The newest one is in a separate ConfigMap, a failed one as well; nobody but the add-on makes that."""
    cluster.client.send(
        calls.apply(namespace_object().resource, namespace_object().object, field_manager="test", force=True)
    )
    with suppress(NotFound):
        cluster.client.send(calls.delete(CONFIG_MAP, newest_report.NAME, NAMESPACE))
    kept_reports.ensure(cluster.client)
    before = kept_reports.read_kept(cluster.client)
    sink = HistorySink(config.load(str(cluster.kubeconfig)), SystemClock(), "harbour", newest=True)
    with pytest.raises(OSError, match=r"preflight-newest: .*; the add-on of `runup fleet addon` creates it"):
        sink.write(encode(REPORT))
    assert kept_reports.read_kept(cluster.client) == before
    cluster.client.send(calls.create(CONFIG_MAP, newest_report.empty_config_map()))
    failed = replace(REPORT, execution_status="failed", message="no route to the server")
    for report in (REPORT, failed):
        sink.write(encode(report))
        kept = cluster.client.send(calls.get(ConfigMap, newest_report.NAME, NAMESPACE))
        value = b64encode(kept.binary_data[newest_report.REPORT]).decode()
        assert newest_report.unpack(value).execution_status == report.execution_status
    assert "not evaluated: no route" in kept.data[newest_report.SUMMARY]
    cluster.client.send(calls.delete(CONFIG_MAP, newest_report.NAME, NAMESPACE))


def test_whoever_may_not_write_it_is_told(cluster: Server) -> None:
    """As an error of that ConfigMap, with the way out where it is not there: a run ends by a sentence."""
    cluster.client.send(
        calls.apply(namespace_object().resource, namespace_object().object, field_manager="test", force=True)
    )
    everything = config.load(str(cluster.kubeconfig))
    nothing = replace(everything, headers=(("Impersonate-User", "nobody"),))
    with pytest.raises(Terminal, match=r"--store configmap:default/kept: .* is forbidden: "):
        ConfigMapStore("default/kept", lambda: nothing).keep("a", REPORT, NOON)
    for name in (kept_reports.NAME, newest_report.NAME):
        with suppress(NotFound):
            cluster.client.send(calls.delete(CONFIG_MAP, name, NAMESPACE))
    for rights, newest, said in (
        (everything, False, rf"^ConfigMap {NAMESPACE}/{kept_reports.NAME}: .* not found; `runup preflight schedule` "),
        (nothing, False, rf"^ConfigMap {NAMESPACE}/{kept_reports.NAME}: .* is forbidden: "),
        (nothing, True, rf"^ConfigMap {NAMESPACE}/{newest_report.NAME}: .* is forbidden: "),
    ):
        with pytest.raises(OSError, match=said) as raised:
            HistorySink(rights, SystemClock(), newest=newest).write(encode(REPORT))
        assert ("creates it" in str(raised.value)) is (rights is everything)
    kept_reports.ensure(cluster.client)
