"""Wire types of Kubernetes' own kinds: frozen, slim, one module a group-version; and the table of kinds."""
