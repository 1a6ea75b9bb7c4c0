"""The version and commit that this copy of runup was built from.

In a wheel the build writes this module again (`hatch_build.py`).
"""

VERSION = "0.1.0.dev0"
"""The version; a checkout's is that of the release to come, whatever it was cloned with."""

REVISION = ""
"""The commit, empty where it is not known."""

IMAGE = ""
"""The pull spec of the operator's image of the same release, empty where none was named."""
