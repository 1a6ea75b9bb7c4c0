"""The target's process: observes the cluster, runs the checks, writes the report; and the reader of that report."""
