"""Reads declarative checks and their cases from files and folders, and reports every mistake with its line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubekit.error_types import InputError
from kubekit.lang.files import links_inside, read_limited
from runup.checks.catalogue import CHECKS
from runup.checks.decide import cases, rights
from runup.checks.decide.cases import BadCases, Cases
from runup.checks.decide.declarative import API_VERSION, KIND, DeclarativeError, declared_check
from runup.checks.decide.model import Check
from runup.release.decide.inclusion import DEFAULT_PROFILE
from runup.release.decide.payload import is_cases

SUFFIXES = (".yaml", ".yml", ".json")
_INCLUDE = f"include.release.openshift.io/{DEFAULT_PROFILE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFile:
    """The content of a file: its checks and cases, its errors, and notes about likely mistakes."""

    path: Path
    checks: tuple[Check, ...] = ()
    cases: tuple[Cases, ...] = ()
    errors: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read(words: Sequence[str]) -> tuple[CheckFile, ...]:
    """Returns the content of the files and folders in `words`.

    Raises InputError if one does not exist or is empty.
    """
    files_read: list[CheckFile] = []
    for path in map(Path, words):
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())
            if not files:
                raise InputError(f"{path} contains no YAML or JSON file")
            with links_inside(path):
                files_read += map(_read, files)
        elif path.is_file():
            files_read.append(_read(path))
        else:
            raise InputError(f"{path}: there is no such file or folder")
    return tuple(files_read)


def with_cases(words: Sequence[str]) -> tuple[str, ...]:
    """Returns `words`, and next to each file of a check that of its cases, if it exists."""
    files = [Path(word) for word in words if Path(word).is_file() and not is_cases(word)]
    case_files = (file.with_suffix(f".test{file.suffix}") for file in files)
    return tuple(dict.fromkeys((*words, *(str(path) for path in case_files if path.is_file()))))


def _read(path: Path) -> CheckFile:
    """Returns the content of one file; an error in it is reported there and not raised."""
    from kubekit.lang import yaml as kyaml

    try:
        text = read_limited(path).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        return CheckFile(path=path, errors=(f"{path}: cannot be read: {error}",))
    errors, notes, checks, cases_read = [], [], [], []
    documents: list[Any] = []
    try:
        documents = [document for document in kyaml.load_all(text, name=str(path)) if document is not None]
    except kyaml.YamlError as error:
        errors.append(str(error))
    for document in documents:
        kind = document.get("kind") if isinstance(document, dict) else None
        if kind == cases.KIND:
            try:
                cases_read.append(cases.parse(document))
            except BadCases as error:
                errors.append(f"{path}: {error}")
        # An object of this API whose kind is misspelt is an error rather than something else to skip.
        elif kind == KIND or str(document.get("apiVersion") if isinstance(document, dict) else None) == API_VERSION:
            try:
                check = declared_check(document, file=str(path), text=text)
            except DeclarativeError as error:
                errors.append(str(error))
                continue
            checks.append(check)
            refusals = [why for right in rights.rights_of_checks([check]) if (why := rights.why_not(right))]
            errors += [f"{path}: {check.name}: {why}" for why in refusals]
            notes += [f"{path}: {note}" for note in _notes(document, check)]
    return CheckFile(path=path, checks=tuple(checks), cases=tuple(cases_read), errors=tuple(errors), notes=tuple(notes))


def _notes(document: dict[str, Any], check: Check) -> Iterator[str]:
    """Yields notes about likely mistakes that are allowed."""
    spec = document.get("spec") or {}
    risk = spec.get("risk") or {}
    if not risk.get("remediation"):
        yield f"{check.name}: spec.risk.remediation is missing: say what helps"
    if not spec.get("targets"):
        yield f"{check.name}: spec.targets is missing: it is for updates to every later release"
    built_in_names = {
        name for catalogue_check in CHECKS for name in (catalogue_check.name, catalogue_check.unknown_risk)
    }
    if risk.get("name") in built_in_names:
        yield f"{check.name}: risk {risk['name']} is a built-in check's, and would be merged with it"
    annotations = (document.get("metadata") or {}).get("annotations") or {}
    if str(annotations.get(_INCLUDE)) != "true":
        yield f'{check.name}: has no annotation {_INCLUDE}: "true", so no usual cluster gets it'
