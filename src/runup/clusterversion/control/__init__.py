"""The clusterversion controller: observes caches, asks `decide` for a plan, carries it out, and tells what it did."""
