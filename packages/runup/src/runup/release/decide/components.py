"""Gathers the manifests of component images into a release, as upstream's release tooling does.

A component brings `/manifests`; a file without a place in the global order gets one in the component's own group,
`0000_50_<component>_`. Its own `/manifests/image-references` names the pull specs that its manifests use during
development; they become those of the release. `0.0.1-snapshot` becomes the release's version. Source: the documentation
of `oc adm release new`, openshift/cluster-version-operator docs/dev/operators.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kubekit.error_types import Terminal
from runup.release.decide.payload import CHECKS, INTEGRITY, RELEASE_MANIFESTS
from runup.release.decide.release_metadata import MetadataError, named_images

FOLDERS = ("manifests", CHECKS)
"""The folders of a component's image that go into a release."""

_OWN_REFERENCES = "manifests/image-references"
_VERSION = re.compile(rb"0\.0\.1-snapshot(?![-\w])")
# A file with this prefix has a place in the global order already.
_IN_ORDER = "0000_"
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")
# Prevents that a pull spec is replaced inside a longer one.
_PULL_SPEC_END = rb"(?![-\w.:/@])"


class ComponentError(Terminal):
    """A component's image cannot be part of the release; the message names component and file."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reason=INTEGRITY)


@dataclass(frozen=True, slots=True)
class Component:
    """A component's image: its name in image-references, its pull spec there, and its files."""

    name: str
    pullspec: str
    files: Mapping[str, bytes] = field(default_factory=dict)


def check_name(name: str) -> None:
    """Raises ComponentError for a name that no file of a release could contain."""
    if not _NAME.match(name):
        raise ComponentError(f"component {name!r}: a name is of a-z, 0-9 and single dashes")


def gather_files(components: tuple[Component, ...], images: Mapping[str, str], version: str) -> dict[str, bytes]:
    """Returns the files of `components` by path in the release; `images` are all of the release's images by name.

    Raises ComponentError for an image that a component needs and the release lacks, and for two files at one path.
    """
    release_files: dict[str, bytes] = {}
    owners: dict[str, str] = {}
    for component in components:
        replace_pull_specs = _replacer(component, images)
        for path, data in sorted(component.files.items()):
            folder, _, name = path.partition("/")
            if path == _OWN_REFERENCES or not name or "/" in name:
                continue
            if folder == CHECKS:
                target = f"{CHECKS}/{name}"
            else:
                order = "" if name.startswith(_IN_ORDER) else f"0000_50_{component.name}_"
                target = f"{RELEASE_MANIFESTS}/{order}{name}"
            if target in release_files:
                raise ComponentError(f"components {owners[target]} and {component.name} both bring {target}")
            owners[target] = component.name
            release_files[target] = _VERSION.sub(version.encode(), replace_pull_specs(data))
    return release_files


def _replacer(component: Component, images: Mapping[str, str]) -> Callable[[bytes], bytes]:
    """Returns a function that puts the release's pull specs in place of those of the component's manifests."""
    references = component.files.get(_OWN_REFERENCES)
    if references is None:
        return lambda data: data
    try:
        image_names = named_images(references)
    except MetadataError as error:
        raise ComponentError(f"component {component.name}: {_OWN_REFERENCES}: {error}") from error
    if missing := sorted(set(image_names) - set(images)):
        raise ComponentError(
            f"component {component.name}: {_OWN_REFERENCES} needs image {', '.join(missing)}, which the release does "
            f"not have; add --component {missing[0]}=IMAGE or --image-reference {missing[0]}=PULLSPEC"
        )
    table = {source.encode(): images[name].encode() for name, source in image_names.items() if source}
    pattern = re.compile(b"|".join(re.escape(source) + _PULL_SPEC_END for source in table))

    def replace_all(data: bytes) -> bytes:
        # In one pass, so that a replacement is never replaced again.
        return pattern.sub(lambda match: table[match[0]], data) if table else data

    return replace_all
