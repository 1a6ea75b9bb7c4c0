"""Update advice: which releases a cluster can go to, which risks stand in the way, and which were accepted."""
