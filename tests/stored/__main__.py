"""`python -m tests.stored FOLDER`: writes what this version stores into FOLDER, for later versions to read.

FOLDER is named by the version, and must not be written again once that is released.
"""

from __future__ import annotations

import asyncio
import lzma
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import yaml
from tests.journeys.conftest import Done, Sandbox, sandbox_in

from kubekit.api.scheme import Resource, resource_of
from kubekit.kube import calls
from kubekit.kube.client import Client
from kubekit.kube.config import load
from kubesandbox.apiserver.server import ApiServer
from runup.api.config_v1 import ClusterVersion
from runup.api.update_v1alpha1 import UpdateStatus

CONFIG_MAPS = Resource(group="", version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
NAMESPACES = Resource(group="", version="v1", kind="Namespace", plural="namespaces", namespaced=False)
OPERATOR, STORE = "openshift-cluster-version-operator", "runup-preflight"
TARGET, RISK, REASON = "5.2.0", "NodeCordoned", "its disks are replaced"
RISKS_APPLY = 2
# Objects by their file: kind, name and namespace.
OBJECTS = {
    "clusterversion": (resource_of(ClusterVersion), "version", ""),
    "updatestatus": (resource_of(UpdateStatus), "cluster", ""),
    "accepted-risks": (CONFIG_MAPS, "accepted-risks", OPERATOR),
    "preflight-history": (CONFIG_MAPS, "preflight-history", OPERATOR),
    "kept": (CONFIG_MAPS, "kept", STORE),
}


def write(folder: Path) -> None:
    """Checks a sandbox in each way that leaves something behind, and writes that into `folder`, which must be new."""
    folder.mkdir(parents=True)
    data = Path(tempfile.mkdtemp())
    with contextmanager(sandbox_in)(data, "skip-level") as sandbox:
        typed(sandbox, "upgrade", "--mode=preflight", f"--to={TARGET}", "--wait", codes=(RISKS_APPLY,))
        typed(sandbox, "upgrade", "accept", RISK, "--until", "30d", "--reason", REASON)
        sandbox.client.send(calls.create(NAMESPACES, {"metadata": {"name": STORE}}))
        for store in (f"sqlite:{folder / 'reports.db'}", str(folder / "reports"), f"configmap:{STORE}/kept"):
            words = ("preflight", "run", "--to", TARGET, "--store", store)
            typed(sandbox, *words, "-o", f"json={folder / 'preflight.json'}", codes=(RISKS_APPLY,))
        typed(sandbox, "dump", "collect", str(folder / "dump"), "--archive")
        for name, (kind, object_name, namespace) in OBJECTS.items():
            found = sandbox.client.send(calls.get_raw(kind, object_name, namespace))
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(found))
    (folder / "kubesandbox.db.xz").write_bytes(lzma.compress(asyncio.run(kubesandbox_store(Path(tempfile.mkdtemp())))))


async def kubesandbox_store(data: Path) -> bytes:
    """Returns the store of a server with one ConfigMap."""
    async with ApiServer(data) as server, Client(load(str(server.kubeconfig))) as client:
        kept = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "kept", "namespace": "default"},
            "data": {"key": "value"},
        }
        await client.send(calls.create(CONFIG_MAPS, kept))
    return (data / "store.db").read_bytes()


def typed(sandbox: Sandbox, *words: str, codes: tuple[int, ...] = (0,)) -> Done:
    """Runs `runup` as typed. Raises RuntimeError if it ends with another exit code than `codes`."""
    done = sandbox.run(*words)
    if done.code not in codes:
        raise RuntimeError(f"runup {' '.join(words)} exited with {done.code}: {done.err}")
    return done


if __name__ == "__main__":
    write(Path(sys.argv[1]).absolute())
