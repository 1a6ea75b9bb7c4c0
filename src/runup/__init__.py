"""runup: the release you want to go to checks the cluster you have, before the update."""
