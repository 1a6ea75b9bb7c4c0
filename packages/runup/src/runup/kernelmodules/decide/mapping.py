"""Resolves a Module's kernel mappings: the image for a kernel, and how that image is built and signed.

In: a Module and a kernel as `uname -r` prints it. Out: `Resolved`, or `Unmapped` with the texts of Kernel Module
Management (kernelmapper.go; the first mapping that matches counts, even if another is more specific). Regular
expressions are RE2, as there, so that no pattern takes long.

Variables in image names are those of the library that Kernel Module Management uses (a8m/envsubst): `$VAR`, `${VAR}`,
`${VAR-default}`, `${VAR:-default}`, the same with `=`, `${VAR+other}` and `${VAR:+other}`, all of which may hold
further variables, and `$$` for a dollar. An unset variable is empty, and not an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from msgspec.structs import replace

from kubekit.error_types import Terminal
from kubekit.lang.cel import CelError, Program, compile_cel
from runup.api import kmm_v1beta1

MAX_DEPTH = 16
"""How deep variables may be nested; more than two levels are unusual."""

_NAME = re.compile(r"[A-Za-z0-9_]+")
_OPERATOR = re.compile(r":?[-=+]")
_SEPARATORS = re.compile(r"[.,-]")
_FOREIGN = re.compile(r"[^A-Za-z0-9._-]")
_FIELDS = 3


class BadSubstitution(ValueError):
    """Raised if a text cannot be substituted, or a kernel's version has too few parts."""


def variables(kernel: str) -> dict[str, str]:
    """Returns the variables of `kernel`, which is as `uname -r` prints it; raises BadSubstitution."""
    full = as_tag(kernel)
    fields = _SEPARATORS.sub("\0", full).split("\0")
    if len(fields) < _FIELDS or not all(fields[:_FIELDS]):
        raise BadSubstitution(
            f"invalid kernel version {kernel}: expected at least three components (major.minor.patch)"
        )
    x, y, z = fields[:_FIELDS]
    return {
        "KERNEL_FULL_VERSION": full,
        "KERNEL_VERSION": full,
        "KERNEL_XYZ": f"{x}.{y}.{z}",
        "KERNEL_X": x,
        "KERNEL_Y": y,
        "KERNEL_Z": z,
    }


def as_tag(kernel: str) -> str:
    """Returns `kernel` with every character that a tag cannot have replaced by `_`."""
    return _FOREIGN.sub("_", kernel)


def substitute(text: str, values: Mapping[str, str]) -> str:
    """Returns `text` with its variables substituted; raises BadSubstitution."""
    filled, _ = _substitute_from(text, 0, values=values, end="", depth=0)
    return filled


def _substitute_from(text: str, at: int, values: Mapping[str, str], end: str, depth: int) -> tuple[str, int]:
    """Returns the substituted `text` from `at` to `end` (empty: the end of the text), and the position of the end."""
    if depth > MAX_DEPTH:
        raise BadSubstitution(f"{text!r} has variables more than {MAX_DEPTH} deep in each other")
    pieces: list[str] = []
    while at < len(text):
        if end and text[at] == end:
            return "".join(pieces), at
        if text[at] != "$":
            pieces.append(text[at])
            at += 1
            continue
        name = _NAME.match(text, at + 1)
        if text.startswith("$", at + 1):
            piece, at = "$", at + 2
        elif text.startswith("{", at + 1):
            piece, at = _substitute_braced(text, at + 2, values, depth)
        elif name is not None:
            piece, at = values.get(name[0], ""), name.end()
        else:
            piece, at = "$", at + 1
        pieces.append(piece)
    if end:
        raise BadSubstitution(f"{text!r}: closing brace expected")
    return "".join(pieces), at


def _substitute_braced(text: str, at: int, values: Mapping[str, str], depth: int) -> tuple[str, int]:
    """Returns the text for `{NAME...}` at `at`, and the position after the brace. Raises BadSubstitution."""
    name = _NAME.match(text, at)
    if name is None:
        raise BadSubstitution(f"{text!r}: a variable's name is expected after the brace")
    value = values.get(name[0])
    operator = _OPERATOR.match(text, name.end())
    if operator is None:
        if not text.startswith("}", name.end()):
            raise BadSubstitution(f"{text!r}: closing brace expected")
        return value or "", name.end() + 1
    other, end = _substitute_from(text, operator.end(), values=values, end="}", depth=depth + 1)
    # With a colon an empty variable counts as unset, as in a shell.
    is_set = bool(value) if operator[0].startswith(":") else value is not None
    if operator[0].endswith("+"):
        return (other if is_set else ""), end + 1
    return (value or "" if is_set else other), end + 1


REASON = "KernelMappingFailed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The merged settings of a Module for one kernel.

    `module_names` are the modules whose files must be in the image, in the order of the spec; empty if modprobe gets
    raw arguments only. `kernel` is as it was given: files are below that name, while tags have it with other characters
    replaced by `_`.
    """

    kernel: str
    container_image: str
    module_names: tuple[str, ...] = ()
    dir_name: str = "/opt"
    build: kmm_v1beta1.Build | None = None
    sign: kmm_v1beta1.Sign | None = None
    registry_tls: kmm_v1beta1.TLSOptions = field(default_factory=kmm_v1beta1.TLSOptions)
    image_repo_secret: str = ""
    selector: dict[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """The folder of the kernel modules in the image, relative to its root."""
        return f"{self.dir_name.strip('/')}/lib/modules/{self.kernel}".lstrip("/")


class Unmapped(Terminal):
    """Raised if a Module has no usable mapping for a kernel; `cause` is the part of the message that says why."""

    def __init__(self, module: kmm_v1beta1.Module, kernel: str, cause: str) -> None:
        name = module.metadata.name
        action = f"failed to process kernel mapping in the module {name} for kernel version {kernel}"
        super().__init__(f"{action}: {cause}", reason=REASON)
        self.cause = cause


def resolve(module: kmm_v1beta1.Module, kernel: str) -> Resolved:
    """Returns the settings of `module` for `kernel`; raises Unmapped."""
    loader = module.spec.module_loader
    if loader is None:
        raise Unmapped(module, kernel, "spec.moduleLoader is missing, so there is no kernel module to look for")
    container = loader.container
    try:
        at, mapping = _first_matching(container.kernel_mappings, kernel)
        values = variables(kernel)
        image = mapping.container_image or container.container_image
        if not image:
            raise _NoMapping(f"missing spec.moduleLoader.container.kernelMappings[{at}].containerImage")
        # Only image names may use these two, as in Kernel Module Management.
        module_variables = {"MOD_NAME": module.metadata.name, "MOD_NAMESPACE": module.metadata.namespace}
        container_image = substitute(image, values | module_variables)
        if container.sign is None or mapping.sign is None:
            sign = container.sign or mapping.sign
        else:
            sign = replace(
                container.sign,
                unsigned_image=mapping.sign.unsigned_image or container.sign.unsigned_image,
                key_secret=mapping.sign.key_secret if mapping.sign.key_secret.name else container.sign.key_secret,
                cert_secret=mapping.sign.cert_secret if mapping.sign.cert_secret.name else container.sign.cert_secret,
                files_to_sign=(*container.sign.files_to_sign, *mapping.sign.files_to_sign),
            )
        if sign is not None:
            sign = replace(
                sign,
                unsigned_image=substitute(sign.unsigned_image, values),
                files_to_sign=tuple(substitute(path, values) for path in sign.files_to_sign),
            )
        return Resolved(
            kernel=kernel,
            container_image=container_image,
            module_names=module_names(container.modprobe),
            dir_name=container.modprobe.dir_name,
            build=_merged_build(container.build, mapping.build),
            sign=sign,
            registry_tls=container.registry_tls if mapping.registry_tls is None else mapping.registry_tls,
            image_repo_secret=module.spec.image_repo_secret.name if module.spec.image_repo_secret else "",
            selector=module.spec.selector,
        )
    except (_NoMapping, BadSubstitution) as error:
        raise Unmapped(module, kernel, str(error)) from error


def module_names(modprobe: kmm_v1beta1.Modprobe) -> tuple[str, ...]:
    """Returns the names of the modules that must be in the image, in the order of the spec.

    modprobe loads them in reverse: the last of `modulesLoadingOrder` is loaded first.
    """
    if not modprobe.module_name:
        return ()
    return tuple(dict.fromkeys((modprobe.module_name, *modprobe.modules_loading_order)))


class _NoMapping(ValueError):
    """Raised if no mapping can be used."""


def _first_matching(
    mappings: Sequence[kmm_v1beta1.KernelMapping], kernel: str
) -> tuple[int, kmm_v1beta1.KernelMapping]:
    """Returns the first mapping that matches the kernel, with its index. Raises _NoMapping."""
    for at, mapping in enumerate(mappings):
        if mapping.literal and mapping.literal == kernel:
            return at, mapping
        try:
            if mapping.regexp and _matches_anywhere().evaluate({"kernel": kernel, "regexp": mapping.regexp}):
                return at, mapping
        except CelError as error:
            raise _NoMapping(
                f'failed to find mapping for kernel {kernel}: could not match regexp "{mapping.regexp}" against kernel '
                f'"{kernel}": {error}'
            ) from error
    raise _NoMapping(f"failed to find mapping for kernel {kernel}: kernel mapping not found")


@cache
def _matches_anywhere() -> Program:
    """Returns the CEL program that matches a regular expression: CEL uses RE2, and matches anywhere in the text."""
    return compile_cel("kernel.matches(regexp)", {"kernel": "string", "regexp": "string"})


def _merged_build(
    container_build: kmm_v1beta1.Build | None, mapping_build: kmm_v1beta1.Build | None
) -> kmm_v1beta1.Build | None:
    """Returns the container's build with the mapping's settings; selector and base image's TLS stay the container's."""
    if container_build is None or mapping_build is None:
        return container_build or mapping_build
    overriding = {arg.name: arg for arg in mapping_build.build_args}
    container_names = {arg.name for arg in container_build.build_args}
    added = {arg.name: arg for arg in mapping_build.build_args if arg.name not in container_names}
    return replace(
        container_build,
        dockerfile_config_map=mapping_build.dockerfile_config_map
        if mapping_build.dockerfile_config_map.name
        else container_build.dockerfile_config_map,
        build_args=(*(overriding.get(arg.name, arg) for arg in container_build.build_args), *added.values()),
        secrets=(*container_build.secrets, *mapping_build.secrets),
    )
