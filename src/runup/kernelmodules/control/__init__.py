"""Kernel modules' validations: registries are asked, runs are started, statuses are written."""
