"""The full operator image: what its Containerfile copies is there and gets in, and what it tells to type exists."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path

from runup.cli.release.command import release

ROOT = Path(__file__).parents[3]
CONTAINERFILE = (ROOT / "deploy" / "Containerfile").read_text()


def _copied() -> list[str]:
    """Returns the paths that are copied out of the build's folder."""
    lines = re.findall(r"^COPY (?!--from)(.+)$", CONTAINERFILE, re.MULTILINE)
    return [source for line in lines for source in line.split()[:-1]]


def test_what_is_copied_is_there_and_not_ignored() -> None:
    """The ignore file lets in these and no more than their folders."""
    kept = [line[1:] for line in (ROOT / ".containerignore").read_text().splitlines() if line.startswith("!")]
    assert _copied()
    for source in _copied():
        assert (ROOT / source).exists(), source
        assert any(fnmatch.fnmatch(source, name) or source.startswith(f"{name}/") for name in kept), source


def test_the_flags_that_it_names_exist() -> None:
    """Whoever copies the command gets no `no such option`."""
    command = next(line for line in CONTAINERFILE.splitlines() if "runup release new" in line)
    known = {option for parameter in release.commands["new"].params for option in parameter.opts}
    named = set(re.findall(r"--[a-z-]+", command))
    assert named
    assert named <= known


def test_what_a_rehearsal_runs_on_is_in_the_image() -> None:
    """Nothing of the installation is left out (docs/decisions/0096); what only the build needs stays in its stage."""
    assert not re.findall(r"pip uninstall|rm -r", CONTAINERFILE)
    # What the second stage takes is what the first one has left.
    _, _, shipped = CONTAINERFILE.rpartition("\nFROM ")
    assert re.findall(r"^COPY (.+)$", shipped, re.MULTILINE) == [
        "--from=build /opt/runup /opt/runup",
        "deploy/manifests /manifests",
    ]
