"""The folder of kept reports: by cluster and time, nothing twice, nothing lost, whatever a cluster is called."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from kubekit.error_types import Terminal
from runup.preflight.control import report_store as store
from runup.report.report import FORMAT, Report, ReportedRisk

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
REPORT = Report(
    format=FORMAT,
    source_version="4.15.3",
    target_version="4.16.0",
    execution_status="completed",
    observed_time=NOON,
    risks=(ReportedRisk(name="Ack", message="so"),),
)


def test_what_is_kept_is_read_again(tmp_path: Path) -> None:
    """The oldest first, by when the cluster was so, not by when the file was written."""
    later = replace(REPORT, observed_time=NOON + timedelta(days=1), risks=())
    store.keep(tmp_path / "new", "a", later, NOON + timedelta(days=1))
    store.keep(tmp_path / "new", "a", REPORT, NOON + timedelta(days=2))
    assert [each.report() for each in store.reports_of(tmp_path / "new", "a")] == [REPORT, later]
    assert store.reports_of(tmp_path / "new", "b") == ()


NAMES = ["a/b:6443/admin", "..", ".hidden", "a" * 300, "a" * 299 + "b", "harbour", "Harbour?", "", "ö"]


def test_every_name_has_a_folder_of_its_own(tmp_path: Path) -> None:
    """None leads out of the store, none is that of another cluster, and all are reported by their own names."""
    for name in NAMES:
        file = store.keep(tmp_path, name, REPORT, NOON)
        assert file.parent.parent == tmp_path
    assert len(list(tmp_path.iterdir())) == len(NAMES)
    assert set(store.clusters_in(tmp_path)) >= {name for name in NAMES if name}
    assert all(len(store.reports_of(tmp_path, name)) == 1 for name in NAMES)


def test_a_dump_that_is_judged_again_is_kept_once(tmp_path: Path) -> None:
    """Its own time is the same; another result is kept next to the first, and is the newer one."""
    first = store.keep(tmp_path, "a", REPORT, NOON)
    assert store.keep(tmp_path, "a", replace(REPORT, engine_version="9.9.9"), NOON + timedelta(hours=1)) == first
    other = replace(REPORT, risks=())
    store.keep(tmp_path, "a", other, NOON + timedelta(hours=2))
    assert [each.report() for each in store.reports_of(tmp_path, "a")] == [REPORT, other]


def test_the_newest_until_a_time_and_of_a_target(tmp_path: Path) -> None:
    """None where it does not exist."""
    store.keep(tmp_path, "a", REPORT, NOON)
    further = replace(REPORT, target_version="4.17.0", observed_time=NOON + timedelta(days=1))
    store.keep(tmp_path, "a", further, NOON + timedelta(days=1))
    kept = store.reports_of(tmp_path, "a")

    def found(until: datetime | None = None, target: str = "") -> Report | None:
        newest = store.newest(kept, until, target)
        return newest.report() if newest else None

    assert found() == further
    assert found(target="4.16.0") == REPORT
    assert found(NOON + timedelta(hours=1)) == REPORT
    assert found(NOON) is None


def test_no_report_is_read_through_a_link_out_of_the_store(tmp_path: Path) -> None:
    """It could lead to a file that only the reader may read; the link is named, and does not count as a report."""
    file = store.keep(tmp_path / "store", "a", REPORT, NOON)
    file.rename(tmp_path / "outside.json")
    file.symlink_to(tmp_path / "outside.json")
    (kept,) = store.reports_of(tmp_path / "store", "a")
    with pytest.raises(Terminal, match="a link that leads out of") as caught:
        kept.report()
    assert str(file) in caught.value.message


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    """A file that is no report is named when it is read, and one of another name is not read at all."""
    file = store.keep(tmp_path, "a", REPORT, NOON)
    (file.parent / "notes.json").write_text("{}")
    file.write_text("{")
    (kept,) = store.reports_of(tmp_path, "a")
    with pytest.raises(Terminal, match="is not a JSON object"):
        kept.report()


def test_a_store_that_cannot_be(tmp_path: Path) -> None:
    """The folder is named."""
    with pytest.raises(Terminal, match=r"--store .*nowhere: there is no such folder; a run with --store makes it"):
        store.clusters_in(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(Terminal, match=r"--store .*file: Not a directory; name a folder that you may write to"):
        store.keep(tmp_path / "file", "a", REPORT, NOON)
