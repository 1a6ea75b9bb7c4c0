"""A component's operator, as the sandbox's releases ship it: it keeps its ClusterOperators and one operand."""
