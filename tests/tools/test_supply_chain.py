"""Licences and known vulnerabilities of what runup installs."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tools import advisories, licences

NOW = datetime(2026, 11, 23, tzinfo=UTC)
LOCK = "Some_Package==1.4.0 \\\n    --hash=sha256:aa\n    # via other\nother==2.0 ; python_version > '3'\n"


@pytest.mark.slow
def test_every_licence_is_told_and_fits(capsys: pytest.CaptureFixture[str]) -> None:
    """Of each package of the lock file."""
    assert licences.main() == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) - 1 == (licences.ROOT / "requirements.lock").read_text(encoding="utf-8").count("==")
    assert "aiohttp                      Apache-2.0 AND MIT" in shown


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        ("MIT", True),
        ("Apache-2.0 OR BSD-3-Clause", True),
        ("MPL-2.0 AND (Apache-2.0 OR MIT)", True),
        ("GPL-3.0-only", False),
        ("MIT AND GPL-3.0-only", False),
        ("(Apache-2.0 OR GPL-2.0-only) AND Zlib", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("Company's own", False),
        ("", False),
    ],
)
def test_which_licences_fit(expression: str, fits: bool) -> None:
    """Permissive ones and weak copyleft; not what nobody knows."""
    assert licences.is_compatible(expression) is fits


def database(folder: Path, **changes: Any) -> Path:
    """A zip with one advisory about 1.2 to 1.4.1 of a package, as OSV has them."""
    affected = {
        "package": {"ecosystem": "PyPI", "name": "some-package"},
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "1.2"}, {"fixed": "1.4.1"}]}],
    }
    advisory = {"id": "PYSEC-1", "modified": "2026-11-20T00:00:00Z", "summary": "Bad.", "affected": [affected]}
    path = folder / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("PYSEC-1.json", json.dumps(advisory | changes))
    return path


def _affected(**changes: Any) -> list[dict[str, Any]]:
    return [{"package": {"ecosystem": "PyPI", "name": "some-package"}, **changes}]


def _events(*events: dict[str, str]) -> list[dict[str, Any]]:
    return _affected(ranges=[{"type": "ECOSYSTEM", "events": list(events)}])


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        pytest.param({}, 1, id="in the range"),
        pytest.param({"withdrawn": "2026-11-21T00:00:00Z"}, 0, id="withdrawn"),
        pytest.param({"affected": _affected(versions=["1.4.0"])}, 1, id="named"),
        pytest.param({"affected": _affected(versions=["1.4"])}, 0, id="another is named"),
        pytest.param({"affected": _events({"introduced": "0"}, {"fixed": "1.4.0"})}, 0, id="fixed in it"),
        pytest.param({"affected": _events({"introduced": "0"}, {"last_affected": "1.4.0"})}, 1, id="the last one"),
        pytest.param({"affected": _events({"introduced": "0"})}, 1, id="not fixed"),
        pytest.param({"affected": _events({"introduced": "1.5"})}, 0, id="later ones"),
        pytest.param({"affected": _events({"introduced": "once"})}, 1, id="unreadable"),
        pytest.param({"affected": [{"package": {"ecosystem": "npm", "name": "some-package"}}]}, 0, id="another's"),
        pytest.param({"modified": "2026-11-08T00:00:00Z"}, 2, id="old"),
        pytest.param({"modified": "lately"}, 2, id="without a date"),
    ],
)
def test_what_an_advisory_concerns(changes: dict[str, Any], code: int, tmp_path: Path) -> None:
    """1 for a pinned version, 0 for others, 2 where the database is of no use."""
    lock = tmp_path / "requirements.lock"
    lock.write_text(LOCK, encoding="utf-8")
    assert advisories.main([str(database(tmp_path, **changes)), f"--lock={lock}"], NOW) == code


def test_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What concerns what, and as of when."""
    lock = tmp_path / "requirements.lock"
    lock.write_text(LOCK, encoding="utf-8")
    advisories.main([str(database(tmp_path)), f"--lock={lock}"], NOW)
    assert capsys.readouterr().out == (
        "some-package==1.4.0: PYSEC-1 Bad.\n"
        "1 advisories concern the 2 packages of requirements.lock, as of 2026-11-20\n"
    )


def test_what_is_no_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An error that names it."""
    path = tmp_path / "all.zip"
    path.write_text("<html>", encoding="utf-8")
    assert advisories.main([str(path)], NOW) == 2
    assert f"error: {path} is not a zip of OSV's advisories" in capsys.readouterr().err
