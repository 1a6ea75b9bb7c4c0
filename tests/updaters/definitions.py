"""The definitions of tools that update clusters, made from the tools' own Go types, once and outside the checkout.

In: the environment. Out: a folder of CustomResourceDefinitions, or `Unavailable` with the reason. The Go module proxy
has the types of the Plan and not system-upgrade-controller itself, and it has nothing of tuppr.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.controlplane.build import Unavailable

HERE = Path(__file__).parent
PACKAGES = (
    "github.com/rancher/system-upgrade-controller/pkg/apis/upgrade.cattle.io/v1",
    "github.com/fluxcd/kustomize-controller/api/v1",
    "sigs.k8s.io/cluster-api/api/core/v1beta2",
    "sigs.k8s.io/cluster-api/api/runtime/v1beta2",
)


def build(environ: Mapping[str, str] = os.environ) -> Path:
    """Returns the folder, made if it is missing: controller-gen is compiled, in minutes. Raises Unavailable."""
    folder = _folder(environ)
    if folder.is_dir():
        return folder
    go = shutil.which("go", path=environ.get("PATH"))
    if go is None:
        raise Unavailable("there is no Go to make the definitions of updaters with")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        arguments = [f"paths={package}" for package in PACKAGES]
        command = [go, "tool", "controller-gen", "crd:maxDescLen=0", *arguments, f"output:crd:dir={made}"]
        done = subprocess.run(command, cwd=HERE, env=dict(environ), capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unavailable(f"controller-gen failed: {done.stderr[-2000:]}")
        shutil.copytree(made, f"{made}.whole")
        # Another process may have made the same folder in the meantime.
        if not folder.is_dir():
            Path(f"{made}.whole").rename(folder)
    return folder


def _folder(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME", "~")).expanduser() / ".cache")
    content = b"\0".join((HERE / name).read_bytes() for name in ("go.mod", "go.sum", "definitions.py"))
    return Path(base) / "runup" / "updaters" / hashlib.sha256(content).hexdigest()[:12]
