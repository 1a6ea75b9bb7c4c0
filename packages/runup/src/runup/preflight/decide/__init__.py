"""Decisions of a preflight: the workload to run, the report that it returns, and what that means for ClusterVersion."""
