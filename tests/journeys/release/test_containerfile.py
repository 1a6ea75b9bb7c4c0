"""The full operator image: what its Containerfile copies is there and gets in, and what it tells to type exists."""

from __future__ import annotations

import ast
import fnmatch
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from runup.release.cli.command import release

ROOT = Path(__file__).parents[3]
CONTAINERFILE = (ROOT / "deploy" / "Containerfile").read_text()


def _copied() -> list[str]:
    """What is copied out of the build's folder."""
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


def _libraries(files: Iterable[Path]) -> set[str]:
    """Modules of others that are imported anywhere in `files`."""
    found = set()
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            found |= {name.partition(".")[0] for name in names}
    return found - sys.stdlib_module_names - {"runup", "kubesandbox", "kubekit", ""}


def test_the_sandbox_stays_out_of_the_image() -> None:
    """Its folder is removed, and so is every library that only it imports, with what only that one needs."""
    code = ROOT / "src"
    sandbox = [*code.glob("runup/sandbox/**/*.py"), *code.glob("kubesandbox/**/*.py")]
    others = _libraries(file for file in code.glob("**/*.py") if file not in sandbox)
    # multidict is what aiohttp is made of; pytest is there where its plugin is used, and is no dependency.
    only_there = {name.replace("_", "-") for name in _libraries(sandbox) - others - {"multidict", "pytest"}}
    assert {"jsonpatch", "orjson"} <= only_there
    (line,) = re.findall(r"pip uninstall -y (.+) \\$", CONTAINERFILE, re.MULTILINE)
    with_theirs = {"jsonpointer"}  # of jsonpatch
    assert set(line.split()) == only_there | with_theirs
    removed = re.findall(r"^ && rm -r \S+/site-packages/(\S+)", CONTAINERFILE, re.MULTILINE)
    assert removed == ["runup/sandbox", "runup/rehearse", "kubesandbox"]
    # What the second stage takes is what the first one has left.
    _, _, shipped = CONTAINERFILE.rpartition("\nFROM ")
    assert re.findall(r"^COPY (.+)$", shipped, re.MULTILINE) == [
        "--from=build /opt/runup /opt/runup",
        "deploy/manifests /manifests",
    ]
