"""A Kubernetes API server with controllers and a node agent, for tests and local use without containers or root."""
