"""Arithmetic with lists of resources, by name, as `resource.Quantity` and quota/v1 of Kubernetes do it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kubekit.lang.quantity import add_quantities, parse_quantity

Amounts = Mapping[str, str]


def add_amounts(first: Amounts, other: Amounts) -> dict[str, str]:
    """Returns the sums, each in the format of its first operand that is not zero."""
    return {
        name: add_quantities(first.get(name, "0"), other.get(name, "0"))
        for name in (*first, *(set(other) - set(first)))
    }


def growth(new: Amounts, old: Amounts) -> dict[str, str]:
    """Returns by how much `new` exceeds `old`, where it does."""
    return {
        name: add_quantities(amount, f"-{old.get(name, '0')}")
        for name, amount in new.items()
        if parse_quantity(amount) > parse_quantity(old.get(name, "0"))
    }


def larger_of_both(first: Amounts, other: Amounts) -> dict[str, str]:
    """Returns the larger amount of each name."""
    largest = {**first}
    for name, amount in other.items():
        if name not in largest or parse_quantity(amount) > parse_quantity(largest[name]):
            largest[name] = amount
    return largest


def is_more(amount: str) -> bool:
    """Returns whether an amount is greater than zero."""
    return parse_quantity(amount) > 0


def select_names(amounts: Amounts, names: Collection[str]) -> dict[str, str]:
    """Returns the amounts of these names."""
    return {name: amount for name, amount in amounts.items() if name in names}


def names_exceeding(amounts: Amounts, limits: Amounts) -> list[str]:
    """Returns the names, sorted, whose amounts exceed their limits."""
    return sorted(
        name
        for name, amount in amounts.items()
        if name in limits and parse_quantity(amount) > parse_quantity(limits[name])
    )


def amounts_text(amounts: Amounts) -> str:
    """Returns amounts as they are in messages: `cpu=1,pods=2`."""
    return ",".join(f"{name}={amounts[name]}" for name in sorted(amounts))
