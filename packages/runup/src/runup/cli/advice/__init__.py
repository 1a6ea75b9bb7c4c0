"""The commands `runup upgrade recommend`, `channel`, `accept`, and `runup graph`."""
