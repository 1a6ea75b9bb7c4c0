"""Custom resources: the kinds of CustomResourceDefinitions, and conversion webhooks."""
