"""Modules that are read when they are used: nobody can tell them from others but by the time that they take."""

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


def _said(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", _BEGIN + code], capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        pytest.param("import textwrap; print(unread('textwrap'))", "True", id="imported and not used: not read"),
        pytest.param(
            "import uuid, uuid; import uuid as other; print(unread('uuid'))", "True", id="imported again: not read"
        ),
        pytest.param(
            "import textwrap; print(textwrap.shorten('a  b', 9), unread('textwrap'))", "a b False", id="used: read"
        ),
        pytest.param("from textwrap import indent; print(indent('a', '-'))", "-a", id="a name of it: read at once"),
        pytest.param(
            "import textwrap\ntry: textwrap.nothing\nexcept AttributeError as e: print(e)",
            "module 'textwrap' has no attribute 'nothing'",
            id="what it does not have is missing as ever",
        ),
        pytest.param(
            "import textwrap\nprint(hasattr(textwrap, 'x'), '__getattr__' in vars(textwrap))",
            "False False",
            id="once read it is a module like others",
        ),
        pytest.param(
            "import inspect; print(inspect.getsourcefile(inspect), inspect.__spec__.loader is inspect.__loader__)",
            None,
            id="it knows where it came from",
        ),
        pytest.param(
            "import platform, os; before = platform.system(), unread('platform'); platform.machine();"
            "print(before == (os.uname().sysname, True), platform.system() == os.uname().sysname)",
            "True True",
            id="what is told without it is what it says itself",
        ),
        pytest.param(
            "from gettext import gettext, ngettext; print(gettext('a'), ngettext('b', 'c', 1), ngettext('b', 'c', 2),"
            "unread('gettext'))",
            "a b c True",
            id="a name that is told is had without reading",
        ),
        pytest.param(
            "from threading import local; before = unread('threading'); import threading as it; me = it.main_thread();"
            "print(before, unread('threading'), it.local is local, me.ident == it.get_ident())",
            "True False True True",
            id="click's local is that of threading, whose main thread is the one that reads it",
        ),
        pytest.param(
            "import _datetime; from datetime import datetime, UTC; before = unread('datetime');"
            "import datetime as it; missing = [n for n in it.__all__ if not hasattr(_datetime, n)];"
            "it.sys; print(before, unread('datetime'), missing, it.datetime is datetime, it.UTC is UTC)",
            "True False [] True True",
            id="all that datetime offers is told, and is the same once it is read",
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
    """In a process of its own, as a command begins."""
    expected = said if said is not None else _said("import inspect; print(inspect.__file__, True)")
    assert _said(code) == expected


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
    assert _said(code) == "8 1"


def test_no_package_is_read_late() -> None:
    """A part of it that is imported first would find its package unread, and both half made."""
    parts = "import email, msgspec; from importlib.util import find_spec;"
    shown = "print(*[name for name in sorted(lazy_imports.MODULES) if find_spec(name).submodule_search_locations])"
    assert _said(parts + shown) == ""
