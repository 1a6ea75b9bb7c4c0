"""Modules that are read when used differ from others only in time."""

from __future__ import annotations

import subprocess
import sys

import pytest

_BEGIN = """
import sys
from runup.cli.startup import lazy_imports
for name in lazy_imports.MODULES: sys.modules.pop(name, None)
lazy_imports.install()
def unread(name): return lazy_imports.is_unread(sys.modules[name])
"""


def _output_of(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", _BEGIN + code], capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        pytest.param("import inspect; print(unread('inspect'))", "True", id="imported and not used: not read"),
        pytest.param(
            "import inspect, inspect; import inspect as other; print(unread('inspect'))",
            "True",
            id="imported again: not read",
        ),
        pytest.param("import inspect; print(inspect.cleandoc(' a'), unread('inspect'))", "a False", id="used: read"),
        pytest.param("from inspect import cleandoc; print(cleandoc(' a'))", "a", id="a name of it: read at once"),
        pytest.param(
            "import inspect\ntry: inspect.nothing\nexcept AttributeError as e: print(e)",
            "module 'inspect' has no attribute 'nothing'",
            id="what it does not have is missing as ever",
        ),
        pytest.param(
            "import inspect\nprint(hasattr(inspect, 'x'), '__getattr__' in vars(inspect))",
            "False False",
            id="once read it is a module like others",
        ),
        pytest.param(
            "import builtins, inspect\nreal = builtins.__import__\n"
            "def fails(name, *rest):\n    if name == 'tokenize': raise OSError(24, 'no descriptor')\n"
            "    return real(name, *rest)\n"
            "for name in ('linecache', 'tokenize'): sys.modules.pop(name, None)\nbuiltins.__import__ = fails\n"
            "try: inspect.cleandoc\nexcept OSError as e: print(e, unread('inspect'), end=' ')\n"
            "builtins.__import__ = real\nprint(inspect.cleandoc(' a'))",
            "[Errno 24] no descriptor True a",
            id="a failure leaves it unread: the next use tries again",
        ),
        pytest.param(
            "import inspect; print(inspect.getsourcefile(inspect), inspect.__spec__.loader is inspect.__loader__)",
            None,
            id="it knows where it came from",
        ),
        pytest.param(
            "from msgspec import _utils; print('typing_extensions' in sys.modules, _utils._get_type_hints.__module__)",
            "False typing",
            id="msgspec does without typing_extensions",
        ),
        pytest.param(
            "import msgspec, typing_extensions; print(typing_extensions.Any is not None)",
            "True",
            id="whoever else asks for typing_extensions has it",
        ),
    ],
)
def test_a_module_that_is_read_late(code: str, said: str | None) -> None:
    """In a separate process, as a command begins."""
    expected = said if said is not None else _output_of("import inspect; print(inspect.__file__, True)")
    assert _output_of(code) == expected


def test_threads_that_use_it_at_the_same_moment() -> None:
    """None of them sees half of it."""
    code = """
import threading, inspect
gate = threading.Barrier(8)
found = []
def use():
    gate.wait()
    found.append(inspect.signature(use) is not None and inspect.Parameter.empty)
threads = [threading.Thread(target=use) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
print(len(found), len(set(found)))
"""
    assert _output_of(code) == "8 1"


def test_no_package_is_read_late() -> None:
    """A part of it that is imported first would find its package unread, and both half made."""
    parts = "import email, msgspec; from importlib.util import find_spec;"
    shown = "print(*[name for name in sorted(lazy_imports.MODULES) if find_spec(name).submodule_search_locations])"
    assert _output_of(parts + shown) == ""
