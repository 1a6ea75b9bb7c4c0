"""The operator of a component, in a pod: says in its ClusterOperators which release it is of, and that it is well.

Only the standard library: the image has nothing else. Its arguments are NAME=VERSION, an operator each.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import ssl
import sys
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime
from typing import Any

JSON = dict[str, Any]
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
LOOK_S = 2.0
WELL = {"Available": "True", "Progressing": "False", "Degraded": "False", "Upgradeable": "True"}


def main(wanted: dict[str, str]) -> None:
    """Keeps the operators' status until the process is asked to end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        for name, version in wanted.items():
            try:
                keep(name, version)
            except (OSError, urllib.error.URLError) as error:
                print(f"{name}: {error}", flush=True)
        time.sleep(LOOK_S)


def keep(name: str, version: str) -> None:
    """Writes the status of one ClusterOperator unless it is already right."""
    path = f"/apis/config.openshift.io/v1/clusteroperators/{name}"
    versions = [{"name": "operator", "version": version}]
    if send("GET", path).get("status", {}).get("versions") == versions:
        return
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [
        {"type": kind, "status": status, "reason": "AsExpected", "lastTransitionTime": now}
        for kind, status in WELL.items()
    ]
    send("PATCH", f"{path}/status", {"status": {"versions": versions, "conditions": conditions}})
    print(f"{name}: {version}", flush=True)


def send(method: str, path: str, body: JSON | None = None) -> JSON:
    """What the API server answers; raises OSError, of which HTTPError is one."""
    with pathlib.Path(f"{ACCOUNT}/token").open() as file:
        headers = {"Authorization": f"Bearer {file.read()}", "Content-Type": "application/merge-patch+json"}
    address = f"https://{os.environ['KUBERNETES_SERVICE_HOST']}:{os.environ['KUBERNETES_SERVICE_PORT']}{path}"
    data = json.dumps(body).encode() if body is not None else None
    trusted = ssl.create_default_context(cafile=f"{ACCOUNT}/ca.crt")
    request = urllib.request.Request(address, data=data, headers=headers, method=method)
    with urllib.request.urlopen(request, context=trusted, timeout=20) as response:
        answer: JSON = json.load(response)
    return answer


if __name__ == "__main__":
    main(dict(each.split("=", 1) for each in sys.argv[1:]))
