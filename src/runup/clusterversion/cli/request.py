"""What one `runup upgrade` was asked for: its command line, parsed. A value; `actions` and `wait` both read it."""

from __future__ import annotations

import msgspec

from runup.clusterversion.cli.targets import Flags


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """The command line, parsed."""

    flags: Flags
    preflight: bool = False
    wait: bool = False
    timeout: str | None = None
    clear_preflight: bool = False
    output: str | None = None

    @property
    def for_program(self) -> bool:
        """Whether stdout is for something that reads the whole of it: data, or a page. Then progress goes to stderr."""
        return self.output in ("json", "yaml", "html")

    @property
    def wide(self) -> bool:
        """Whether everything that is known is to be printed."""
        return self.output == "wide"
