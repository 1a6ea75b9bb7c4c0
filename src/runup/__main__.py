"""`python -m runup`: the same as the command `runup`."""

import sys

from runup.cli.main import main

sys.exit(main())
