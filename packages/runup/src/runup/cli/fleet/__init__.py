"""The commands of `runup fleet`."""
