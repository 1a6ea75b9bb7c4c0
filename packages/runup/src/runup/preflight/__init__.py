"""Preflight checks of an update from the target release: workload, target process, report, and resulting risks."""
