"""Loads a release from the files of its image: metadata, manifests in order, and checks.

Pure over bytes: the caller reads the folder or the layers. All errors are collected into one `PayloadError`, so that a
release can be corrected in one go. Nothing is filtered here; see `runup.release.decide.inclusion`.
"""

from __future__ import annotations

import ast
import base64
import re
from collections.abc import Iterable, Mapping

import msgspec

from kubekit.error_types import Terminal
from runup.release.decide import inclusion, release_metadata
from runup.release.decide.manifest import Manifest, parse_manifests


class TemplateError(ValueError):
    """The text uses an unsupported action, or names an image that the release does not have."""


class Values(msgspec.Struct, frozen=True):
    """The values that a template may refer to; `images` maps short names to pull specs."""

    release_image: str = ""
    cluster_profile: str = ""
    images: Mapping[str, str] = msgspec.field(default_factory=dict)


_TEXT = r'"(?:[^"\\\n]|\\.)*"|`[^`]*`'
# Text literals come first: braces inside a literal do not close the action.
_ACTION = re.compile(rf"\{{\{{(-\s)?((?:{_TEXT}|[^\"`{{}}])*?)(\s-)?\}}\}}", re.DOTALL)
_FIELD = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)(?:\.([A-Za-z_][A-Za-z0-9_]*))?\Z")
_INDEX = re.compile(rf"index\s+\.Images\s+({_TEXT})\Z")
_LITERAL = re.compile(rf"(?:{_TEXT})\Z")


def render(text: str, values: Values) -> str:
    """Returns `text` with its actions evaluated; raises TemplateError naming the line."""
    pieces = []
    position = 0
    trim_next = False
    while (start := text.find("{{", position)) >= 0:
        match = _ACTION.match(text, start)
        line = text.count("\n", 0, start) + 1
        if match is None:
            raise TemplateError(f"line {line}: an action is not closed, or is more than this reads")
        before = text[position:start]
        before = before.lstrip() if trim_next else before
        pieces += [before.rstrip() if match[1] else before, _evaluate(match[2].strip(), values, line)]
        trim_next = bool(match[3])
        position = match.end()
    remaining = text[position:]
    return "".join([*pieces, remaining.lstrip() if trim_next else remaining])


def _evaluate(expression: str, values: Values, line: int) -> str:
    """Returns the value of one action of a template. Raises TemplateError with the line."""
    if expression.startswith("/*") and expression.endswith("*/"):
        return ""
    if _LITERAL.match(expression):
        return _unquote(expression, line)
    if index := _INDEX.match(expression):
        return _image(_unquote(index[1], line), values, line)
    name = _FIELD.match(expression)
    if name and name[1] == "Images" and name[2]:
        return _image(name[2], values, line)
    simple = {".ReleaseImage": values.release_image, ".ClusterProfile": values.cluster_profile}
    if expression in simple:
        return simple[expression]
    raise TemplateError(f"line {line}: {{{{{expression}}}}} is more than this reads")


def _image(name: str, values: Values, line: int) -> str:
    if name not in values.images:
        raise TemplateError(f"line {line}: image {name!r} is not in image-references")
    return values.images[name]


def _unquote(literal: str, line: int) -> str:
    """Returns the text of a Go string literal. Raises TemplateError with the line."""
    if literal[0] == "`":
        return literal[1:-1].replace("\r", "")
    try:
        # Go's escapes inside double quotes mean the same in Python.
        return str(ast.literal_eval(literal))
    except (SyntaxError, ValueError) as error:
        raise TemplateError(f"line {line}: {literal} is not text") from error


MANIFESTS = "manifests"
RELEASE_MANIFESTS = "release-manifests"
CHECKS = "preflight-checks"
FOLDERS = (MANIFESTS, RELEASE_MANIFESTS, CHECKS)
"""The folders of an image that make it a release; nothing else of it needs to be read."""

METADATA_FILE = f"{RELEASE_MANIFESTS}/release-metadata"
IMAGE_REFERENCES_FILE = f"{RELEASE_MANIFESTS}/image-references"
VERIFICATION_ANNOTATION = "release.openshift.io/verification-config-map"

INTEGRITY = "UpdatePayloadIntegrity"

_SUFFIXES = (".yaml", ".yml", ".json")
# The constants of 64-bit FNV-1, as in Go's hash/fnv.
_FNV_OFFSET, _FNV_PRIME, _FNV_MASK = 0xCBF29CE484222325, 0x100000001B3, 2**64 - 1


class PayloadError(Terminal):
    """A release cannot be loaded; `errors` has every reason, one for each file or document."""

    def __init__(self, message: str, errors: tuple[str, ...]) -> None:
        super().__init__(message, reason=INTEGRITY)
        self.errors = errors


class Skipped(msgspec.Struct, frozen=True):
    """A file or document that is not part of the release. `broken`: it should be, but cannot be read."""

    file: str
    reason: str
    broken: bool = False

    def __str__(self) -> str:
        return self.reason if self.reason.startswith(self.file) else f"{self.file}: skipped, {self.reason}"


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """A loaded release. `manifests` are in the order of application."""

    metadata: release_metadata.ReleaseMetadata
    image_references: release_metadata.ImageReferences
    manifests: tuple[Manifest, ...]
    checks: tuple[Manifest, ...]
    skipped: tuple[Skipped, ...] = ()

    @property
    def warnings(self) -> tuple[str, ...]:
        """A message for each skipped file."""
        return tuple(str(skipped) for skipped in self.skipped)

    @property
    def version(self) -> str:
        """The release's version."""
        return self.metadata.version

    @property
    def verification(self) -> Manifest | None:
        """The ConfigMap with the keys and stores by which this release verifies others, if it carries one."""
        return verification_of(self.manifests)


def load_payload(
    files: Mapping[str, bytes],
    *,
    source: str,
    release_image: str = "",
    profile: str = inclusion.DEFAULT_PROFILE,
    strict_templates: bool = False,
    keep_going: bool = False,
) -> Payload:
    """Returns the release made of `files` (path in the image to bytes; other paths are ignored); raises PayloadError.

    `source` is the folder or image, for messages. A template that cannot be rendered is skipped with a warning, since
    an older operator must be able to load a newer release; `strict_templates` makes it an error. With `keep_going` a
    file that cannot be parsed is skipped too, for callers that inspect rather than apply.
    """
    metadata: release_metadata.ReleaseMetadata | None = None
    references: release_metadata.ImageReferences | None = None
    errors = [f"{path} is missing" for path in (METADATA_FILE, IMAGE_REFERENCES_FILE) if path not in files]
    try:
        if METADATA_FILE in files:
            metadata = release_metadata.parse_release_metadata(files[METADATA_FILE])
    except release_metadata.MetadataError as error:
        errors.append(str(error))
    try:
        if IMAGE_REFERENCES_FILE in files:
            references = release_metadata.parse_image_references(files[IMAGE_REFERENCES_FILE])
        if metadata and references:
            release_metadata.check_same_version(metadata, references)
    except release_metadata.MetadataError as error:
        errors.append(str(error))
    values = Values(release_image, profile, references.images if references else {})
    skipped: list[Skipped] = []
    rendered = _render_files(files, values, skipped)
    if strict_templates:
        errors.extend(str(problem) for problem in skipped)
    broken: list[Skipped] = []
    loaded: dict[str, list[Manifest]] = {folder: [] for folder in FOLDERS}
    for path, data in sorted(rendered.items(), key=lambda file: FOLDERS.index(file[0].partition("/")[0])):
        manifests, problems = parse_manifests(path, data)
        loaded[path.partition("/")[0]] += manifests
        broken.extend(Skipped(path, str(problem), broken=True) for problem in problems)
    if keep_going:
        skipped += broken
    else:
        errors.extend(str(problem) for problem in broken)
    if errors or metadata is None or references is None:
        lines = "; ".join(errors)
        raise PayloadError(f"Error loading manifests from {source}: {lines}", tuple(errors))
    return Payload(
        metadata=metadata,
        image_references=references,
        manifests=(*loaded[MANIFESTS], *loaded[RELEASE_MANIFESTS]),
        checks=tuple(loaded[CHECKS]),
        skipped=tuple(skipped),
    )


def is_cases(path: str) -> bool:
    """Reports whether the file holds a check's tests, which lie next to it and are not part of a release's checks."""
    return path.endswith((".test.yaml", ".test.yml", ".test.json"))


def included_in(manifests: Iterable[Manifest], filters: inclusion.Filters) -> tuple[Manifest, ...]:
    """Returns those of `manifests` that a cluster as `filters` describe it gets, in order."""
    return tuple(
        manifest for manifest in manifests if isinstance(inclusion.include(manifest, filters), inclusion.Included)
    )


def verification_of(manifests: Iterable[Manifest]) -> Manifest | None:
    """Returns the first ConfigMap among `manifests` with keys and stores for the verification of other releases."""
    for manifest in manifests:
        core_config_map = (manifest.identity.group, manifest.identity.kind) == ("", "ConfigMap")
        if core_config_map and VERIFICATION_ANNOTATION in (manifest.annotations or {}):
            return manifest
    return None


def version_hash(manifests: Iterable[Manifest]) -> str:
    """Returns `status.versionHash` of the included `manifests`: FNV-1, 64 bits, URL-safe base64.

    Source: docs/reference/upstream.md 1.2.
    """
    value = _FNV_OFFSET
    for manifest in manifests:
        for byte in manifest.raw:
            value = (value * _FNV_PRIME & _FNV_MASK) ^ byte
    return base64.urlsafe_b64encode(value.to_bytes(8, "big")).decode()


def _render_files(files: Mapping[str, bytes], values: Values, skipped: list[Skipped]) -> dict[str, bytes]:
    """Returns the manifests by path, the operator's own rendered; a template that fails is added to `skipped`."""
    rendered: dict[str, bytes] = {}
    for path in sorted(files):
        folder, _, name = path.partition("/")
        if (
            folder not in FOLDERS
            or "/" in name
            or not name.endswith(_SUFFIXES)
            or (folder == CHECKS and is_cases(name))
        ):
            continue
        data = files[path]
        # Only the operator's own manifests are templates; all others are applied as they are.
        if folder == MANIFESTS and b"{{" in data:
            try:
                data = render(data.decode("utf-8"), values).encode("utf-8")
            except (TemplateError, UnicodeDecodeError) as error:
                skipped.append(Skipped(path, f"its template cannot be rendered: {error}"))
                continue
        rendered[path] = data
    return rendered
