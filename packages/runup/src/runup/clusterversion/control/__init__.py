"""The clusterversion controller: observes caches, gets a plan from `decide`, executes it, and reports what it did."""
