"""ValidatingAdmissionPolicies and webhooks: which apply to a write, and what they say about it."""
