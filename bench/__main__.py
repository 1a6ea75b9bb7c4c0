"""`python -m bench [NAME...]`: run the benchmarks, print JSON on stdout and progress on stderr."""

from __future__ import annotations

import importlib
import json
import platform
import sys
from typing import Any

NAMES = ("startup", "checks", "api", "preflight", "registry_client", "update_status")


def main(names: list[str]) -> int:
    """Run the named benchmarks, all of them by default."""
    unknown = sorted(set(names) - set(NAMES))
    if unknown:
        print(f"error: no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 1
    results: dict[str, Any] = {"python": platform.python_version(), "machine": platform.machine()}
    for name in names or NAMES:
        print(f"bench: {name}", file=sys.stderr)
        results[name] = importlib.import_module(f"bench.{name}").run()
    print(json.dumps(results, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
