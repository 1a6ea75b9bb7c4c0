"""The log of a process: how long a text, a message and a traceback may be, and what is taken out of their middle."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from typing import Any

import pytest
import structlog

from runup.process.log import MAX_TEXT, MAX_TRACEBACK, configure_logging, shorten_texts, with_traceback


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x" * 2000, "x" * 2000),
        ("a" + "x" * 1999 + "z", "a" + "x" * 999 + "... 1 characters ..." + "x" * 999 + "z"),
        ("a" + "x" * 2498 + "z", "a" + "x" * 999 + "... 500 characters ..." + "x" * 999 + "z"),
    ],
    ids=["as long as it may be", "one more", "more"],
)
def test_long_texts_lose_their_middle(text: str, shown: str) -> None:
    """Two thousand characters are enough to recognise it by; how many are gone is said."""
    assert MAX_TEXT == 2000
    assert shorten_texts(None, "", {"event": text, "number": 7}) == {"event": shown, "number": 7}


def test_a_traceback_has_a_limit_of_its_own() -> None:
    """It is no longer text that is cut once more."""
    assert shorten_texts(None, "", {"exception": "x" * 3000}) == {"exception": "x" * 3000}
    try:
        raise ValueError("y" * 2001)
    except ValueError as error:
        seen = with_traceback(None, "", {"event": "e", "exc_info": error})
    assert "characters ..." in seen["exception"]
    assert seen["exception"].startswith("Traceback (most recent call last):\n")
    assert len(seen["exception"]) < 2600
    chained: Exception = ValueError("first")
    for place in range(40):
        following = ValueError(f"{place:03} " + "z" * 400)
        following.__cause__ = chained
        chained = following
    seen = with_traceback(None, "", {"exc_info": chained})
    assert MAX_TRACEBACK == 6000
    cut = seen["exception"].partition("... ")[2].partition(" characters ...")
    assert len(seen["exception"]) == 6000 + len("...  characters ...") + len(cut[0])
    assert seen["exception"].startswith("ValueError: first\n")
    assert seen["exception"].endswith(f"ValueError: 039 {'z' * 400}\n")


@pytest.mark.parametrize("given", ["an error", "a triple", "True"])
def test_an_exception_is_given_in_three_ways(given: str) -> None:
    """All are reported alike, and the field that gave it is gone."""
    try:
        raise KeyError("it")
    except KeyError as error:
        info: Any = {"an error": error, "a triple": sys.exc_info(), "True": True}[given]
        seen = with_traceback(None, "", {"event": "e", "exc_info": info})
    assert seen.keys() == {"event", "exception"}
    assert seen["exception"].endswith("KeyError: 'it'\n")


@pytest.mark.parametrize("given", [None, False])
def test_no_exception_is_no_field(given: Any) -> None:
    """Even while one is being handled."""
    try:
        raise KeyError("it")
    except KeyError:
        assert with_traceback(None, "", {"event": "e", "exc_info": given}) == {"event": "e"}


def test_what_others_wrote_is_shown_as_escapes(logs: None, capsys: pytest.CaptureFixture[str]) -> None:
    """They stay escapes when somebody prints the field; keys are in the order of the alphabet."""
    configure_logging()
    structlog.get_logger("test").warning("seen", name="a\x1b[2J", at={1, 2})
    (line,) = capsys.readouterr().err.splitlines()
    event = json.loads(line)
    assert (event["name"], event["event"], event["level"]) == ("a\\x1b[2J", "seen", "warning")
    assert list(event) == sorted(event)
    assert event["at"] == "{1, 2}"


def test_libraries_warn_in_json(logs: None, capsys: pytest.CaptureFixture[str]) -> None:
    """What they log from a warning on, and Python's own warnings; what they log below is left out."""
    with warnings.catch_warnings():
        configure_logging()
        warnings.simplefilter("always")
        logging.getLogger("aiohttp").info("quiet")
        logging.getLogger("aiohttp").warning("loud %d", 1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    logged, warned = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert (logged["event"], logged["level"]) == ("loud 1", "warning")
    assert "DeprecationWarning: old" in warned["event"]
