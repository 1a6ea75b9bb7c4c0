"""`python tools/first_minutes.py > docs/tutorial/first-minutes.md`: a newcomer's first minutes.

Clones the repository into an empty home, types the commands of the README and the tutorials one after the other in one
shell, and prints each with its time, its exit code and the end of what it said.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", *(f"docs/tutorial/first-{name}.md" for name in ("cluster", "check", "fleet")))
# Not of the first minutes: every test, and what is typed while an update runs.
LEFT_OUT = ("make test", "runup upgrade status")
SHOWN = 12
_END = "@@ended"
_HEAD = """# The first minutes

This page records a session: every command of the README and the tutorials, in a new clone and an empty home, with
its duration. `tools/first_minutes.py` recorded it on two busy cores. `make demo` installs runup first.
"""


def commands(readme: str) -> Iterator[str]:
    """Yields every command of a page's `sh` blocks, one with its here-document."""
    for block in re.findall(r"^```sh\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL):
        lines = iter(block.splitlines())
        for line in lines:
            command = [line.partition("   #")[0].rstrip()]
            while "<<'END'" in command[0] and command[-1] != "END":
                command.append(next(lines))
            if command[0] and not command[0].startswith(LEFT_OUT):
                yield "\n".join(command)


class Shell:
    """One bash, whose commands are timed."""

    def __init__(self, home: Path) -> None:
        env = {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "TERM": "dumb", "COLUMNS": "110"}
        self._bash = subprocess.Popen(
            ["bash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=home,
            text=True,
        )

    def run(self, command: str) -> tuple[float, int, list[str]]:
        """Seconds, exit code and lines."""
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        began = time.monotonic()
        self._bash.stdin.write(f'{command}\necho "{_END} $?"\n')
        self._bash.stdin.flush()
        said = []
        for line in self._bash.stdout:
            if line.startswith(_END):
                return time.monotonic() - began, int(line.split()[1]), said
            said.append(line.rstrip("\n"))
        raise RuntimeError(f"the shell ended with {command!r}")


def main() -> int:
    """Type everything; 1 where a command failed."""
    parser = argparse.ArgumentParser(prog="tools/first_minutes.py")
    parser.add_argument("--python", default=sys.executable, help="the Python that make uses")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="runup-new-") as folder:
        return _typed(Path(folder), given.python)


def _typed(home: Path, python: str) -> int:
    shell = Shell(home)
    shell.run(f"export PYTHON={python}")
    print(_HEAD)
    typed = [
        f"git clone -q {ROOT} runup && cd runup",
        *(command for page in PAGES for command in commands((ROOT / page).read_text(encoding="utf-8"))),
    ]
    version, total, failed = "", 0.0, 0
    for command in typed:
        seconds, code, said = shell.run(command.replace("VERSION", version))
        total += seconds
        # These say by 2 and 3 what they found.
        reports = re.search("--wait|preflight (?:run|explain)|fleet|rehearse|forecast", command)
        failed += code not in ((0, 2, 3) if reports else (0,))
        # `start` lists the releases that the cluster can be checked for, the newest last.
        offered = re.search(r"^Imported from .*[ ,](\S+)$", "\n".join(said), re.MULTILINE)
        version = offered[1] if offered else version
        shown = command.replace(str(ROOT), "<this repository>").replace("=VERSION", f"={version}")
        print(f"## {total - seconds:.0f} s\n\n```console\n$ {shown}")
        for line in [*(["..."] if len(said) > SHOWN else []), *said[-SHOWN:]]:
            print(line.replace(str(home), "~"))
        print(f"```\n\n{seconds:.1f} s, exit code {code}.\n", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
