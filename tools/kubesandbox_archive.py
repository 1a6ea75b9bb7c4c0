"""`python -m tools.kubesandbox_archive FILE`: kubesandbox as one file, which needs Python alone.

In: the checkout, and the package index. Out: an archive made by shiv, with the locked versions of its dependencies
for this platform and this version of Python. The file must be smaller than `LIMIT_MB`; exit 1 says so.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tools import packages

SHIV = "shiv==1.0.8"
LIMIT_MB = 60.0
_UVX = str(Path(packages.UV).with_name("uvx"))


def build(file: Path, wheels: packages.Built) -> None:
    """Writes the archive. Raises CalledProcessError."""
    lock = (packages.ROOT / "requirements.lock").read_text()
    file.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        # pip would also ask for the hashes of our wheels if one version had a hash.
        versions = Path(folder, "versions.txt")
        versions.write_text(
            "".join(f"{pin}\n" for pin in re.findall(r"^[a-zA-Z0-9._-]+==[^\s;\\]+", lock, re.MULTILINE))
        )
        ours = (str(wheels[name]) for name in ("kubekit", "kubesandbox"))
        command = [_UVX, "-q", "--python", sys.executable, SHIV, "--compressed", "--console-script", "kubesandbox"]
        options = ["--output-file", str(file), "--python", "/usr/bin/env python3", "--constraint", str(versions)]
        subprocess.run([*command, *options, "--only-binary", ":all:", *ours], check=True, stdout=subprocess.DEVNULL)


def main(arguments: list[str]) -> int:
    """1 if the file is too large."""
    file = Path(arguments[0]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        build(file, packages.wheels(Path(folder)))
    size = file.stat().st_size / 1e6
    print(f"{file}: {size:.1f} MB")
    if size >= LIMIT_MB:
        print(f"error: the archive must be smaller than {LIMIT_MB:g} MB", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
