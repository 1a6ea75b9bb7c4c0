"""`runup release`: release images are made, read and compared."""
