"""How a process begins and ends, in this one: modules that are read late, its names, when it ends at once."""

from __future__ import annotations

import gc
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest
from tests.cli.commands import Ran, Run

from runup.cli import main
from runup.cli.errors import CommandError
from runup.cli.startup import lazy_imports, start


def fresh(name: str) -> ModuleType:
    """A module of that name as `Finder` finds it, next to the one that this process has."""
    spec = lazy_imports.Finder.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_module_is_read_when_something_is_asked_of_it() -> None:
    """Not before, and once; it knows where it came from, and then is a module like others."""
    module = fresh("inspect")
    assert lazy_imports.is_unread(module)
    assert module.__spec__ is not None
    assert module.__spec__.loader is module.__loader__
    assert module.__spec__.origin == importlib.util.find_spec("inspect").origin  # type: ignore[union-attr]
    assert lazy_imports.is_unread(module)
    assert module.cleandoc(" a") == "a"
    assert not lazy_imports.is_unread(module)
    assert "__getattr__" not in vars(module)
    assert module.__file__.endswith("inspect.py")


def test_what_it_does_not_have_is_missing() -> None:
    """In Python's words, of a module that was read for it; it is no package."""
    module = fresh("inspect")
    with pytest.raises(AttributeError, match="__path__"):
        _ = module.__path__
    assert lazy_imports.is_unread(module)
    asked = vars(module)["__getattr__"]
    with pytest.raises(AttributeError, match=r"^module 'inspect' has no attribute 'nothing'$"):
        _ = module.nothing
    assert not lazy_imports.is_unread(module)
    # Whoever got hold of it before still has its answer, and reads nothing again.
    module.cleandoc = "changed"
    assert asked("cleandoc") == "changed"


def test_only_some_modules_are_found_so() -> None:
    """Modules outside the list are left to other finders, and a missing module is not found."""
    assert lazy_imports.Finder.find_spec("json") is None
    assert lazy_imports.Finder.find_spec("inspect", path=[]) is None
    assert not lazy_imports.is_unread(sys)


def test_msgspec_does_without_typing_extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names are hidden only during the import."""
    assert lazy_imports.Finder.find_spec("typing_extensions") is None
    half = ModuleType("msgspec._utils")
    monkeypatch.setitem(sys.modules, "msgspec._utils", half)
    with pytest.raises(ModuleNotFoundError) as caught:
        lazy_imports.Finder.find_spec("typing_extensions")
    assert caught.value.name == "typing_extensions"
    half.get_type_hints = None  # type: ignore[attr-defined]
    assert lazy_imports.Finder.find_spec("typing_extensions") is None
    monkeypatch.delitem(sys.modules, "msgspec._utils")
    assert lazy_imports.Finder.find_spec("typing_extensions") is None


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The exit codes with which this process would have been ended, had it been a command's; all else is put back."""
    ended: list[int] = []
    threshold, finders = gc.get_threshold(), sys.meta_path[:]
    monkeypatch.setattr("os._exit", ended.append)
    monkeypatch.setattr("atexit._ncallbacks", lambda: 0)
    monkeypatch.setattr("sys._current_frames", lambda: {1: None})
    yield ended
    gc.unfreeze()
    gc.set_threshold(*threshold)
    sys.meta_path[:] = finders


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("/usr/bin/kubectl-runup", "kubectl runup"),
        ("oc-runup", "oc runup"),
        ("/x/kubectl-my-runup", "kubectl my-runup"),
        ("/usr/bin/runup", "runup"),
    ],
)
def test_a_plugin_is_called_by_the_name_of_its_file(
    program: str, name: str, process: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Help and errors show it; the process ends with the command's code, and the collector left it alone."""
    monkeypatch.setattr(sys, "argv", [program, "nonsense"])
    assert start.plugin() == 1
    assert capsys.readouterr().err.endswith(f"See '{name} -h' for help and examples\n")
    assert process == [1]
    assert gc.get_threshold()[0] == 200_000
    assert gc.get_freeze_count() > 0
    assert sys.meta_path[0] is lazy_imports.Finder


def test_the_command_by_its_own_name(
    process: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the file is called; a second beginning adds no second finder."""
    monkeypatch.setattr(sys, "argv", ["kubectl-runup", "nonsense"])
    assert (start.runup(), start.runup()) == (1, 1)
    assert "See 'runup -h'" in capsys.readouterr().err
    assert sys.meta_path.count(lazy_imports.Finder) == 1  # type: ignore[arg-type]
    assert process == [1, 1]


class Full:
    """A stream that cannot be written any more."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def flush(self) -> None:
        """It does not work."""
        raise self._error


@pytest.mark.parametrize(
    ("callbacks", "threads", "ended"),
    [(0, 1, [7]), (1, 1, []), (0, 2, [])],
    ids=["nothing is left to do", "somebody asked to be called", "another thread runs"],
)
def test_when_a_process_ends_at_once(
    callbacks: int, threads: int, ended: list[int], process: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where that leaves nothing undone."""
    monkeypatch.setattr("atexit._ncallbacks", lambda: callbacks)
    monkeypatch.setattr("sys._current_frames", lambda: dict.fromkeys(range(threads)))
    start.leave_at_once(7)
    assert process == ended


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), ValueError("closed")], ids=["full", "closed"]
)
def test_output_that_cannot_be_written_is_pythons_to_tell(
    stream: str, error: Exception, process: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends then as it would have."""
    monkeypatch.setattr(sys, stream, Full(error))
    start.leave_at_once(0)
    assert process == []


Ending = Callable[[Callable[[], object]], Ran]


@pytest.fixture
def ending(run: Run) -> Iterator[Ending]:
    """Runs a command whose work is what a test says."""

    def go(work: Callable[[], object]) -> Ran:
        main.root.add_command(click.Command("of-a-test", callback=work))
        return run("of-a-test")

    yield go
    main.root.commands.pop("of-a-test", None)


def raising(error: BaseException) -> Callable[[], None]:
    """Work that ends so."""

    def work() -> None:
        raise error

    return work


NO_MEMORY = "error: there is not enough memory for this command; give it more, or let it read less\n"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (SystemExit(3), 3, ""),
        (SystemExit("words"), 1, ""),
        (SystemExit(None), 1, ""),
        (KeyboardInterrupt(), 130, "\n"),
        (CommandError("no", 4), 4, "error: no\n"),
        (FileNotFoundError(2, "No such file or directory", "/x"), 1, "error: /x: No such file or directory\n"),
        (MemoryError(), 1, NO_MEMORY),
        (RuntimeError("can't start new thread"), 1, NO_MEMORY),
    ],
    ids=["a code", "words", "nothing", "Ctrl-C", "its own error", "a file", "no memory", "no memory for a thread"],
)
def test_exit_codes_of_what_a_command_raises(error: BaseException, code: int, said: str, ending: Ending) -> None:
    """Each ends here."""
    assert ending(raising(error)) == Ran(code, "", said)


@pytest.mark.parametrize(
    ("error", "last"),
    [
        pytest.param(KeyError("x"), "KeyError: 'x'", id="a key"),
        pytest.param(OSError("no errno"), "OSError: no errno", id="an error without a number"),
        pytest.param(RuntimeError("\x1b[2J"), "RuntimeError: \\x1b[2J", id="one that quotes what acts on a terminal"),
    ],
)
def test_a_bug_ends_in_its_traceback(error: Exception, last: str, ending: Ending) -> None:
    """Its message may be of a cluster, so that it is escaped as all else is."""
    ran = ending(raising(error))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("Traceback (most recent call last):\n")
    assert ran.err.splitlines()[-1] == last


@pytest.mark.parametrize(("result", "code"), [(7, 7), (None, 0), ("text", 0), (0, 0)])
def test_the_exit_code_is_what_a_command_returns(result: object, code: int, ending: Ending) -> None:
    """Where that is a number."""
    assert ending(lambda: result).code == code


def printing(text: str, error: Exception | None = None) -> Callable[[], None]:
    """Work that prints, and may end in an error."""

    def work() -> None:
        sys.stdout.write(text)
        if error is not None:
            raise error

    return work


def test_output_that_has_no_place_does_not_hide_the_error(ending: Ending, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is let go: Python would try again at the end, and fail."""
    full = Path("/dev/full").open("w")  # noqa: SIM115 (whether it can be closed is what is asked)
    monkeypatch.setattr(sys, "stdout", full)
    assert ending(printing("x", CommandError("no"))) == Ran(1, "", "error: no\n")
    full.close()


@pytest.mark.parametrize("work", [printing("x"), lambda: click.echo("x")], ids=["at its end", "while it prints"])
def test_a_reader_that_has_left(work: Callable[[], object], ending: Ending, monkeypatch: pytest.MonkeyPatch) -> None:
    """141, without a word, and nothing is left to be written."""
    reading, writing = os.pipe()
    os.close(reading)
    pipe = os.fdopen(writing, "w")
    monkeypatch.setattr(sys, "stdout", pipe)
    assert ending(work) == Ran(141, "", "")
    pipe.close()


def test_words_are_those_of_the_command_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nobody gives others."""
    monkeypatch.setattr(sys, "argv", ["runup", "completion", "kubectl"])
    assert main.main() == 0
    assert capsys.readouterr().out.startswith("#!/bin/sh")
    assert main.main([]) == 0
    assert capsys.readouterr().out.startswith("Usage: runup ")


@pytest.mark.parametrize(
    "interrupt", ["os.kill(os.getpid(), 2)", "raise KeyboardInterrupt"], ids=["a signal", "an exception"]
)
@pytest.mark.parametrize("module", ["runup.cli.main", "runup.cli.preflight.command", "runup.report.report"])
def test_an_interrupt_while_modules_are_imported_is_quiet(module: str, interrupt: str, tmp_path: Path) -> None:
    """130, without a traceback, whatever is imported at that moment."""
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\n"
        "class Finder:\n"
        "    def find_spec(name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        f"            {interrupt}\n"
        "sys.meta_path.insert(0, Finder)\n"
    )
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, "-m", "runup", "preflight", "run", "--dump", "examples/skip-level"]
    ran = subprocess.run(command, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, timeout=60)  # noqa: PLW1510
    # A new line ends the `^C` of the terminal.
    assert (ran.returncode, ran.stdout, ran.stderr.strip()) == (130, "", "")


def test_an_interrupt_while_a_class_is_created_is_quiet(ending: Ending) -> None:
    """Python 3.11 raises RuntimeError from it."""

    def work() -> None:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    assert ending(work) == Ran(130, "", "")


def test_no_word_is_the_help_of_a_group(run: Run) -> None:
    """Of `adm`, too; with words it is not printed."""
    assert run().out == run("-h").out
    assert run("adm").out == run("adm", "-h").out
    assert "Usage" not in run("adm", "upgrade", "nonsense").out
