"""One pull or push by one client, as a process of its own: `python -m bench.speed.registry_pull JOB`, JOB being JSON.

The outcome is written to the job's file. A client that is not done in time is ended by SIGALRM, whatever it does.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Job = dict[str, Any]


def main(job: Job) -> None:
    """Do the job and write `refused` (the error's type, empty where it succeeded) and `message`."""
    signal.alarm(int(job["deadline_s"]))
    try:
        CLIENTS[job["client"]](job)
        outcome = {"refused": "", "message": ""}
    except Exception as error:  # noqa: BLE001 -- which one it is, is what is measured
        outcome = {"refused": type(error).__name__, "message": str(error)[:300]}
    Path(job["outcome"]).write_text(json.dumps(outcome))


def oras(job: Job) -> None:
    """As oras' documentation has it: a provider, and a layout that is pulled or pushed."""
    from oras.layout import Layout, NewLayoutFromRegistry
    from oras.provider import Registry

    provider = Registry(insecure=True, auth_backend=job.get("auth_backend", "token"))
    if job.get("auth_file"):
        provider.auth.load_configs(provider.get_container(job["image"]), [job["auth_file"]])
    if job["do"] == "push":
        Layout(job["layout"]).push_to_registry(provider, job["image"], job["tag"])
    else:
        NewLayoutFromRegistry(job["layout"], provider, job["image"])


def runup(job: Job) -> None:
    """As `runup release` and the operator do it."""
    from kubekit.oci import credentials
    from kubekit.oci.access import Access, Mirror
    from kubekit.oci.layout import Layout
    from kubekit.oci.reference import parse
    from kubekit.oci.registry import RegistryClient

    known = credentials.load_credentials(job["auth_file"]) if job.get("auth_file") else credentials.Credentials()
    mirrors = tuple(Mirror(source, (mirror,)) for source, mirror in job.get("mirrors", {}).items())
    client = RegistryClient(Access(credentials=known, mirrors=mirrors, plain_http=frozenset(job.get("plain_http", ()))))
    if job["do"] == "push":
        client.push(Layout.open(Path(job["layout"])), job["digest"], parse(job["image"]))
    else:
        client.pull(parse(job["image"]), Layout.create(Path(job["layout"])))


CLIENTS: dict[str, Callable[[Job], None]] = {"oras": oras, "runup": runup}


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
