"""The operator of a component in the sandbox's releases: it manages its ClusterOperators and one operand."""
