"""Names of a cluster's own objects that more than one layer knows."""

OPERATOR_NAMESPACE = "openshift-cluster-version-operator"
"""Where the managing operator and the preflights run, unless CVO_NAMESPACE says otherwise (decision D19)."""
