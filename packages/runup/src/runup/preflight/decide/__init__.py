"""Decisions of a preflight: the workload to run, its report, and the resulting ClusterVersion."""
