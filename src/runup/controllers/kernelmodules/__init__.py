"""The shells of kernel modules: what serves, reads images, watches and carries out."""
