"""Names of the cluster's own objects, and the user of our pods, that several layers use."""

import os

from runup import build_info

OPERATOR_NAMESPACE = "openshift-cluster-version-operator"
"""The namespace of the managing operator and the preflights, unless CVO_NAMESPACE overrides it.

Source: docs/decisions/0072 D19.
"""

NOBODY = 65534
"""The user `nobody`: the image names no user, and its processes write no file but in /tmp."""

# The ConfigMaps with the reports of preflights, and with the reason, author and end of each accepted risk.
HISTORY, ACCEPTED = "preflight-history", "accepted-risks"


def operator_namespace() -> str:
    """Returns the operator's namespace; CVO_NAMESPACE overrides the default (docs/decisions/0072 D19)."""
    return os.environ.get("CVO_NAMESPACE") or OPERATOR_NAMESPACE


def default_image() -> str | None:
    """Returns the pull spec of the image of the same release, None if none was set when this runup was built."""
    return build_info.IMAGE or None
