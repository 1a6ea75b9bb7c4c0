"""A client for any Kubernetes API: requests as values, two transports, watches, caches, work queue, leader election.

It has no update logic. `kubekit.kube.client_sync` (for the command line) imports neither asyncio nor aiohttp.
"""
