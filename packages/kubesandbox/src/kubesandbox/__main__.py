"""`python -m kubesandbox`: a Kubernetes API server with its controllers, in one process, until it is stopped."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import fcntl
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubesandbox.apiserver.server_flags import Disabled
    from kubesandbox.control_channel import Commands

_HELP = """\
Start a Kubernetes API server on this machine and print the KUBECONFIG to use.

It behaves as kube-apiserver does (1.34, or --kubernetes-version) and needs neither a container nor root. Controllers
run in the same process:
namespaces that are deleted are emptied, owned objects are collected, Deployments, ReplicaSets and Jobs get their pods.
With --node there is a node, too, on which pods are declared ready, and those of Jobs completed, without being run.
"""
# Beginning of the names of temporary data folders.
_TEMPORARY = "kubesandbox-"
# Limit of one command on standard input.
_COMMAND_BYTES = 1 << 20
_EXAMPLE = """\
example:
  python -m kubesandbox --crds config/crd/bases --node

It ends on Ctrl-C or SIGTERM.
"""


def main() -> None:
    """Serves until SIGINT or SIGTERM; exits 1 with one line if it cannot start."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("python -m kubesandbox", description=_HELP, epilog=_EXAMPLE, formatter_class=shape)
    option = parser.add_argument
    option("--data", type=Path, metavar="DIR",
           help="keep objects, certificates and logs here (default: a temporary folder)")  # fmt: skip
    option("--port", type=_parse_port, default=0, metavar="N", help="port on 127.0.0.1 (default: any free port)")
    option("--crds", type=Path, nargs="+", action="extend", default=[], metavar="DIR",
           help="serve the CustomResourceDefinitions of these folders (YAML or JSON, with subfolders)")  # fmt: skip
    option("--audit", type=Path, metavar="FILE",
           help="audit log of every request (default: audit.log in the data folder)")  # fmt: skip
    option(
        "--node",
        action="store_true",
        help="add a node; pods are scheduled to it and declared ready, those of Jobs completed",
    )
    option("--no-controllers", dest="controllers", action="store_false", help="only the API server, as with envtest")
    option("--kubernetes-version", default="", metavar="1.N",
           help="version of Kubernetes to behave as, from 1.33 to 1.37 (default: 1.34)")  # fmt: skip
    option("--feature-gates", default="", metavar="A=true,...",
           help="feature gates of kube-apiserver; fields whose gate is off are dropped")  # fmt: skip
    option("--disable-admission-plugins", default="", metavar="NAME,...",
           help="admission plugins of kube-apiserver that are not called")  # fmt: skip
    option("--runtime-config", default="", metavar="apps/v1=false,...",
           help="versions and resources of built-in groups that are not served")  # fmt: skip
    option("--stop-with-stdin", action="store_true",
           help="end when standard input is closed, for programs that start it")  # fmt: skip
    option("--version", action="store_true", help="print the version and exit")
    # Like `runup help`; every option of this command begins with a dash.
    arguments = parser.parse_args(["--help"] if sys.argv[1:] == ["help"] else None)
    if arguments.version:
        from importlib.metadata import version

        sys.stdout.write(f"kubesandbox {version('kubesandbox')}\n")
        return
    from kubesandbox.apiserver.kubernetes_version import choose_or_exit

    choose_or_exit(arguments.kubernetes_version, arguments.feature_gates)
    from kubesandbox.apiserver.server_flags import parse_or_exit

    disabled = parse_or_exit((), [arguments.disable_admission_plugins], [arguments.runtime_config])
    # The imports below are slow, so --help and wrong options are answered before them.
    import structlog
    import uvloop

    from kubekit.error_types import RunupError
    from kubekit.kube.api_errors import KubeError
    from kubesandbox.apiserver.store import StoreError

    logger = structlog.PrintLoggerFactory(sys.stderr)
    structlog.configure(logger_factory=logger, wrapper_class=structlog.make_filtering_bound_logger("warning"))
    try:
        uvloop.run(_serve_until_signal(arguments, disabled))
    except (RunupError, KubeError) as error:
        sys.exit(f"error: {error.message}")
    except StoreError as error:
        sys.exit(f"error: {error}; give another folder with --data")
    except OSError as error:
        sys.exit(f"error: {_error_in_words(error, arguments)}")


def _parse_port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; give a number from 0 (any free port) to 65535")
    return int(text)


async def _serve_until_signal(arguments: argparse.Namespace, disabled: Disabled) -> None:
    """Serves until SIGINT or SIGTERM, or until standard input ends if the options say so."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if arguments.node and not arguments.controllers:
        from kubesandbox.sandbox_error import SandboxError

        raise SandboxError("--node needs the controllers; leave out --no-controllers", reason="NodeWithoutControllers")
    from kubekit.http.quick_imports import quick_imports

    with quick_imports():
        from kubekit.kube.client_sync import SyncClient
        from kubekit.kube.clock import MovableClock
        from kubekit.kube.config import load as load_kubeconfig
        from kubesandbox import cluster, manifests
        from kubesandbox.apiserver.server import ApiServer
        from kubesandbox.control_channel import Commands

    # Unreadable definitions must be reported before anything is started.
    definitions = [document for path in arguments.crds for document in manifests.definitions(path)]

    def load_definitions(kubeconfig: Path) -> None:
        with SyncClient(load_kubeconfig(str(kubeconfig))) as client:
            manifests.load(client, definitions)

    clock, port = MovableClock(), arguments.port
    async with contextlib.AsyncExitStack() as stack:
        data = arguments.data
        if data is None:
            remove_folders_of_killed(Path(tempfile.gettempdir()))
            data = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=_TEMPORARY)))
            stack.enter_context(_removed_after_kill(data))
        data = data.resolve()
        server = await stack.enter_async_context(
            ApiServer(data, port, audit=arguments.audit, clock=clock, disabled=disabled)
        )
        if definitions:
            await asyncio.to_thread(load_definitions, server.kubeconfig)
        tasks: list[asyncio.Task[None]] = []
        if arguments.controllers:
            tasks = await stack.enter_async_context(cluster.run_controllers(data, clock, node=arguments.node))
        sys.stdout.write(
            f"Kubernetes API server at {server.url}; Ctrl-C ends it\n"
            f"export KUBECONFIG={shlex.quote(str(server.kubeconfig))}\n"
        )
        sys.stdout.flush()
        if arguments.stop_with_stdin:
            commands = asyncio.create_task(_answer_commands(Commands(server, clock), stop))
            stack.callback(commands.cancel)
        await cluster.until_over(stop, tasks)


@contextlib.contextmanager
def _removed_after_kill(folder: Path) -> Iterator[None]:
    """Removes the folder when this process ends, also if it is killed: a shell of another session waits for its end."""
    command = ("/bin/sh", "-c", 'read -r _; rm -rf -- "$1"', "sh", str(folder))
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as shell:
        yield
        assert shell.stdin is not None
        shell.stdin.close()


def remove_folders_of_killed(temporary: Path) -> None:
    """Removes the temporary folders of servers that were killed: no process holds the lock of their store."""
    for lock in temporary.glob(f"{_TEMPORARY}*/store.lock"):
        with contextlib.suppress(OSError), lock.open("r+") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)


async def _answer_commands(commands: Commands, stop: asyncio.Event) -> None:
    """Answers the commands on standard input until it is closed, which ends the server."""
    lines = asyncio.StreamReader(limit=_COMMAND_BYTES)
    mode = os.fstat(sys.stdin.fileno()).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or sys.stdin.isatty():
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    else:  # libuv aborts the process for a file and for /dev/null, neither of which makes a reader wait
        lines.feed_data(sys.stdin.buffer.read(_COMMAND_BYTES))
        lines.feed_eof()
    while line := await lines.readline():
        sys.stdout.write((await commands.answer(line)).decode())
        sys.stdout.flush()
    stop.set()


def _error_in_words(error: OSError, arguments: argparse.Namespace) -> str:
    """Returns an error of the operating system in words that name the option to change."""
    if error.errno == errno.EADDRINUSE:
        return f"port {arguments.port} is in use; give another with --port, or end what uses it"
    if error.errno == errno.EACCES and not error.filename:
        return f"port {arguments.port} may not be used; give another with --port"
    of_audit = arguments.audit and error.filename in map(str, (arguments.audit, *arguments.audit.parents))
    option = "--audit" if of_audit else "--data"
    return f"{error.filename or arguments.data}: {error.strerror}; give another place with {option}"


if __name__ == "__main__":
    main()
