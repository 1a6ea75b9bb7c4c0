"""The facts about a cluster before its evaluation: from a dump, from a live cluster, or collected into a dump."""
