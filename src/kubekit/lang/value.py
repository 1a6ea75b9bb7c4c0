"""Immutable values with named parts, for modules that every command imports.

They resemble `typing.NamedTuple` without being tuples: a NamedTuple class takes ten times as long to create, which for
the dozen of a command was a quarter of a bare interpreter. Where msgspec is imported anyway, `msgspec.Struct` serves
the same purpose.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn, Self, dataclass_transform


@dataclass_transform(frozen_default=True)
class Value:
    """Base of values. Subclasses name their parts by annotations, with immutable defaults; they have no subclasses."""

    _names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls._names = tuple(cls.__annotations__)

    def __init__(self, *values: Any, **named: Any) -> None:
        names = self._names
        parts = {**dict(zip(names, values, strict=False)), **named}
        missing = [name for name in names if name not in parts and not hasattr(self, name)]
        if missing or len(parts) != len(values) + len(named) or not parts.keys() <= set(names):
            raise TypeError(f"{type(self).__name__} has the parts {', '.join(names)}; {len(values)}, {[*named]} given")
        vars(self).update(parts)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{name} of {type(self).__name__} cannot be changed")

    def replaced(self, **changes: Any) -> Self:
        """Returns a copy with other parts."""
        return type(self)(**{**vars(self), **changes})

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and _parts(self) == _parts(other)

    def __hash__(self) -> int:
        return hash(tuple(_parts(self).items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={part!r}' for name, part in _parts(self).items())})"


def _parts(value: Value) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value._names}
