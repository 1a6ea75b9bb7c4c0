"""Names of the cluster's own objects that several layers use."""

OPERATOR_NAMESPACE = "openshift-cluster-version-operator"
"""The namespace of the managing operator and the preflights, unless CVO_NAMESPACE overrides it.

Source: docs/decisions/0072 D19.
"""
