"""Authentication, authorization and audit: who sends a request, whether they may, and the log of it."""
