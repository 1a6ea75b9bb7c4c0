"""The command `runup kmod`: checks whether kernel modules will load, without an operator."""
