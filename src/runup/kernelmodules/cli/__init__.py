"""`runup kmod`: whether kernel modules will load, without an operator."""
