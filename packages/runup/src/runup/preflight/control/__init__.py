"""The target's process, which observes the cluster, runs the checks and writes the report, and the report's reader."""
