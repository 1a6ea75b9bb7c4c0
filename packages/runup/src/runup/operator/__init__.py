"""The programs in the operator's image: `cluster-version-operator` and `kernel-module-preflight`."""
