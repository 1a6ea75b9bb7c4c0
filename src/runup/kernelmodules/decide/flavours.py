"""What kinds of kernel nodes run: of which architecture, real-time or not, with large pages or not. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from kubekit.api.core_v1 import Node


@dataclass(frozen=True, slots=True, order=True)
class Flavour:
    """What kind of kernel a node runs. `pages` is 64k where it has large ones."""

    architecture: str
    real_time: bool = False
    pages: str = ""

    def __str__(self) -> str:
        return f"{self.architecture} real-time" if self.real_time else self.architecture


def flavour_of(node: Node) -> Flavour:
    """The kind of kernel that `node` runs; it will run the same kind of the next release."""
    kernel = node.status.node_info.kernel_version
    pages = "64k" if "+64k" in kernel else ""
    return Flavour(node.status.node_info.architecture or "amd64", is_real_time(kernel), pages)


def is_real_time(kernel: str) -> bool:
    """Whether a kernel's name, as `uname -r` prints it, is a real-time kernel's: of RHEL 8 (`rt7`) or 9 (`+rt`)."""
    return kernel.endswith("+rt") or any(part.startswith("rt") for part in kernel.split("."))
