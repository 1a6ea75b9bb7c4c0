"""Reads versions of Kubernetes, and decides how far kubelets may be behind the API server.

Source: https://kubernetes.io/releases/version-skew-policy/.
"""

from __future__ import annotations

import re

from kubekit.lang.version import Version, parse

# How many minor versions a kubelet may be behind the API server; a kubelet older than 1.25 only two.
KUBELET_SKEW = 3
KUBELET_SKEW_BEFORE_1_25 = 2
# What distributions add to a version for one build of it: not GKE's, which is a separate patch.
_BUILD = re.compile(r"\+.*|-eks-[0-9a-f]+$")
_GKE = re.compile(r"-gke\.(\d+)")
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?=$|[-+.])")


def version_of(text: str) -> Version | None:
    """Returns the version of Kubernetes in a server's or kubelet's words (`v1.34.2+k3s1`, `1.36`), or None.

    What a distribution adds behind it does not make it older.
    """
    match = _VERSION.match(text.strip())
    return parse(f"{match[1]}.{match[2]}.{match[3] or 0}") if match else None


def is_minor(text: str) -> bool:
    """Returns whether the text names a minor version and no patch, such as `1.36`."""
    match = _VERSION.match(text.strip())
    return match is not None and match[3] is None


def is_kubernetes(text: str) -> bool:
    """Returns whether the text is a version of Kubernetes and not of OpenShift, whose first is 3."""
    version = version_of(text)
    return version is not None and version.major == 1


def allowed_skew(kubelet_minor: int) -> int:
    """Returns how many minor versions a kubelet of 1.`kubelet_minor` may be behind the API server."""
    return KUBELET_SKEW_BEFORE_1_25 if kubelet_minor < 25 else KUBELET_SKEW


def without_build(text: str) -> str:
    """Returns the version without what marks one build of it: `v1.34.2+k3s1` and `v1.34.2-eks-a737599` are v1.34.2."""
    return _BUILD.sub("", text)


def order_of(text: str) -> tuple[int, ...]:
    """Returns the numbers by which versions of kubelets and servers are compared, empty if the text is not a version.

    A minor version alone has two numbers and a patch three; GKE appends a patch number.
    """
    match = _VERSION.match(text.strip())
    if match is None:
        return ()
    numbers = [match[1], match[2], *([match[3]] if match[3] else [])]
    own = _GKE.search(text)
    return tuple(map(int, [*numbers, own[1]] if own else numbers))
