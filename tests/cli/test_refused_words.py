"""Words that do not go together: each command says which, before it asks anything of a cluster, an image or a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.commands import Run

UPGRADE, PREFLIGHT = ("upgrade",), ("upgrade", "--mode=preflight", "--to=5.2.0")
WITH_IT = "may not be specified with any other flags"
DIGEST = "sha256:" + "1" * 64

ROWS = [
    ((*UPGRADE, "--timeout=5m", "--to=5.2.0"), "--timeout needs --mode=preflight: an update is followed with"),
    ((*PREFLIGHT, "--timeout=5m"), "--timeout needs --wait"),
    ((*PREFLIGHT, "-o", "html"), "-o html is a page of the result, so it needs --wait"),
    ((*UPGRADE, "--to=5.2.0", "-o", "wide"), "-o wide is for showing; what an action did is told as text"),
    ((*UPGRADE, "--clear", "-o", "html"), "-o html is for showing; what an action did is told as text"),
    ((*UPGRADE, "--clear-preflight", "-o", "wide"), "-o wide is for showing"),
    ((*UPGRADE, "--to-latest", "-o", "html"), "-o html is for showing"),
    ((*UPGRADE, "--to-multi-arch", "-o", "wide"), "-o wide is for showing"),
    ((*UPGRADE, f"--to-image=a.b/c/d@{DIGEST}", "-o", "wide"), "-o wide is for showing"),
    ((*UPGRADE, "-o", "json", "accept", "A"), "--output cannot be used with `accept`"),
    ((*UPGRADE, "--wait", "channel"), "--wait cannot be used with `channel`"),
    ((*UPGRADE, "--dump=.", "--to=5.2.0"), "--to asks a cluster for something, and a dump is none; leave out one"),
    ((*UPGRADE, "--dump=.", "--as=kim"), "--as asks a cluster for something"),
    ((*UPGRADE, "--clear-preflight", "--force"), f"--clear-preflight {WITH_IT}"),
    ((*UPGRADE, "--clear-preflight", "--include-not-recommended"), f"--clear-preflight {WITH_IT}"),
    ((*UPGRADE, "--clear-preflight", "--to=5.2.0"), f"--clear-preflight {WITH_IT}"),
    ((*PREFLIGHT, "--clear-preflight"), f"--clear-preflight {WITH_IT}"),
    ((*UPGRADE, "--clear-preflight", "--wait"), f"--clear-preflight {WITH_IT}"),
    (("upgrade", "--mode=preflight", "--clear"), f"--clear {WITH_IT}"),
    (("kmod", "check"), "give one of --to-image, --kernel and --toolkit-image"),
    (
        ("kmod", "check", "--to-image", f"a.b/c@{DIGEST}", "--kernel", "5.14.0"),
        "give one of --to-image, --kernel and --toolkit-image",
    ),
    (("release", "diff", "oci:a"), "give two releases, FROM and TO; with --live TO alone will do"),
    (("release", "diff", "oci:a", "oci:b", "oci:c"), "give two releases, FROM and TO"),
    (("release", "extract", "oci:a"), "give --to DIR for all files, or --file PATH for one"),
    (
        ("release", "extract", "oci:a", "--to", "b", "--file", "c"),
        "give --to DIR for all files, or --file PATH for one",
    ),
    (("release", "new", "--version=5.2.0", "--to=oci:a"), "there is nothing to make a release of; give --from-dir"),
    (("preflight", "run", "--dump=a", "--dump=b", "--to=5.2.0", "-o", "html"), "give one --dump"),
    (("sandbox", "start", "--scenario=a", "--import=b"), "--scenario and --import exclude each other"),
]


@pytest.mark.parametrize(("words", "said"), ROWS, ids=[" ".join(row[0]).replace(DIGEST, "...") for row in ROWS])
def test_what_does_not_go_together(run: Run, words: tuple[str, ...], said: str) -> None:
    """One text on stderr, nothing on stdout."""
    ran = run(*words)
    assert said in " ".join(ran.err.split())
    assert (ran.code, ran.out) == (1, "")


@pytest.mark.parametrize("command", ["lint", "test"])
def test_a_folder_without_checks(run: Run, tmp_path: Path, command: str) -> None:
    """It is named; what else is in it is no check."""
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    ran = run("checks", command, tmp_path)
    assert (ran.code, ran.err) == (1, f"error: no PreflightCheck in {tmp_path}\n")
