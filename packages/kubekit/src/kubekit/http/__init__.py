"""The blocking HTTP client of commands and of registries, and which addresses a request may reach."""
