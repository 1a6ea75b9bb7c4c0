"""A Kubernetes API server on SQLite, for the sandbox and for tests with real clients."""
