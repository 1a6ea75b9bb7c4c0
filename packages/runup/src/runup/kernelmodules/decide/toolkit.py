"""The kernel flavours of nodes: architecture, real-time or not, page size. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from kubekit.api.core_v1 import Node
from kubekit.error_types import Terminal


class Flavour(msgspec.Struct, frozen=True, order=True):
    """The flavour of a node's kernel. `pages` is "64k" for a kernel with 64 KiB pages, else empty."""

    architecture: str
    real_time: bool = False
    pages: str = ""

    def __str__(self) -> str:
        return f"{self.architecture} real-time" if self.real_time else self.architecture


def flavour_of(node: Node) -> Flavour:
    """Returns the flavour of the kernel that `node` runs; after an update it runs the same flavour."""
    kernel = node.status.node_info.kernel_version
    pages = "64k" if "+64k" in kernel else ""
    return Flavour(node.status.node_info.architecture or "amd64", is_real_time(kernel), pages)


def is_real_time(kernel: str) -> bool:
    """Returns whether `kernel`, as `uname -r` prints it, is a real-time kernel: of RHEL 8 (`rt7`) or 9 (`+rt`)."""
    return kernel.endswith("+rt") or any(part.startswith("rt") for part in kernel.split("."))


REFERENCES_FILE = "release-manifests/image-references"
TOOLKIT_FILE = "etc/driver-toolkit-release.json"
TOOLKIT = "driver-toolkit"
REASON = "ReleaseUnusable"

ENDINGS = {"amd64": "x86_64", "arm64": "aarch64", "ppc64le": "ppc64le", "s390x": "s390x"}
"""The last part of a kernel's name, by the architecture as images call it."""


class Toolkit(msgspec.Struct, frozen=True):
    """The kernels of a driver toolkit `image`, as nodes report them; `real_time` is empty if it has no such kernel.

    `system` is the RHEL version.
    """

    image: str
    kernel: str
    real_time: str = ""
    system: str = ""

    def chosen(self, *, real_time: bool) -> str:
        """Returns the real-time or the standard kernel; raises Terminal if there is no real-time kernel."""
        if real_time and not self.real_time:
            raise Terminal(
                "rt_kernel_version is missing for this release, probably not and x86_64 architecture "
                f"(driver toolkit {self.image})",
                reason=REASON,
            )
        return self.real_time if real_time else self.kernel


def toolkit_image(references: bytes, release: str) -> str:
    """Returns the pull spec of the driver toolkit in a release's image references; raises Terminal."""
    tags = _member(_json_object(references, REFERENCES_FILE), "spec", "tags")
    for tag in tags if isinstance(tags, list) else ():
        if isinstance(tag, dict) and tag.get("name") == TOOLKIT:
            name = _member(tag, "from", "name")
            if isinstance(name, str) and name:
                return name
            raise Terminal(f"{TOOLKIT} local reference is missing from {REFERENCES_FILE} of {release}", reason=REASON)
    raise Terminal(f"failed to find {TOOLKIT} entry in the {REFERENCES_FILE} file of {release}", reason=REASON)


def toolkit_of(data: bytes, image: str, architecture: str = "") -> Toolkit:
    """Returns the driver toolkit described by `data`; raises Terminal, also if it is of another `architecture`.

    Toolkits of 4.7 and 4.8 sometimes name their kernels without the architecture, which nodes never do: it is added.
    """
    document = _json_object(data, TOOLKIT_FILE)
    kernel, system, real_time = (
        value.strip() if isinstance(value := document.get(key), str) else ""
        for key in ("KERNEL_VERSION", "RHEL_VERSION", "RT_KERNEL_VERSION")
    )
    if not kernel or not system:
        raise Terminal(
            f"failed format of {TOOLKIT_FILE} file of {image}, both KernelVersion <{kernel}> and RHEL_VERSION "
            f"<{system}> should not be empty",
            reason=REASON,
        )
    return Toolkit(
        image,
        _with_architecture(kernel, image, architecture),
        _with_architecture(real_time, image, architecture) if real_time else "",
        system,
    )


def absent_error(image: str) -> Terminal:
    """Returns the error for an image that does not say which kernel it is for."""
    return Terminal(f"file {TOOLKIT_FILE} is not present in the image {image}", reason=REASON)


def _with_architecture(kernel: str, image: str, architecture: str) -> str:
    """Returns the kernel with its architecture. Raises Terminal if it is for another one than `architecture`."""
    architectures = {ending: name for name, ending in ENDINGS.items()}
    # A real-time kernel may end in `+rt` after the architecture.
    name_architecture = next(
        (architectures[part] for part in kernel.replace("+", ".").split(".") if part in architectures), ""
    )
    if name_architecture and architecture and name_architecture != architecture:
        raise Terminal(
            f"the driver toolkit {image} is for {name_architecture}, kernel {kernel}: "
            f"the release has no driver toolkit for {architecture}",
            reason=REASON,
        )
    ending = ENDINGS.get(architecture, "")
    return kernel if name_architecture or not ending else f"{kernel}.{ending}"


def _json_object(data: bytes, name: str) -> dict[str, Any]:
    """Returns a JSON object. Raises Terminal, which names the file."""
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Terminal(f"failed to unmarshal {name} data: {error}", reason=REASON) from error
    if not isinstance(document, dict):
        raise Terminal(f"failed to unmarshal {name} data: it is not an object", reason=REASON)
    return document


def _member(document: dict[str, Any], *path: str) -> Any:
    value: Any = document
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
