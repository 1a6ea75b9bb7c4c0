"""Write the roles and bindings that a new cluster of the sandbox's API server has.

usage: tools/generate_bootstrap_rbac.py [VERSION FOLDER]

They are Kubernetes' own: the files with which its tests compare them, in the source at VERSION, which the Go module
proxy serves (`go` must be installed). The result is checked in; run this again for a newer version.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

VERSION = f"v{sys.argv[1]}" if len(sys.argv) > 1 else "v1.34.4"
_FOLDER = Path(__file__).parent.parent / "packages/kubesandbox/src/kubesandbox/apiserver/access"
OUTPUT = (Path(sys.argv[2]) if len(sys.argv) > 2 else _FOLDER) / "bootstrap_rbac.json"
SOURCE = "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata"
FILES = ("cluster-roles", "controller-roles", "namespace-roles",
         "cluster-role-bindings", "controller-role-bindings", "namespace-role-bindings")  # fmt: skip


def main() -> None:
    """Writes OUTPUT, one object a line."""
    command = ["go", "mod", "download", "-json", f"k8s.io/kubernetes@{VERSION}"]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    folder = Path(json.loads(answer.stdout)["Dir"]) / SOURCE
    objects: list[dict[str, Any]] = []
    for name in FILES:
        objects += yaml.safe_load((folder / f"{name}.yaml").read_text())["items"]
    for obj in objects:
        obj["metadata"].pop("creationTimestamp", None)
        if obj["kind"].endswith("Role"):
            obj["rules"] = obj.get("rules") or []  # null for an aggregated role
    lines = ",\n".join(json.dumps(obj, separators=(",", ":")) for obj in objects)
    OUTPUT.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
