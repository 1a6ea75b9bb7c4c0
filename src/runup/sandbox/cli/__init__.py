"""`runup sandbox` and `runup demo`."""
