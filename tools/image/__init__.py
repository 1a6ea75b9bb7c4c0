"""The operator's image as an OCI layout, built from Debian's packages and the locked wheels; `make image`."""
