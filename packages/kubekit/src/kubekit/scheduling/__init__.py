"""The rules of Kubernetes' scheduler and eviction API that need one pod and one node or budget: pure functions."""
