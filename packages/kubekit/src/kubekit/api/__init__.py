"""Wire types of Kubernetes' own kinds, frozen and slim, in one module per group and version; and the table of kinds."""
