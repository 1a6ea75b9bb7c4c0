"""Declarative checks and their cases as files: a folder or file in, what is in it out, every mistake with its line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubekit.lang.files import contents
from runup.checks.catalogue import CHECKS
from runup.checks.decide import cases, rights
from runup.checks.decide.cases import BadCases, Cases
from runup.checks.decide.declarative import API_VERSION, KIND, DeclarativeError, declared_check
from runup.checks.decide.model import Check
from runup.cli.errors import CommandError
from runup.release.decide.inclusion import DEFAULT_PROFILE
from runup.release.decide.payload import is_cases

SUFFIXES = (".yaml", ".yml", ".json")
_INCLUDE = f"include.release.openshift.io/{DEFAULT_PROFILE}"


@dataclass(frozen=True, slots=True)
class Found:
    """Of a file: the checks and cases in it, what is wrong, and what is only noteworthy."""

    path: Path
    checks: tuple[Check, ...] = ()
    cases: tuple[Cases, ...] = ()
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read(words: Sequence[str]) -> tuple[Found, ...]:
    """What the files and folders named by `words` hold; raises CommandError where there is none."""
    paths = [path for word in words for path in _paths(Path(word))]
    return tuple(_read(path) for path in paths)


def _paths(path: Path) -> list[Path]:
    if path.is_dir():
        found = sorted(each for each in path.rglob("*") if each.suffix in SUFFIXES and each.is_file())
        if not found:
            raise CommandError(f"{path} holds no YAML or JSON file")
        return found
    if not path.is_file():
        raise CommandError(f"{path}: there is no such file or folder")
    return [path]


def with_cases(words: Sequence[str]) -> tuple[str, ...]:
    """`words`, and beside each file of a check that of its cases, where there is one."""
    files = [Path(word) for word in words if Path(word).is_file() and not is_cases(word)]
    beside = (file.with_suffix(f".test{file.suffix}") for file in files)
    return tuple(dict.fromkeys((*words, *(str(path) for path in beside if path.is_file()))))


def _read(path: Path) -> Found:
    try:
        text = contents(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return Found(path, errors=(f"{path}: cannot be read: {error}",))
    documents, broken = _documents(path, text)
    errors, notes, checks, held = list(broken), [], [], []
    for document in documents:
        kind = document.get("kind") if isinstance(document, dict) else None
        if kind == cases.KIND:
            try:
                held.append(cases.parse(document))
            except BadCases as error:
                errors.append(f"{path}: {error}")
        elif kind == KIND or str(_of(document, "apiVersion")) == API_VERSION:
            try:
                check = declared_check(document, file=str(path), text=text)
            except DeclarativeError as error:
                errors.append(str(error))
                continue
            checks.append(check)
            errors += [f"{path}: {each}" for each in _refused(check)]
            notes += [f"{path}: {each}" for each in _notes(document, check)]
    return Found(path, tuple(checks), tuple(held), tuple(errors), tuple(notes))


def _documents(path: Path, text: str) -> tuple[list[Any], list[str]]:
    from kubekit.lang import yaml as kyaml

    try:
        return [each for each in kyaml.load_all(text, name=str(path)) if each is not None], []
    except kyaml.YamlError as error:
        return [], [str(error)]


def _of(document: Any, key: str) -> Any:
    return document.get(key) if isinstance(document, dict) else None


def _refused(check: Check) -> Iterator[str]:
    """Reads that no check is given a right for."""
    for right in rights.of_checks([check]):
        if why := rights.why_not(right):
            yield f"{check.name}: {why}"


def _notes(document: dict[str, Any], check: Check) -> Iterator[str]:
    """What is allowed and likely a mistake."""
    spec = document.get("spec") or {}
    risk = spec.get("risk") or {}
    if not risk.get("remediation"):
        yield f"{check.name}: spec.risk.remediation is missing: say what helps"
    if not spec.get("targets"):
        yield f"{check.name}: spec.targets is missing: it is for updates to every later release"
    taken = {name for each in CHECKS for name in (each.name, each.unknown_risk)}
    if risk.get("name") in taken:
        yield f"{check.name}: risk {risk['name']} is a built-in check's, and would be merged with it"
    annotations = (document.get("metadata") or {}).get("annotations") or {}
    if str(annotations.get(_INCLUDE)) != "true":
        yield f'{check.name}: has no annotation {_INCLUDE}: "true", so no usual cluster gets it'
