"""The building blocks of all commands' texts and pages."""
