"""The target release's process: it watches the cluster, evaluates the checks, and writes the report."""
