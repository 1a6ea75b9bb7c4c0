"""The program `goclient` next to this file: found or built once, in a folder outside the checkout.

In: the environment. Out: the program, or `build.Unavailable` with the reason and the way out. It is kept in
`$XDG_CACHE_HOME/runup/goclient/KEY`, where KEY hashes its sources: another text is another folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.controlplane.build import Unavailable, compile_into

HERE = Path(__file__).parent
PROGRAM = "goclient"


def build(environ: Mapping[str, str] = os.environ) -> Path:
    """The program, built where it is missing; raises Unavailable."""
    folder = cache(environ)
    if not os.access(folder / PROGRAM, os.X_OK):
        go = shutil.which("go", path=environ.get("PATH"))
        if go is None:
            raise Unavailable("there is no Go to build the Go clients with")
        compile_into(go, folder, HERE, (".",), (PROGRAM,), environ)
    return folder / PROGRAM


def cache(environ: Mapping[str, str]) -> Path:
    """Where the program of these sources is, or would be."""
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".cache")
    sources = sorted([HERE / "go.mod", HERE / "go.sum", *HERE.glob("*.go")])
    content = b"\0".join(source.read_bytes() for source in sources)
    return Path(base) / "runup" / PROGRAM / hashlib.sha256(content).hexdigest()[:12]
