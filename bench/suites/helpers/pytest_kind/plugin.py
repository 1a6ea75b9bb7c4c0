"""Declares the option of pytest-kind that conftest files read."""

from typing import Any


def pytest_addoption(parser: Any) -> None:
    """Declares --keep-cluster."""
    parser.addoption("--keep-cluster", action="store_true")
