"""The command `runup serve`, and the pages of the console."""
