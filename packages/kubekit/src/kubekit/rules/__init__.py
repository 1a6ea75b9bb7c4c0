"""Rules of any Kubernetes, each written once as pure functions over typed objects: eviction, placement, requests."""
