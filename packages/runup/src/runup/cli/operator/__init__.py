"""The commands of the programs in the operator's image."""
