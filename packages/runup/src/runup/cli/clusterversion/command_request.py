"""The parsed command line of `runup upgrade`, a value that `actions` and `wait` read."""

from __future__ import annotations

import msgspec

from runup.cli.clusterversion.target_choice import Flags


class UpgradeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A parsed command line."""

    flags: Flags
    preflight: bool = False
    wait: bool = False
    timeout: str | None = None
    clear_preflight: bool = False
    output: str | None = None

    @property
    def for_program(self) -> bool:
        """Returns whether stdout is read as a whole: data, or a page. Progress goes to stderr then."""
        return self.output in ("json", "yaml", "html")

    @property
    def wide(self) -> bool:
        """Returns whether all known details are printed."""
        return self.output == "wide"
