"""Open Cluster Management for tests: found or built once, in a folder outside the checkout.

In: the environment. Out: the folder with its one program, or `Unavailable` with the reason and the way out. It is kept
in `$XDG_CACHE_HOME/runup/open-cluster-management/KEY`, where KEY hashes its sources: another text is another folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.controlplane.build import Unavailable, compile_into, complete

HERE = Path(__file__).parent
PROGRAM = "open-cluster-management"
_SOURCES = ("go.mod", "go.sum", f"{PROGRAM}/main.go")


def build(environ: Mapping[str, str] = os.environ) -> Path:
    """Returns the program, built if it is missing, which takes minutes; raises Unavailable."""
    folder = cache(environ)
    if not complete(folder, (PROGRAM,)):
        go = shutil.which("go", path=environ.get("PATH"))
        if go is None:
            raise Unavailable("there is no Go to build Open Cluster Management with")
        compile_into(go, folder, HERE, (f"./{PROGRAM}",), (PROGRAM,), environ)
    return folder / PROGRAM


def cache(environ: Mapping[str, str]) -> Path:
    """Returns the folder where the program of these sources is, or would be."""
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".cache")
    content = b"\0".join((HERE / name).read_bytes() for name in _SOURCES)
    return Path(base) / "runup" / PROGRAM / hashlib.sha256(content).hexdigest()[:12]
