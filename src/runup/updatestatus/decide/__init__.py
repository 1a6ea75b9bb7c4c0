"""How the update goes: one snapshot of the cluster in, all insights of UpdateStatus out. Pure."""
