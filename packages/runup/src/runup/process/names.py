"""Names of the cluster's own objects, and the user of our pods, that several layers use."""

OPERATOR_NAMESPACE = "openshift-cluster-version-operator"
"""The namespace of the managing operator and the preflights, unless CVO_NAMESPACE overrides it.

Source: docs/decisions/0072 D19.
"""

NOBODY = 65534
"""The user `nobody`: the image names no user, and its processes write no file but in /tmp."""
