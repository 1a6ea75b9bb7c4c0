"""The option `-o` of several outputs: `-o json`, `-o json=FILE -o html=FILE`, `-o json=FILE,markdown=-`.

Whether the files can be written is checked before a cluster is read, so that a missing folder does not cost a run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO, TypeVar

import click
import msgspec

from runup.cli.errors import CommandError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from runup.evaluation.baseline import Baseline
    from runup.evaluation.results import ClusterResult
    from runup.fleet.decide.matrix import Matrix

F = TypeVar("F", bound=Callable[..., Any])

STDOUT = "-"
# The form of which a line is written for each result.
LINES = "jsonl"


class Form(NamedTuple):
    """An output form: what renders the result of `preflight run`, and of a fleet, as `module:function`.

    An empty text means that the command does not have the form. A renderer takes `Shown` and returns the text, its
    parts, or the bytes of a file. Renderers are imported when they are used. `places`: the form shows the file and line
    of each object of a dump.
    """

    preflight: str
    fleet: str
    places: bool = False


_OF_PREFLIGHT = "runup.cli.preflight.render.output_formats"
_CSV = "runup.cli.preflight.render.risk_rows:as_csv"
_OF_CI = "runup.cli.preflight.render.ci_annotations"
_OF_FLEET = "runup.cli.fleet.render.fleet_forms"
FORMS = {
    "json": Form(f"{_OF_PREFLIGHT}:as_json", f"{_OF_FLEET}:as_json"),
    "jsonl": Form(f"{_OF_PREFLIGHT}:as_json_lines", f"{_OF_PREFLIGHT}:as_json_lines"),
    "yaml": Form(f"{_OF_PREFLIGHT}:as_yaml", f"{_OF_FLEET}:as_yaml"),
    "junit": Form(f"{_OF_PREFLIGHT}:as_junit", f"{_OF_PREFLIGHT}:as_junit"),
    "sarif": Form(f"{_OF_PREFLIGHT}:as_sarif", f"{_OF_PREFLIGHT}:as_sarif", places=True),
    "github": Form(f"{_OF_CI}:as_github", f"{_OF_CI}:as_github", places=True),
    "gitlab": Form(f"{_OF_CI}:as_gitlab", f"{_OF_CI}:as_gitlab", places=True),
    "csv": Form(_CSV, _CSV),
    "markdown": Form(f"{_OF_PREFLIGHT}:as_markdown", f"{_OF_FLEET}:as_markdown"),
    "html": Form(f"{_OF_PREFLIGHT}:as_html", f"{_OF_FLEET}:as_html"),
    "plan": Form(f"{_OF_PREFLIGHT}:as_plan", f"{_OF_PREFLIGHT}:as_plan"),
    "parquet": Form("", "runup.cli.fleet.parquet_file:as_parquet"),
}
PREFLIGHT_FORMS = tuple(name for name, form in FORMS.items() if form.preflight)
FLEET_FORMS = tuple(name for name, form in FORMS.items() if form.fleet)


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """The results that an output form shows.

    `several`: more than one cluster was named. `baseline` is the earlier result to compare with. A fleet also has its
    `matrix`, the clusters' `labels`, and its exit `code`.
    """

    results: Sequence[ClusterResult]
    several: bool = False
    baseline: Baseline | None = None
    matrix: Matrix | None = None
    labels: Mapping[str, Mapping[str, str]] = {}
    code: int = 0


def render(form: str, shown: Shown) -> Iterator[str | bytes]:
    """Yields `shown` in an output form, in parts."""
    module, _, function = (FORMS[form].preflight if shown.matrix is None else FORMS[form].fleet).partition(":")
    renderer: Callable[[Shown], str | bytes | Iterator[str]] = getattr(import_module(module), function)
    rendered = renderer(shown)
    return iter((rendered,)) if isinstance(rendered, str | bytes) else rendered


def render_for_stdout(targets: Sequence[Target], shown: Shown) -> Iterator[str]:
    """Yields the output for stdout, in parts; nothing if every output has a file."""
    for form, path in targets:
        if path == STDOUT:
            yield from map(str, render(form, shown))


# (form, file); the file of `-o json` is stdout.
Target = tuple[str, str]


def shows_places(targets: Sequence[Target]) -> bool:
    """Returns whether an output shows the file and line of each object of a dump."""
    return any(FORMS[form].places for form, _ in targets)


class _Outputs(click.ParamType[tuple[Target, ...]]):
    """Output formats, each with its file."""

    name = "output"

    def __init__(self, forms: Sequence[str]) -> None:
        self._choice = click.Choice(forms)

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:  # noqa: ARG002
        """Returns the forms, as click shows choices."""
        return f"[{'|'.join(self._choice.choices)}][=FILE]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Target, ...]:
        """Returns the targets that are typed, or fails in click's words."""
        targets: list[Target] = []
        for output in str(value).split(","):
            form, equals, path = output.partition("=")
            if equals and not path:
                self.fail(f"{output!r} has no file; `-` is the terminal.", param, ctx)
            targets.append((self._choice.convert(form, param, ctx), path or STDOUT))
        return tuple(targets)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Returns the forms that fit; after `=` the names of files."""
        from runup.cli.static_completion import item

        if "=" in incomplete.rpartition(",")[2]:
            return [item(incomplete.rpartition("=")[2], type="file")]
        return self._choice.shell_complete(ctx, param, incomplete)


def outputs_option(forms: Sequence[str]) -> Callable[[F], F]:
    """Adds `-o` with these forms to a command; the command gets a tuple of tuples for `outputs`."""
    return click.option(
        "-o",
        "--output",
        "outputs",
        type=_Outputs(forms),
        multiple=True,
        help="Output format, or FORMAT=FILE to write it to a file; separate several by commas, or repeat the flag.",
    )


def verdict_options(command: F) -> F:
    """Adds the options that decide which risks count, and so the exit code: by severity, suppression and baseline."""
    options = (
        click.option(
            "--fail-on",
            type=click.Choice(["unknown", "info", "warning", "critical", "never"]),
            default="unknown",
            show_default=True,
            help="Findings that make the exit code not 0: all open ones, or risks of this severity or a higher one.",
        ),
        click.option(
            "--suppressions",
            default="",
            metavar="FILE",
            help="Risks to live with: globs, with reason and last day.",
        ),
        click.option(
            "--baseline",
            default="",
            metavar="FILE",
            help="An earlier `-o json`: only what is new since then counts.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def targets_of(typed: Sequence[Sequence[Target]]) -> tuple[Target, ...]:
    """Returns the targets of all `-o`. Raises CommandError for two of one file, and for a file that cannot be made."""
    targets = tuple(target for targets in typed for target in targets)
    files = [path for _, path in targets]
    for form, path in targets:
        if files.count(path) > 1:
            destination = "the terminal" if path == STDOUT else path
            forms_text = " and ".join(form for form, file in targets if file == path)
            raise CommandError(
                f"-o: {forms_text} cannot both go to {destination}; give each a separate file: -o {form}=FILE"
            )
        if path != STDOUT:
            # Raises CommandError if `path` is a folder, or lies in one that does not exist.
            folder = os.path.dirname(path) or "."  # noqa: PTH120 (`pathlib` would change what was typed)
            if os.path.isdir(path):  # noqa: PTH112
                raise CommandError(f"-o: {path} is a folder; name a file in it")
            if not os.path.isdir(folder):  # noqa: PTH112
                raise CommandError(f"-o: there is no folder {folder} for {path}; make it first")
            if not os.access(path if os.path.exists(path) else folder, os.W_OK):  # noqa: PTH110
                raise CommandError(f"-o: {path} cannot be written: permission denied")
    return targets


def write_files(targets: Sequence[Target], shown: Shown) -> list[str]:
    """Writes each output that has a file, completely or not at all; returns the errors.

    What was found is still to be printed then: it may have taken an hour.
    """
    return _write_files(targets, lambda form: render(form, shown))


class LineOutputs:
    """The outputs in JSON Lines, to which each result is written as it arrives; a run that is ended leaves them.

    `problems` says which file could not be written. Raises CommandError for one that cannot be opened.
    """

    def __init__(self, targets: Sequence[Target]) -> None:
        self.problems: list[str] = []
        self._files: dict[str, TextIO] = {}
        self._to_stdout = (LINES, STDOUT) in targets
        for form, path in targets:
            if form == LINES and path != STDOUT:
                try:
                    self._files[path] = open(path, "w", encoding="utf-8")  # noqa: PTH123, SIM115
                except OSError as error:
                    raise CommandError(f"-o: {path} cannot be written: {error.strerror or error}") from error

    def write(self, shown: Shown, clear_line: Callable[[], None]) -> None:
        """Writes the results to each output; `clear_line` clears the progress line of the terminal."""
        if not self._to_stdout and not self._files:
            return
        text = "".join(map(str, render(LINES, shown)))
        if self._to_stdout:
            clear_line()
            sys.stdout.write(text)
            sys.stdout.flush()
        for path, file in list(self._files.items()):
            try:
                file.write(text)
                file.flush()
            except OSError as error:
                self.problems.append(f"-o: {path} cannot be written: {error.strerror or error}")
                del self._files[path]

    def close(self) -> None:
        """Closes the files."""
        for file in self._files.values():
            file.close()


def write_machine_files(targets: Sequence[Target], value: Any) -> list[str]:
    """Writes a value to each file as JSON or YAML; returns the errors."""
    from runup.cli.render.text import machine

    return _write_files(targets, lambda form: machine(value, form))


def _write_files(targets: Sequence[Target], rendered: Callable[[str], str | Iterator[str | bytes]]) -> list[str]:
    from kubekit.lang.files import write_whole

    problems = []
    for form, path in targets:
        if path != STDOUT:
            try:
                write_whole(path, rendered(form))
            except OSError as error:
                problems.append(f"-o: {path} cannot be written: {error.strerror or error}")
    return problems
