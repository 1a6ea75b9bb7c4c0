"""What is known of a cluster before it is evaluated: from a dump, from a live cluster, or collected into a dump."""
