"""A disk that is full: one error that says so, nothing half-written, nothing left running."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.journeys.conftest import RUNUP

SIZE_KIB = 600
MOUNT = 'mount -t tmpfs -o size="$SIZE"k none "$DISK" || exit 77; '


def on_a_small_disk(
    disk: Path, script: str, *, size_kib: int = SIZE_KIB, timeout_s: float = 100
) -> tuple[int, str, list[str]]:
    """Exit code, errors, and what is on a disk of that size after `script`; skips where no disk can be mounted."""
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    disk.mkdir()
    # The disk is seen in a separate mount namespace and goes with it.
    whole = f'{MOUNT} {script}; code=$?; find "$DISK" -mindepth 1 | sed "s/^/FOUND /"; exit $code'
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-c", whole],
        env={**os.environ, "DISK": str(disk), "SIZE": str(size_kib), "RUNUP": " ".join(RUNUP)},
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout_s,
    )
    if done.returncode == 77 or "unshare failed" in done.stderr or done.stderr.startswith("unshare:"):
        pytest.skip(f"no disk can be mounted: {done.stderr.strip()}")
    found = [line.removeprefix("FOUND ") for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    return done.returncode, done.stderr, found


def test_an_image_that_finds_no_room(tmp_path: Path) -> None:
    """The layout that was to be made is not there."""
    manifests = tmp_path / "release" / "manifests"
    manifests.mkdir(parents=True)
    text = base64.b64encode(os.urandom(SIZE_KIB * 1024)).decode()
    (manifests / "a.yaml").write_text(f"kind: ConfigMap\napiVersion: v1\nmetadata: {{name: a}}\ndata: {{x: {text}}}\n")
    script = f'$RUNUP release new --from-dir {manifests.parent} --version 5.2.0 --to "oci:$DISK/image"'
    code, said, found = on_a_small_disk(tmp_path / "disk", script)
    assert (code, found) == (1, [])
    assert said == f"error: {tmp_path}/disk/image: cannot be written: No space left on device\n"


@pytest.mark.slow
def test_a_sandbox_that_finds_no_room(tmp_path: Path) -> None:
    """It gives up at once rather than after its time limit, and ends what it had started."""
    script = (
        '$RUNUP sandbox start --data "$DISK/data"; code=$?; $RUNUP sandbox stop --data "$DISK/data" >&2; exit $code'
    )
    code, said, _ = on_a_small_disk(tmp_path / "disk", f"({script})")
    assert code == 1
    assert f"error: no space left where {tmp_path}/disk/data is; free some, or give another folder with --data" in said
    assert "no sandbox runs in" in said


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_disk_that_is_full_for_a_while(tmp_path: Path) -> None:
    """Nothing is stored meanwhile, and it is said; once there is room everything continues, in the same processes.

    The operator is killed while there is no room: its pod must not stay Running without a process.
    """
    script = f"{sys.executable} {Path(__file__).with_name('full_disk.py')}"
    code, said, _ = on_a_small_disk(tmp_path / "d", script, size_kib=400 * 1024, timeout_s=500)
    assert code == 2, said
