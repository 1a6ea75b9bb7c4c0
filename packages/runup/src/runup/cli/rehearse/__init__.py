"""`runup rehearse`: rehearses an update on a copy of the cluster."""
