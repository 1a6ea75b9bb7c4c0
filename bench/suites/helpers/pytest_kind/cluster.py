"""The cluster of pytest-kind, with the methods that tests call."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any


class KindCluster:
    """The server that KUBECONFIG names; `create` and `delete` do nothing."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.kubeconfig_path = Path(os.environ["KUBECONFIG"])
        self.kubectl_path = Path(shutil.which("kubectl") or "kubectl")

    def create(self) -> None:
        """Does nothing, since the server runs."""

    def delete(self) -> None:
        """Does nothing."""

    def kubectl(self, *arguments: str, **options: Any) -> str:
        """Runs kubectl and returns what it prints."""
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig_path)}
        command = [str(self.kubectl_path), *arguments]
        return subprocess.check_output(command, env=environment, encoding="utf-8", **options)
