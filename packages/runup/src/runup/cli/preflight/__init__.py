"""`runup preflight`: runs preflights without an operator, and shows what earlier ones found."""
