"""The controllers that a cluster needs so that its API means something: workloads, garbage, namespaces, budgets.

Each is a function from what the caches hold to calls, run once for every key that changed; `runner.py` does the rest.
"""
