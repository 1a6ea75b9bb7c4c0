"""A release of runup's own: everything that is published of one commit, `make release`."""
