"""runup: the release you want to go to checks the cluster you have, before the update."""

__version__ = "0.1.0"
