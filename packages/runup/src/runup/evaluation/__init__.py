"""Evaluates facts into one report, and interprets reports: findings, baselines, comparisons, many clusters."""
