"""Messages about packages that are part of an extra of the distribution kube-runup."""

from __future__ import annotations

SANDBOX = "kubesandbox"
"""The package of the extra `sandbox`; an installation without it has no sandbox and no rehearsals."""


def missing_package(package: str, extra: str) -> str:
    """Returns that a package is not installed, and the way out."""
    return f"package {package} is not installed; install it: pip install 'kube-runup[{extra}]'"


def missing_sandbox() -> str:
    """Returns that the extra `sandbox` is not installed, and the way out."""
    return missing_package(SANDBOX, "sandbox")
