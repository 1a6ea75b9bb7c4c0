"""What is known about a cluster before it is evaluated: from a dump, from a live cluster, or collected into a dump."""
