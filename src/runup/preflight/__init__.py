"""A preflight from the target release: its workload, the target's process, its report, and the risks that come of it."""
