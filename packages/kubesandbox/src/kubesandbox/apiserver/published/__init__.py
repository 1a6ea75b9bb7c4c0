"""Documents about the served kinds: discovery, OpenAPI, and tables for `kubectl get`."""
