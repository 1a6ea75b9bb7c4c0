"""Evaluates checks and builds their reports as pure functions: values in, outcomes and reports out."""
