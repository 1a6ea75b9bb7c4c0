"""The update status controller: watches a cluster, and keeps its UpdateStatus true."""
