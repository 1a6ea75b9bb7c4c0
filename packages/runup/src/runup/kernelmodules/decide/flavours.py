"""The kernel flavours of nodes: architecture, real-time or not, page size. Pure."""

from __future__ import annotations

import msgspec

from kubekit.api.core_v1 import Node


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
