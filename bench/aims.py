"""`python -m bench aims`: the figures that a user feels, each with its target and whether that holds.

Runs the benchmarks that the targets name, once each. `python -m bench.aims RESULT.json...` prints a page of such runs,
and of those of `bench turns`, `bench real_preflight` and `bench growth`. A figure that a run lacks is "not measured",
with the program that is missing, and does not hold.

Machines differ, and others share them. So every target is a ratio: to a bare interpreter or to the requests for the
Lease of the same run, or to a fixed piece of work (`bench/measure.py`) that is timed before and after each benchmark.
Of several runs the page has each benchmark from the one in which the piece of work was quickest, whatever its figures
are.
"""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from bench.__main__ import module_of
from bench.measure import pace, work_mib
from bench.speed.checks import WHY

HOLDS, MISSED, NOT_MEASURED = "holds", "missed", "not measured"


# What a ratio is of, by the unit of the figure.
RATIOS = {
    "bare interpreters": "times a bare interpreter",
    "s": "pieces of work",
    "a second": "in a piece of work",
    "MiB": "times the memory of the piece of work",
    "an hour": "of the requests for the Lease",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """What figures are compared with: the piece of work, and the Lease's requests; None is not measured."""

    pace: float | None
    """Seconds that the piece of work takes."""
    work_mib: float | None
    lease_requests: float | None
    """In an hour."""

    def ratio(self, value: float, unit: str) -> float | None:
        """Returns a figure in `unit` as a ratio; None if what it is compared with was not measured."""
        if unit == "a second":
            return None if self.pace is None else value * self.pace
        if unit not in ("s", "MiB", "an hour"):
            return value
        of = {"s": self.pace, "MiB": self.work_mib, "an hour": self.lease_requests}[unit]
        return value / of if of else None


# The machine on which the targets were set in seconds, MiB and requests: Python 3.11.7 on 2 processors. Its Lease is
# renewed each 26 s, by two requests.
OF_TARGETS = Peer(pace=0.116, work_mib=46.7, lease_requests=277)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """The target of one figure, to which `path` leads in the result of `bench`.

    `limit` is in `unit` on the machine of OF_TARGETS, from which the ratio follows: 0.6 s are 5.17 pieces of work.
    `why` is the page that says why it may be missed, as docs/explanation/limits.md links to it.
    """

    what: str
    bench: str
    path: tuple[str, ...]
    limit: float
    unit: str
    bound: Literal["at most", "at least"] = "at most"
    why: str = ""

    @property
    def figure(self) -> str:
        """Names the figure uniquely: `what` may be that of the figure before it."""
        return f"python -m bench {self.bench}: {' '.join(self.path)}"

    @property
    def ratio(self) -> float:
        """The target as a ratio, to three digits."""
        ratio = OF_TARGETS.ratio(self.limit, self.unit)
        assert ratio is not None
        return _three_digits(ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A target with the figure of a run: `value` in the unit of the figure, and its `ratio`; None is not measured."""

    what: str
    figure: str
    value: float | None
    unit: str
    ratio: float | None
    aim: str
    verdict: str
    missing: str = ""
    """The reason why it is not measured: a program, mostly."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Growth:
    """How a cost, a figure in `unit` by size, grows: as the size to the power of `exponent`.

    That is None if a figure lacks or is 0.
    """

    what: str
    unit: str
    figures: dict[int, float | None]
    exponent: float | None


MEDIAN = "median"
REAL = "kube-apiserver"
# In the order in which a user feels them. Where both were measured side by side, `oc version` took 6.5 bare
# interpreters and `oc adm upgrade status` over files 9.3: the targets are 0.35 and 0.5 of that.
AIMS = (
    *(
        Aim(
            what=f"`{name}`",
            bench="startup",
            path=("times_a_bare_interpreter", name, "wall"),
            limit=times,
            unit="bare interpreters",
        )
        for name, times in (
            ("version", 2.3),
            ("upgrade status, files", 4.6),
            ("upgrade, sandbox", 5.5),
            ("upgrade status, sandbox", 5.5),
            ("upgrade recommend, sandbox", 5.5),
        )
    ),
    Aim(
        what="from request to first risks, image on the node",
        bench="preflight",
        path=("request_to_first_risks_seconds", MEDIAN),
        limit=0.6,
        unit="s",
        why="../decisions/0110-the-first-risks-soon.md",
    ),
    Aim(
        what="from something fixed to its risk gone",
        bench="preflight",
        path=("object_changed_to_risk_gone_seconds", MEDIAN),
        limit=0.1,
        unit="s",
    ),
    Aim(
        what="first report of 10,000 nodes and 300,000 pods, live",
        bench="live",
        path=("once", "seconds"),
        limit=5,
        unit="s",
    ),
    Aim(what="memory of that", bench="live", path=("once", "peak_mib"), limit=200, unit="MiB"),
    Aim(what="a change among them", bench="live", path=("node_change", "seconds", MEDIAN), limit=0.1, unit="s"),
    Aim(
        what="as many objects from files, decoded and judged",
        bench="checks",
        path=("10000 nodes", "process_seconds", MEDIAN),
        limit=3,
        unit="s",
    ),
    Aim(what="memory of that", bench="checks", path=("10000 nodes", "peak_mib", MEDIAN), limit=150, unit="MiB"),
    Aim(
        what="from a node's change to UpdateStatus, 5,000 nodes, p99",
        bench="update_status",
        path=("seconds_from_node_change_to_object", "p99"),
        limit=0.5,
        unit="s",
    ),
    Aim(
        what="a graph of 20,000 edges judged",
        bench="update_advice",
        path=("large_graph", "seconds", MEDIAN),
        limit=0.2,
        unit="s",
    ),
    Aim(what="1,000 PromQL rules", bench="update_advice", path=("rules", "1000"), limit=2, unit="s"),
    Aim(
        what="900 manifests installed, kube-apiserver",
        bench="applying",
        path=(REAL, "install", "seconds"),
        limit=12,
        unit="s",
    ),
    Aim(
        what="requests while nothing happens, but for the Lease's",
        bench="applying",
        path=(REAL, "steady", "requests_an_hour_without_lease"),
        limit=40,
        unit="an hour",
    ),
    Aim(
        # Files of libraries are not counted, as in a container's limit (docs/reference/sizing.md).
        what="memory of the operator with 900 manifests",
        bench="applying",
        path=(REAL, "memory", "own_mib_at_the_end"),
        limit=60,
        unit="MiB",
        why="../decisions/0109-what-an-operator-keeps-in-memory.md",
    ),
    Aim(what="the sandbox's API server ready", bench="api", path=("ready_seconds", MEDIAN), limit=1.5, unit="s"),
    *(
        Aim(what=what, bench="api", path=path, limit=limit, unit="a second", bound="at least")
        for what, path, limit in (
            ("its GETs", ("gets", "gets_per_second"), 8000),
            ("its creates", ("creates", "creates_per_second"), 4000),
            ("its GETs beside 100,000 objects", ("full", "gets", "gets_per_second"), 8000),
            ("its creates beside 100,000 objects", ("full", "creates", "creates_per_second"), 4000),
        )
    ),
)


def run() -> dict[str, Any]:
    """Runs each benchmark that has a target, and compares all figures with their targets."""
    results: dict[str, Any] = {}
    paces: dict[str, float] = {}
    held = work_mib()
    before = pace()
    for name in dict.fromkeys(aim.bench for aim in AIMS):
        print(f"bench: {name}", file=sys.stderr, flush=True)
        try:
            results[name] = module_of(name).run()
        except Exception as error:  # noqa: BLE001
            # The figures of the other benchmarks took a quarter of an hour, and are kept.
            results[name] = {"skipped": f"{type(error).__name__}: {error}"[:200]}
            print(f"bench: {name} failed: {error!r}"[:1000], file=sys.stderr, flush=True)
        after = pace()
        paces[name], before = round((before + after) / 2, 3), after
    return {
        "commit": commit_of(Path(__file__).parents[1]),
        "processors": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "python": platform.python_version(),
        "paces": paces,
        "work_mib": held,
        **_told(results, paces, held),
    }


def quickest(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns one result out of several of the same commit: each benchmark from the run of the smallest pace.

    Raises ValueError if the runs are of several commits.
    """
    if len(runs) == 1:
        return dict(runs[0])
    commits = sorted({run["commit"] for run in runs})
    if len(commits) > 1:
        raise ValueError(f"these are figures of several commits, which no page can mix: {', '.join(commits)}")
    results, paces = {}, {}
    for name in dict.fromkeys(name for run in runs for name in run["paces"]):
        run = min((run for run in runs if name in run["results"]), key=lambda run: run["paces"][name], default=None)
        if run is not None:
            results[name], paces[name] = run["results"][name], run["paces"][name]
    return {**runs[0], "runs": len(runs), "paces": paces, **_told(results, paces, runs[0].get("work_mib"))}


def _told(results: Mapping[str, Any], paces: Mapping[str, float], held: float | None) -> dict[str, Any]:
    judged = [asdict(each) for each in judge(results, paces, held)]
    return {"judged": judged, "growth": [asdict(each) for each in growth(results)], "results": results}


def judge(results: Mapping[str, Any], paces: Mapping[str, float], held: float | None) -> list[Judged]:
    """Compares the figures in `results`, by benchmark, with their targets; `held` are the MiB of the piece of work."""
    steady = ("applying", REAL, "steady")
    every = figure_of(results, (*steady, "requests_an_hour"))
    others = figure_of(results, (*steady, "requests_an_hour_without_lease"))
    of_lease = None if every is None or others is None else every - others
    judged = []
    for aim in AIMS:
        path = (aim.bench, *aim.path)
        peer = Peer(pace=paces.get(aim.bench), work_mib=held, lease_requests=of_lease)
        judged.append(_judged(aim, figure_of(results, path), peer, _missing(results, path)))
    return judged


def _judged(aim: Aim, value: float | None, peer: Peer, missing: str = "") -> Judged:
    ratio = None if value is None else peer.ratio(value, aim.unit)
    if ratio is None:
        verdict = NOT_MEASURED
        missing = missing if value is None else f"nothing was measured to compare it with ({RATIOS[aim.unit]})"
    elif aim.bound == "at most":
        verdict = HOLDS if ratio <= aim.ratio else MISSED
    else:
        verdict = HOLDS if ratio >= aim.ratio else MISSED
    return Judged(
        what=aim.what,
        figure=aim.figure,
        value=value,
        unit=aim.unit,
        ratio=None if ratio is None else _three_digits(ratio),
        aim=f"{aim.bound} {aim.ratio:,g} {RATIOS[aim.unit]}",
        verdict=verdict,
        missing=missing if ratio is None else "",
        why=aim.why if verdict == MISSED else "",
    )


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}") if value < 1000 else round(value)


def figure_of(results: Mapping[str, Any], path: Sequence[str]) -> float | None:
    """Returns the number at `path`; None if the run has none there."""
    found: Any = results
    for step in path:
        found = found.get(step) if isinstance(found, Mapping) else None
    return float(found) if isinstance(found, int | float) else None


def _missing(results: Mapping[str, Any], path: Sequence[str]) -> str:
    """Returns why there is no number at `path`: a benchmark puts a text where figures would be, or `skipped`."""
    found: Any = results
    for step in path:
        if not isinstance(found, Mapping):
            break
        found = found["skipped"] if step not in found and "skipped" in found else found.get(step)
    return found if isinstance(found, str) else ""


# Three sizes of each, by the sizes' names in the results, the figure within, and its unit.
_NODES = {"500 nodes": 500, "5000 nodes": 5_000, "10000 nodes": 10_000}
_RULES = {"10": 10, "100": 100, "1000": 1_000}
_EDGES = {"5000": 5_000, "10000": 10_000, "20000": 20_000}
_SIZES: dict[str, tuple[tuple[str, ...], dict[str, int], tuple[str, ...], str]] = {
    "judging a cluster from files, by nodes": (("checks",), _NODES, ("cpu_seconds", MEDIAN), "seconds of a core"),
    "its memory, by nodes": (("checks",), _NODES, ("peak_mib", MEDIAN), "MiB"),
    "PromQL rules, by rules": (("update_advice", "rules"), _RULES, (), "s"),
    "a graph judged, by edges": (("update_advice", "large_graph", "by_edges"), _EDGES, (), "s"),
}


def growth(results: Mapping[str, Any]) -> list[Growth]:
    """Returns how each cost grows that the benchmarks of the aims have at three sizes."""
    return [
        grown(what, unit, {size: figure_of(results, (*place, name, *path)) for name, size in sizes.items()})
        for what, (place, sizes, path, unit) in _SIZES.items()
    ]


def grown(what: str, unit: str, figures: Mapping[int, float | None]) -> Growth:
    """Returns the growth of a cost, given the figure at each size."""
    known = {size: value for size, value in figures.items() if value}
    return Growth(what, unit, dict(figures), exponent(known) if known and len(known) == len(figures) else None)


def exponent(costs: Mapping[int, float]) -> float:
    """Returns the slope of the least squares line through the logarithms of `costs` by size, to two digits."""
    points = [(math.log(size), math.log(cost)) for size, cost in costs.items()]
    mean_x, mean_y = (sum(each) / len(points) for each in zip(*points, strict=True))
    above = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return round(above / sum((x - mean_x) ** 2 for x, _ in points), 2)


def page(result: Mapping[str, Any], *others: Mapping[str, Any]) -> str:
    """Returns the page of a result of `run` or `quickest`, and of results of other benchmarks that belong to it.

    `others` are of `bench turns`, `real_preflight` and `growth`.
    """
    held = sum(each["verdict"] == HOLDS for each in result["judged"])
    in_turns = [each for each in others if "figures" in each]
    on_nodes = [each["real_preflight"] for each in others if "real_preflight" in each]
    by_size = [each["growth"] for each in others if "growth" in each]
    commands = [
        "python -m bench aims > result.json",
        *(["python -m bench turns CHECKOUT NAME... > turns.json"] if in_turns else ()),
        *(["python -m bench real_preflight > nodes.json"] if on_nodes else ()),
        *(["python -m bench growth > growth.json"] if by_size else ()),
        f"python -m bench.aims result.json{' turns.json' * bool(in_turns)}{' nodes.json' * bool(on_nodes)}"
        f"{' growth.json' * bool(by_size)}",
    ]
    lines = [
        "# How close to the limit",
        "",
        "Figures in the order in which a user feels them, each with its target:",
        "",
        *("```sh", *commands, "```"),
        "",
        f"Measured at {result['commit']} with Python {result['python']} on {result['processors']} processors and "
        f"{result['memory_gib']} GiB: {held} of {len(result['judged'])} hold.{_about_paces(result)}",
        "",
        *_judged_table(result),
        "",
        *(line for turns in in_turns for line in _in_turns(result, turns)),
        *(line for measured in on_nodes for line in _on_nodes(measured)),
        *_growth_table(growth(result["results"]), by_size),
        "",
        *_dearest(result["results"]),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _about_paces(result: Mapping[str, Any]) -> str:
    if not result.get("paces"):
        return ""
    told = "" if (runs := result.get("runs", 1)) == 1 else f" Of {runs} runs, each benchmark is from the quickest one."
    return (
        f" Every target is a ratio, so that it means the same on another machine.{told} The pace is in how many "
        "seconds each processor did a fixed piece of work (`bench/measure.py`) before and after the benchmark. Targets "
        f"in pieces of work were set in seconds at a pace of {OF_TARGETS.pace}, and divided by that: others share the "
        "machine, and it is not always as quick. Targets of memory were set in MiB where the piece of work takes "
        f"{OF_TARGETS.work_mib}, the one of requests where the Lease takes {OF_TARGETS.lease_requests:g} an hour."
    )


def _judged_table(result: Mapping[str, Any]) -> Iterator[str]:
    """Yields the rows of all targets, with the machine's pace if it was measured."""
    paces = result.get("paces", {})
    benches = {aim.figure: aim.bench for aim in AIMS}
    columns = ["", "figure", "ratio", "target", "", *(["pace"] if paces else ())]
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in (Judged(**each) for each in result["judged"]):
        value = "" if row.value is None else f"{row.value:,g} {row.unit}"
        ratio = "" if row.ratio is None else f"{row.ratio:,g}"
        verdict = f"{row.verdict}{f', [why]({row.why})' if row.why else ''}{f': {row.missing}' if row.missing else ''}"
        pace = [f"{paces.get(benches[row.figure], '')}"] if paces else ()
        yield f"| {' | '.join([row.what, value, ratio, row.aim, verdict, *pace])} |"


def _growth_table(of_aims: Sequence[Growth], measured: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields the lines about how costs grow: those of the aims' benchmarks, and those of `bench growth`."""
    told = "".join(
        f" The first {len(of_aims)} are of the run above, the others were measured at {each['commit']}, where a fixed "
        f"piece of work took each processor {each['pace']} s (`bench/measure.py`)."
        for each in measured
    )
    yield f"How cost grows with size, as an exponent over three sizes (1 is linear).{told}"
    yield ""
    yield "| | figures by size | | exponent |"
    yield "|---|---|---|---|"
    for each in (*of_aims, *(Growth(**cost) for one in measured for cost in one["costs"])):
        figures = ", ".join(
            f"{int(size):,}: {NOT_MEASURED if value is None else _short(value)}" for size, value in each.figures.items()
        )
        yield f"| {each.what} | {figures} | {each.unit} | {NOT_MEASURED if each.exponent is None else each.exponent} |"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _on_nodes(measured: Mapping[str, Any]) -> Iterator[str]:
    """Yields the lines about a preflight on real nodes: by case, the medians of all rounds."""
    cases: dict[str, Any] = measured["cases"]
    rounds = next(iter(cases.values()))["object_changed_to_risk_gone_seconds"]["runs"]
    sizes = ", ".join(f"{name} {size:g} MB" for name, size in measured["megabytes"].items())
    yield (
        f"On a real node (kubelet and containerd, a release in its registry, [real-cluster](real-cluster.md)) at "
        f"{measured['commit']}, in seconds, medians of {rounds} rounds; a fixed piece of work took each processor "
        f"{measured['pace']} s then (`bench/measure.py`). The image has, as it is pulled: {sizes}."
    )
    yield ""
    rows = {
        "from request to first risks": "request_to_first_risks_seconds",
        "from something fixed right after them to its risk gone": "object_changed_to_risk_gone_seconds",
        "from something fixed two seconds later to its risk gone": "the_same_two_seconds_later",
    }
    yield f"| | {' | '.join(cases)} |"
    yield f"|---{'|---' * len(cases)}|"
    first, *others = rows.items()
    yield _of_cases(*first, cases)
    for stage in next(iter(cases.values()))["request_to_first_risks_stages"]:
        in_case = {name: case["request_to_first_risks_stages"] for name, case in cases.items()}
        yield _of_cases(f"— {stage}", stage, in_case)
    for each in others:
        yield _of_cases(*each, cases)
    yield ""


def _of_cases(what: str, key: str, cases: Mapping[str, Any]) -> str:
    return f"| {what} | {' | '.join(f'{case[key][MEDIAN]:g}' for case in cases.values())} |"


def _dearest(results: Mapping[str, Any]) -> list[str]:
    """Returns the lines about the checks that cost most, if they were measured."""
    checks = results.get("checks", {}).get("10000 nodes", {}).get("dearest_checks", {})
    if not checks:
        return []
    rows = [f"| {name} | {seconds:g} | {WHY.get(name, '')} |" for name, seconds in checks.items()]
    told = (
        "What takes most of a core at 10,000 nodes and 300,000 pods when the checks first meet them, in seconds, and "
        "why; what they share is apart:"
    )
    return [told, "", "| check | seconds | |", "|---|---|---|", *rows]


def _in_turns(result: Mapping[str, Any], turns: Mapping[str, Any]) -> list[str]:
    """Returns the lines about a result of `bench turns`: what to expect, too, if `result` is of its older checkout."""
    other, here = turns["other"], turns["here"]
    told = f"At {other} and at {here}, medians of {turns['rounds']} runs of both in turns (`python -m bench turns`)"
    columns, expected = ["", other, here, "of it"], other == result["commit"]
    if expected:
        columns.append("to expect")
        told += ". Of the figures above, of a quicker hour, that makes what is to expect"
    rows = [
        [each["what"], f"{each['other']:,g}", f"{each['here']:,g}", str(each["ratio"]), _expected(result, each)]
        for each in turns["figures"]
    ]
    table = [columns, ["---"] * len(columns), *(row[: len(columns)] for row in rows)]
    return [f"{told}:", "", *(f"| {' | '.join(cells)} |" for cells in table), ""]


def _expected(result: Mapping[str, Any], changed: Mapping[str, Any]) -> str:
    """Returns the figure of `result` times what it has changed by, and whether that holds."""
    aim = next(aim for aim in AIMS if aim.figure == changed["figure"])
    judged = next((each for each in result["judged"] if each["figure"] == aim.figure), None)
    if judged is None or judged["ratio"] is None or changed["ratio"] is None:
        return ""
    expected = float(f"{judged['value'] * changed['ratio']:.3g}")
    ratio = judged["ratio"] * changed["ratio"]
    holds = ratio <= aim.ratio if aim.bound == "at most" else ratio >= aim.ratio
    return f"{expected:,g}, {HOLDS if holds else MISSED}"


def commit_of(checkout: Path) -> str:
    """Returns the commit of a checkout, `-dirty` behind it if files differ from it."""
    words = ["git", "-C", str(checkout), "describe", "--always", "--dirty"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return done.stdout.strip() or "no commit"


if __name__ == "__main__":
    measured = [json.loads(Path(name).read_text()) for name in sys.argv[1:]]
    runs = [each["aims"] for each in measured if "aims" in each]
    if not runs:
        sys.exit("error: name a result of `python -m bench aims`, and those that belong on its page")
    print(page(quickest(runs), *measured), end="")
