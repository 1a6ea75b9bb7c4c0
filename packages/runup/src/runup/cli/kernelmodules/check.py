"""Runs `runup kmod check`: reads Modules and nodes of a cluster or a dump, and registries; returns an exit code.

A cluster is only read. If listing its nodes is forbidden, the check continues without them, and a note says so.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from kubekit.api import codec
from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import Object, key_of
from kubekit.api.scheme import Resource, resource_of
from runup import __version__
from runup.api.kmm_v1beta1 import Module
from runup.cli.errors import CommandError
from runup.cli.kernelmodules import module_table as rendered
from runup.cli.output import screen_of, write
from runup.cli.render.text import err, machine, out
from runup.kernelmodules.control.module_readiness import AssessmentTarget, assess_modules
from runup.kernelmodules.control.registries import ClusterRegistries, GivenRegistries, Registries, with_registries_of
from runup.kernelmodules.decide.readiness import Readiness, Status, loading_modules
from runup.kernelmodules.decide.toolkit import REFERENCES_FILE, toolkit_image
from runup.preflight.decide.findings import APPLY, EXIT_CLEAR, UNKNOWN

if TYPE_CHECKING:
    from kubekit.kube.list_pages import Listing
    from kubekit.oci.access import Access
    from runup.dump.load import Dump
    from runup.process.connection import Connection

AGENT = f"runup-kmod-check/{__version__}"
K = TypeVar("K", bound=Object)


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags of the command. `modules` are NAME or NAMESPACE/NAME, all if empty; `dump` is "" for the cluster."""

    to_image: str
    kernel: str
    toolkit_image: str
    modules: tuple[str, ...]
    dump: str
    at_once: int
    output: str | None


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of the check; `notes` say what could not be read, so that the answer may be incomplete."""

    found: tuple[Readiness, ...] = ()
    notes: list[str] = field(default_factory=list)


def run(connection: Connection, flags: Flags, access: Access) -> int:
    """Checks the Modules, prints the result, and returns the exit code. Raises CommandError."""
    target = _wanted_kernel(flags, access)
    result = asyncio.run(
        _check_dump(flags, target, access) if flags.dump else _check_cluster(connection, flags, target, access)
    )
    text = (
        machine(rendered.as_data(result.found, result.notes), flags.output)
        if flags.output in ("json", "yaml")
        else rendered.table(result.found, screen_of(sys.stdout), wide=flags.output == "wide")
    )
    write([*(err(f"warning: {note}\n") for note in result.notes), out(text)])
    return exit_code(result)


def exit_code(result: CheckResult) -> int:
    """Returns 2 if a Module will not load, else 3 if that is not known of a Module or if there are notes, else 0."""
    # The same codes as those of `--wait`: docs/decisions/0017-what-the-wait-and-its-exit-code-mean.md.
    statuses = {readiness.status for readiness in result.found}
    if Status.FALSE in statuses:
        return APPLY
    return UNKNOWN if Status.UNKNOWN in statuses or result.notes else EXIT_CLEAR


def _wanted_kernel(flags: Flags, access: Access) -> AssessmentTarget:
    """Returns the target of the check; reads the driver toolkit's image name if the release is a local OCI layout."""
    from kubekit.oci.image_locations import LAYOUT, REGISTRY, parse_location, read_image_files

    if flags.to_image.startswith(LAYOUT):
        files, _ = read_image_files(parse_location(flags.to_image), (REFERENCES_FILE.partition("/")[0],), access)
        return AssessmentTarget(toolkit=toolkit_image(files.get(REFERENCES_FILE, b"{}"), flags.to_image))
    return AssessmentTarget(
        flags.kernel, flags.to_image.removeprefix(REGISTRY), flags.toolkit_image.removeprefix(REGISTRY)
    )


async def _check_cluster(connection: Connection, flags: Flags, target: AssessmentTarget, access: Access) -> CheckResult:
    """Checks the Modules of the live cluster; notes say what could not be read.

    Raises CommandError if the cluster has no Module of a name that was given.
    """
    from kubekit.kube.api_errors import Forbidden, NotFound
    from kubekit.kube.list_pages import Listing
    from runup.process.read_only_client import ReadOnlyClient

    async with ReadOnlyClient(connection.config(), namespace="", user_agent=AGENT) as client:
        try:
            modules = await client.listing(Module)
        except NotFound:
            return CheckResult()  # no such kind, so no such objects
        try:
            nodes = await client.listing(Node)
        except Forbidden as error:
            nodes = Listing([], "", incomplete=(f"which there are is not known: {error.message}",))
        notes = [*_listing_notes("Module", modules), *_listing_notes("Node", nodes)]
        registries = ClusterRegistries(client, _access_for_modules(access, target))
        return await _assess_chosen(modules.items, nodes.items, flags, target, registries, notes)


async def _check_dump(flags: Flags, target: AssessmentTarget, access: Access) -> CheckResult:
    """Checks the Modules of a dump; notes say what the dump lacks.

    Raises CommandError if the folder is not a dump, or if the dump has no Module of a name that was given.
    """
    from runup.dump.dump_files import BadDump
    from runup.dump.load import read

    resources = [resource_of(kind) for kind in (Module, Node)]
    try:
        # Without its ClusterVersion a folder is not recognised as a dump.
        dump = read(Path(flags.dump), only=("clusterversions", *(resource.plural for resource in resources)))
    except BadDump as error:
        raise CommandError(error.message) from error
    notes = [why for resource in resources if (why := _why_incomplete(dump, resource))]
    notes += dump.problems
    modules, nodes = _decode_objects(Module, dump.objects, notes), _decode_objects(Node, dump.objects, notes)
    return await _assess_chosen(
        modules, nodes, flags, target, GivenRegistries(_access_for_modules(access, target)), notes
    )


def _access_for_modules(access: Access, target: AssessmentTarget) -> Access:
    """Returns the access to registries for the images that Modules name.

    The registries of the release and the toolkit image were typed by the user, so their access is not for Modules.
    """
    return with_registries_of(access, *filter(None, (target.release, target.toolkit)))


def _why_incomplete(dump: Dump, resource: Resource) -> str:
    """Returns why the dump may lack objects of a kind, "" if it has all of them."""
    key = (resource.group, resource.plural)
    if key in dump.collected.whole:
        return ""
    if key in dump.collected.partly:
        return f"{resource.name}: {dump.collected.why_partly(key)}"
    return f"the dump holds no {resource.name}: whether there were any is not known"


def _listing_notes(kind: str, listed: Listing[K]) -> list[str]:
    """Returns a note for each object that could not be decoded, and for each reason why the list is incomplete."""
    return [f"{kind} {undecoded}" for undecoded in listed.undecoded] + [f"{kind}s: {why}" for why in listed.incomplete]


async def _assess_chosen(
    modules: Sequence[Module],
    nodes: Sequence[Node],
    flags: Flags,
    target: AssessmentTarget,
    registries: Registries,
    notes: list[str],
) -> CheckResult:
    """Returns the readiness of the Modules that the flags choose."""
    chosen_modules = _choose_modules(modules, flags.modules)
    return CheckResult(await assess_modules(chosen_modules, nodes, target, registries, at_once=flags.at_once), notes)


def _choose_modules(modules: Sequence[Module], module_names: Sequence[str]) -> list[Module]:
    """Returns the named Modules, or all if none is named; raises CommandError for an unknown name."""
    if not module_names:
        return list(modules)
    loading = loading_modules(modules)
    for name in module_names:
        if not any(name in (module.metadata.name, str(key_of(module))) for module in loading):
            known_names = ", ".join(str(key_of(module)) for module in loading) or "none"
            raise CommandError(f"there is no Module {name} that loads a kernel module; there are: {known_names}")
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
