"""A preflight from the target release: its workload, its process, its report, and the risks that come of it."""
