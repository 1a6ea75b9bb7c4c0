"""The commands `runup sandbox` and `runup demo`."""
