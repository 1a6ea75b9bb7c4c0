"""The command `runup upgrade recommend`: the available updates, and the issues of each."""
