"""The programs of the operator's image, as they are typed: `cluster-version-operator` and `kernel-module-preflight`."""
