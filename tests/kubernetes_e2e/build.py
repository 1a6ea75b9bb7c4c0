"""Kubernetes' own end-to-end tests and kube-controller-manager: found or built once, in a folder outside the checkout.

In: the environment. Out: the folder of both programs, or `Unavailable` with the reason and the way out. They are kept
in `$XDG_CACHE_HOME/runup/kubernetes-e2e/KEY`, where KEY hashes their sources: another text is another folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.controlplane.build import Unavailable, compile_into

HERE = Path(__file__).parent
TESTS, CONTROLLERS = "kubernetes-e2e", "kube-controller-manager"
_SOURCES = ("go.mod", "go.sum", f"{TESTS}/main.go", f"{CONTROLLERS}/main.go")


def build(environ: Mapping[str, str] = os.environ) -> Path:
    """Returns the folder of the programs, built where they are missing; raises Unavailable."""
    folder = cache(environ)
    if not all(os.access(folder / name, os.X_OK) for name in (TESTS, CONTROLLERS)):
        go = shutil.which("go", path=environ.get("PATH"))
        if go is None:
            raise Unavailable("there is no Go to build Kubernetes' end-to-end tests with")
        compile_into(go, folder, HERE, (f"./{TESTS}", f"./{CONTROLLERS}"), (TESTS, CONTROLLERS), environ)
    return folder


def cache(environ: Mapping[str, str]) -> Path:
    """Returns the folder where the programs of these sources are, or would be."""
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".cache")
    content = b"\0".join((HERE / name).read_bytes() for name in _SOURCES)
    return Path(base) / "runup" / TESTS / hashlib.sha256(content).hexdigest()[:12]
