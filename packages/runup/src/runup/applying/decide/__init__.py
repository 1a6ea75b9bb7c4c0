"""Decides how a release is applied: order of tasks, rendering, problems, progress. `control` carries it out."""
