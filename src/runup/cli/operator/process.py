"""How every process of the operator ends as a command: an exit code, and one line where it could not run.

A traceback in the log means a bug of ours, and nothing else does.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import click


def run_process(program: Callable[[], Coroutine[Any, Any, None]], run: Callable[[Any], object]) -> int:
    """Run `program` by `run`: 0 when it was told to stop, 1 when it could not run, lost its lease, or met a bug."""
    import structlog

    from runup.api.codec import DecodeError
    from runup.cli.operator.log import configure
    from runup.controllers.leading import LeaseLost
    from runup.domain.errors import RunupError
    from runup.kube.errors import KubeError
    from runup.oci.errors import OciError

    configure()
    try:
        run(program())
    except LeaseLost:
        return 1  # it was said when it happened
    except (RunupError, KubeError, OciError, DecodeError, OSError) as error:
        click.echo(f"error: {error}", err=True)
        return 1
    except Exception:  # noqa: BLE001 -- whatever it is, the log is JSON
        structlog.get_logger("process").exception("ended by a bug")
        return 1
    return 0
