"""A preflight from the target release: what runs, what it reported, and what that means for ClusterVersion."""
