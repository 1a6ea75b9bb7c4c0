"""The operator's processes import aiohttp without what it loads just in case."""

from __future__ import annotations

import subprocess
import sys

_CODE = """
import gc, os, ssl, sys
read = []
load = ssl.SSLContext.set_default_verify_paths
ssl.SSLContext.set_default_verify_paths = lambda self: read.append(os.environ.get("SSL_CERT_FILE")) or load(self)
from kubekit.http.quick_imports import quick_imports
with quick_imports():
    import aiohttp
print(read, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
print(gc.isenabled(), gc.get_freeze_count() > 10_000)
"""


def test_what_is_left_out_and_what_is_as_before() -> None:
    """aiohttp's default contexts read no authorities, and garbage collection is enabled again."""
    done = subprocess.run(
        [sys.executable, "-c", _CODE],
        capture_output=True,
        text=True,
        check=False,
        env={"SSL_CERT_FILE": "/some/file"},
    )
    assert done.stdout.splitlines() == ["['/dev/null', '/dev/null'] /some/file None", "True True"], done.stderr
    assert done.returncode == 0
