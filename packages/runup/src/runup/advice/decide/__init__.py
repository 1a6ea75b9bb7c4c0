"""Decides on update advice: the releases that this cluster can update to, and the risks that block an update."""
