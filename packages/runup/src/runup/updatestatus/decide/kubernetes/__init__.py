"""The status of an update of a cluster without a ClusterVersion, in the form of an UpdateStatus."""
