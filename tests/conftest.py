"""Settings of all tests: what a property test takes depends on the machine, so no single example has a deadline."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("runup", deadline=None)
settings.load_profile("runup")
