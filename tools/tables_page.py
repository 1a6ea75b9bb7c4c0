"""Write docs/reference/tables.md, the coverage and the age of each table: `python tools/tables_page.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
DATA = ROOT / "packages/runup/src/runup/checks/decide/data"
DISTRIBUTIONS = ROOT / "packages/runup/src/runup/rules/data/distributions.yaml"
PAGE = ROOT / "docs/reference/tables.md"
BY_PROGRAM = {
    **dict.fromkeys(("removed-apis", "api-lifecycle"), "`tools/removed_apis.py`"),
    **dict.fromkeys(
        ("removed-gates", "locked-gates", "removed-flags", "removed-volumes", "removed-metrics", "kubeadm-nodes"),
        "`tools/kubernetes_tables.py`",
    ),
}
CONTENT = {
    "removed-apis": "API versions that Kubernetes removes",
    "api-lifecycle": "when API versions are introduced, deprecated and replaced",
    "removed-gates": "feature gates that are added and removed",
    "locked-gates": "feature gates that are locked, with their values",
    "removed-flags": "flags, admission plug-ins and in-tree cloud providers",
    "removed-volumes": "in-tree volume plug-ins",
    "removed-metrics": "metrics of components, removed or hidden",
    "kubeadm-nodes": "labels and taints that kubeadm gives to nodes of the control plane",
    "changed-values": "values of settings that are refused or read in another way",
    "removed-config-apis": "versions of configuration files that are removed",
    "removed-addon-apis": "API versions that add-ons remove",
    "minimums": "container runtimes and cgroups that Kubernetes needs",
    "withdrawn-images": "images that no registry has any more",
    "read-only-clients": "clients whose reads are no use of an API version",
}
HEAD = """# Tables

Checks compare a cluster with tables. This page lists what each table covers, its source and its age. `make tables`
updates the tables that a program writes, prints the differences, and writes this page; it needs Go, which downloads the
sources of Kubernetes. Outside a table's coverage, a check is Unknown. What a prerelease of Kubernetes says is reported
as planned.

## Kubernetes

| table | content | minor versions | written by | date |
|---|---|---|---|---|
"""
ADDONS = """
## Add-ons

A version between two versions of the table counts as the older one. A version that is older than all of them is for no
later Kubernetes than the oldest. A version that is newer than the table is Unknown. The last column names the versions
whose rows come from a primary source that anybody can read again; the others are as the page in the column *source* had
them.

| add-on | versions | up to Kubernetes | source | date | from a primary source |
|---|---|---|---|---|---|
"""
ENDS = """
## Support and node images

| of | covers | source | date | from a primary source |
|---|---|---|---|---|
"""


def page() -> str:
    """Returns the text of the page."""
    return "".join((HEAD, *_tables(), ADDONS, *_addons(), ENDS, *_distributions()))


def _load(file: Path) -> dict[str, Any]:
    content = yaml.safe_load(file.read_text())
    assert isinstance(content, dict)
    return content


def _tables() -> Iterator[str]:
    for name, content in CONTENT.items():
        table = _load(DATA / f"{name}.yaml")
        covered = f"1.{table['first']} to 1.{table['last']}" if "first" in table else "each row's"
        if "first" not in table and "last" in table:
            covered = f"up to 1.{table['last']}"
        if planned := [minor for minor, row in (table.get("planned") or {}).items() if row]:
            covered += f"; planned: {', '.join(planned)}"
        yield f"| `{name}` | {content} | {covered} | {BY_PROGRAM.get(name, 'hand')} | {table['date']} |\n"


def _addons() -> Iterator[str]:
    for row in _load(DATA / "addons.yaml")["addons"]:
        versions, last = _coverage(row)
        ends = f"<{row['source']}> | {row['date']} | {row.get('verified', '')} |"
        yield f"| {row['name']} | {versions} | {last} | {ends}\n"


def _coverage(row: Mapping[str, Any]) -> tuple[str, str]:
    if "sameMinor" in row:
        return "each", "its own minor version"
    if "least" in row:
        minors = list(row["least"])
        return f"the first for each of {minors[0]} to {minors[-1]}", minors[-1]
    versions = list(row["ranges"])
    last = max((ends[1] if len(ends) > 1 else 0 for ends in row["ranges"].values()), default=0)
    is_open = any(len(ends) == 1 for ends in row["ranges"].values())
    return f"{versions[0]} to {versions[-1]}", "open" if is_open else f"1.{last}"


def _distributions() -> Iterator[str]:
    table = _load(DISTRIBUTIONS)
    supports = [("Kubernetes", table["upstream"])]
    supports += [(row["name"], row["support"]) for row in table["distributions"] if "support" in row]
    for name, support in supports:
        minors = list(support["ends"])
        source = support["source"].split(";")[0]
        covered = f"{minors[0]} to {minors[-1]} | <{source}> | {support['date']} | {support.get('verified', '')}"
        yield f"| support of {name} | {covered} |\n"
    for row in table["images"]:
        releases = list(row.get("releases", ()))
        covered = f"{releases[0]} to {releases[-1]}" if releases else f"up to Kubernetes 1.{row['last']}"
        yield f"| images: {row['name']} | {covered} | <{row['source']}> | {row['date']} | |\n"
    cgroups = table["cgroups"]
    covered = f"{len(cgroups['systems'])} families of operating systems"
    yield f"| cgroup versions of operating systems | {covered} | <{cgroups['source']}> | {cgroups['date']} | |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
