"""The status of a cluster whose control plane runs as pods on another cluster (HyperShift)."""
