"""Decides on values alone: calendars, gates, and the steps of a run."""
