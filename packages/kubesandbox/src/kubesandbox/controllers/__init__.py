"""The controllers that a cluster needs: workloads, garbage collection, namespaces, disruption budgets.

Each is a function from the state in caches to API calls, run once for every changed key by `controller_loop`.
"""
