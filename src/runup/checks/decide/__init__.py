"""Decides what checks come to: values in, outcomes and reports out."""
