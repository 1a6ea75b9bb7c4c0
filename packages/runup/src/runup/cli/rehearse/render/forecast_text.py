"""Renders how long an update takes as text of 80 columns, and as data for programs."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from kubekit.lang.text import timestamp
from runup.cli.rehearse.render.drain_text import WIDTH, duration_text
from runup.rehearse.decide.update_forecast import Forecast, ForecastPart, Range, WindowFit

_MINUTE_S = 60


def forecast_text(
    result: Forecast, fit: WindowFit | None = None, zone: str = "UTC", control_plane: WindowFit | None = None
) -> str:
    """Returns the text: in all, whether that fits, each part with what it rests on, and what is not known."""
    lines = [f"An update takes {range_text(result.total)}.", *_fit_lines(fit, zone, control_plane), ""]
    width = max((len(_title(part)) for part in result.parts), default=0)
    for part in result.parts:
        lines.append(f"{_title(part).ljust(width)}  {range_text(part.range)}")
        lines += [line for source in part.sources for line in _wrapped_lines(source)]
    if result.unknown:
        lines += [
            "",
            "Not in it, or not known:",
            *(line for reason in result.unknown for line in _wrapped_lines(reason)),
        ]
    return "".join(f"{line}\n" for line in lines)


def range_text(time_s: Range) -> str:
    """Returns a range in words: `1 h 1 min to 1 h 14 min`, `at least 40 min`, `nobody knows how long`."""
    low = _rounded_range(time_s.low_s)
    if time_s.high_s is None:
        return f"at least {duration_text(low)}" if low else "nobody knows how long"
    high = _rounded_range(time_s.high_s)
    return duration_text(low) if low == high else f"{duration_text(low)} to {duration_text(high)}"


def _rounded_range(seconds: int) -> int:
    # A forecast to the second would claim what it does not know.
    return -(-seconds // _MINUTE_S) * _MINUTE_S


def _fit_lines(fit: WindowFit | None, zone: str, control_plane: WindowFit | None) -> list[str]:
    """Returns the lines that say whether the update fits into the window; none without a window."""
    if fit is None:
        return []
    window_text = f"{fit.opens:%Y-%m-%d %H:%M} to {fit.closes:%Y-%m-%d %H:%M} {zone}"
    lines = [f"From {window_text}, {duration_text(fit.length_s)}: {fit.verdict}; {fit.why}."]
    if control_plane is not None and control_plane.verdict != fit.verdict:
        lines.append(f"The control plane alone: {control_plane.verdict}; pools that are paused can follow later.")
    return [line for text in lines for line in textwrap.wrap(text, WIDTH)]


def _title(part: ForecastPart) -> str:
    return part.name if part.name == "control plane" else f"pool {part.name}"


def _wrapped_lines(text: str) -> Sequence[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="    ")


def forecast_data(
    result: Forecast, fit: WindowFit | None = None, control_plane: WindowFit | None = None, code: int = 0
) -> dict[str, Any]:
    """Returns the forecast as JSON data; times are in seconds, null where they are not known."""
    return {
        "total": _range_data(result.total),
        "parts": [
            {"name": part.name, **_range_data(part.range), "sources": list(part.sources), "guessed": part.guessed}
            for part in result.parts
        ],
        "unknown": list(result.unknown),
        "guessed": result.guessed,
        "window": _fit_data(fit),
        "controlPlaneAlone": _fit_data(control_plane),
        "exitCode": code,
    }


def _range_data(time_s: Range) -> dict[str, Any]:
    return {"atLeastSeconds": time_s.low_s, "atMostSeconds": time_s.high_s}


def _fit_data(fit: WindowFit | None) -> dict[str, Any] | None:
    """Returns the fit as JSON data, None without a window."""
    if fit is None:
        return None
    return {
        "opens": timestamp(fit.opens),
        "closes": timestamp(fit.closes),
        "lengthSeconds": fit.length_s,
        "verdict": fit.verdict,
        "why": fit.why,
    }
