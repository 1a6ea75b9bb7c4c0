"""`python -m runup`: the same as the command `runup`."""

import sys

from runup.cli.startup.start import runup

sys.exit(runup())
