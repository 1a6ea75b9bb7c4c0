"""Which kinds a check can read does not depend on what was imported before."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
from runup.checks.decide import reads
import runup.api
from kubekit.api.scheme import RESOURCES
print(*(resource for resource in RESOURCES.values() if not reads.has_type(resource)))
"""


def test_every_kind_of_the_scheme_is_known_to_whoever_imports_reads_first() -> None:
    """A fresh interpreter: a table made before OpenShift's kinds are added says that no check may read them."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
