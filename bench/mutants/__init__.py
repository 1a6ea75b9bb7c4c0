"""Small changes of the code, and which of them no test notices."""
