"""`runup upgrade recommend`: updates, and what speaks against each."""
