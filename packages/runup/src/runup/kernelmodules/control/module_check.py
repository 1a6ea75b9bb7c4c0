"""Checks the Modules of a cluster or a dump for `runup kmod check`: reads Modules, nodes and registries only.

If listing the nodes of a cluster is forbidden, the check continues without them, and a note says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from kubekit.api import codec
from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import Object, key_of
from kubekit.api.scheme import resource_of
from kubekit.error_types import InputError
from kubekit.kube.api_errors import Forbidden, NotFound
from kubekit.kube.list_pages import Listing
from kubekit.oci.access import Access
from kubekit.oci.image_locations import LAYOUT, REGISTRY, parse_location, read_image_files
from runup import __version__
from runup.api.kmm_v1beta1 import Module
from runup.dump.dump_files import BadDump
from runup.dump.load import read
from runup.kernelmodules.control.module_readiness import AssessmentTarget, assess_modules
from runup.kernelmodules.control.registries import ClusterRegistries, GivenRegistries, with_registries_of
from runup.kernelmodules.decide.readiness import Readiness, loading_modules
from runup.kernelmodules.decide.toolkit import REFERENCES_FILE, toolkit_image
from runup.process.connection import Connection
from runup.process.read_only_client import ReadOnlyClient

AGENT = f"runup-kmod-check/{__version__}"
K = TypeVar("K", bound=Object)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """The kernel or image to check for; `modules` are NAME or NAMESPACE/NAME, all if empty, `dump` a folder or ""."""

    to_image: str
    kernel: str
    toolkit_image: str
    modules: tuple[str, ...]
    dump: str
    at_once: int


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of the check; `notes` say what could not be read, so that the answer may be incomplete."""

    found: tuple[Readiness, ...] = ()
    notes: list[str] = field(default_factory=list)


def check_modules(connection: Connection, request: CheckRequest, access: Access) -> CheckResult:
    """Returns the readiness of the chosen Modules.

    Raises InputError if the folder is not a dump, or if there is no Module of a name that was given.
    """
    if request.to_image.startswith(LAYOUT):
        files, _ = read_image_files(parse_location(request.to_image), (REFERENCES_FILE.partition("/")[0],), access)
        target = AssessmentTarget(toolkit=toolkit_image(files.get(REFERENCES_FILE, b"{}"), request.to_image))
    else:
        image, toolkit = (text.removeprefix(REGISTRY) for text in (request.to_image, request.toolkit_image))
        target = AssessmentTarget(request.kernel, image, toolkit)
    # The registries of the release and the toolkit image were typed by the user, so their access is not for Modules.
    access = with_registries_of(access, *filter(None, (target.release, target.toolkit)))
    check = (
        _check_dump(request, target, access) if request.dump else _check_cluster(connection, request, target, access)
    )
    return asyncio.run(check)


async def _check_cluster(
    connection: Connection, request: CheckRequest, target: AssessmentTarget, access: Access
) -> CheckResult:
    async with ReadOnlyClient(connection.config(), namespace="", user_agent=AGENT) as client:
        try:
            modules = await client.listing(Module)
        except NotFound:
            return CheckResult()  # no such kind, so no such objects
        try:
            nodes = await client.listing(Node)
        except Forbidden as error:
            nodes = Listing([], "", incomplete=(f"which there are is not known: {error.message}",))
        notes = []
        for kind, undecoded, incomplete in (
            ("Module", modules.undecoded, modules.incomplete),
            ("Node", nodes.undecoded, nodes.incomplete),
        ):
            notes += [f"{kind} {bad}" for bad in undecoded] + [f"{kind}s: {why}" for why in incomplete]
        registries = ClusterRegistries(client, access)
        chosen_modules = _choose_modules(modules.items, request.modules)
        found = await assess_modules(chosen_modules, nodes.items, target, registries, at_once=request.at_once)
        return CheckResult(found, notes)


async def _check_dump(request: CheckRequest, target: AssessmentTarget, access: Access) -> CheckResult:
    resources = [resource_of(kind) for kind in (Module, Node)]
    try:
        # Without its ClusterVersion a folder is not recognised as a dump.
        dump = read(Path(request.dump), only=("clusterversions", *(resource.plural for resource in resources)))
    except BadDump as error:
        raise InputError(error.message) from error
    notes = []
    for resource in resources:
        key = (resource.group, resource.plural)
        if key in dump.collected.partly and key not in dump.collected.whole:
            notes.append(f"{resource.name}: {dump.collected.why_partly(key)}")
        elif key not in dump.collected.whole:
            notes.append(f"the dump holds no {resource.name}: whether there were any is not known")
    notes += dump.problems
    modules, nodes = _decode_objects(Module, dump.objects, notes), _decode_objects(Node, dump.objects, notes)
    chosen_modules = _choose_modules(modules, request.modules)
    registries = GivenRegistries(access)
    return CheckResult(await assess_modules(chosen_modules, nodes, target, registries, at_once=request.at_once), notes)


def _choose_modules(modules: Sequence[Module], module_names: Sequence[str]) -> list[Module]:
    """Returns the named Modules, or all if none is named; raises InputError for an unknown name."""
    if not module_names:
        return list(modules)
    loading = loading_modules(modules)
    for name in module_names:
        if not any(name in (module.metadata.name, str(key_of(module))) for module in loading):
            known_names = ", ".join(str(key_of(module)) for module in loading) or "none"
            raise InputError(f"there is no Module {name} that loads a kernel module; there are: {known_names}")
    return [module for module in loading if {module.metadata.name, str(key_of(module))} & set(module_names)]


def _decode_objects(kind: type[K], objects: Sequence[codec.JSON], notes: list[str]) -> list[K]:
    """Returns the objects of `kind` in a dump; adds a note for each that cannot be decoded."""
    resource = resource_of(kind)
    decoded = []
    for obj in objects:
        if (obj["kind"], obj["apiVersion"]) != (resource.kind, resource.api_version):
            continue
        try:
            decoded.append(codec.convert(kind, obj))
        except codec.DecodeError as error:
            metadata = obj.get("metadata") or {}
            notes.append(f"{resource.kind} {metadata.get('namespace', '')}/{metadata.get('name')}: {error}")
    return decoded
