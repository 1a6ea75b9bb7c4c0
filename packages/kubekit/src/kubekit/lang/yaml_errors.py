"""The error of all YAML readers."""

from __future__ import annotations


class YamlError(ValueError):
    """The text is not YAML that Kubernetes would read. `line` and `column` count from 1, 0 if unknown."""

    def __init__(self, problem: str, *, name: str = "", line: int = 0, column: int = 0) -> None:
        place = [name] if name else []
        if line:
            place.append(f"line {line}" if not column else f"line {line}, column {column}")
        super().__init__(": ".join([", ".join(place), problem] if place else [problem]))
        self.problem = problem
        self.name = name
        self.line = line
        self.column = column
