"""Update advice: which releases this cluster can go to, and which risks stand in the way."""
