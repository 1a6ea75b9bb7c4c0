"""The update status controller: watches a cluster and keeps its UpdateStatus object up to date."""
