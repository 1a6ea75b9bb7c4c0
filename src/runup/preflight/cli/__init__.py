"""`runup preflight`: a preflight without an operator, and what earlier ones found."""
