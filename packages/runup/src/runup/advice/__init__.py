"""Update advice: the releases a cluster can update to, the risks that block an update, and those that were accepted."""
