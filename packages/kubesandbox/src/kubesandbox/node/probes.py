"""Readiness and liveness probes: settings and results in; out: whether the container is ready, or must be restarted.

`httpGet` and `tcpSocket` are probed. `exec` and `grpc` are not: a container with such a probe counts as healthy. The
thresholds are Kubernetes' (core/v1 Probe): `failureThreshold` failures in a row turn the result to failed,
`successThreshold` successes turn it back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import aiohttp

from kubesandbox.node.podspec import BadPod

JSON = dict[str, Any]
# Longest interval of readiness probes before a container is ready, in seconds; keeps a sandbox's start short.
EAGER_S = 1.0


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe; times in seconds. `url` is "" for a port that only has to accept a connection."""

    host: str
    port: int
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    initial_delay_s: float = 0
    period_s: float = 10
    timeout_s: float = 1
    successes: int = 1
    failures: int = 3


def parse_probe(probe: JSON | None, ports: Iterable[JSON], host: str) -> Probe | None:
    """Parses a probe of a pod; None for one that is not probed. Raises BadPod for an unknown port name."""
    target = (probe or {}).get("httpGet") or (probe or {}).get("tcpSocket")
    if probe is None or not target:
        return None
    host = target.get("host") or host
    port = _port_number(target["port"], ports)
    url = ""
    if "httpGet" in probe:
        url = f"{(target.get('scheme') or 'HTTP').lower()}://{host}:{port}/{(target.get('path') or '/').lstrip('/')}"
    return Probe(
        host=host,
        port=port,
        url=url,
        headers=tuple((header["name"], header["value"]) for header in target.get("httpHeaders") or ()),
        initial_delay_s=probe.get("initialDelaySeconds") or 0,
        period_s=probe.get("periodSeconds") or 10,
        timeout_s=probe.get("timeoutSeconds") or 1,
        successes=probe.get("successThreshold") or 1,
        failures=probe.get("failureThreshold") or 3,
    )


def _port_number(given_port: int | str, ports: Iterable[JSON]) -> int:
    """Returns the number of a port, which a probe may name. Raises BadPod for an unknown name."""
    if isinstance(given_port, int) or given_port.isdigit():
        return int(given_port)
    for port in ports:
        if port.get("name") == given_port:
            return int(port["containerPort"])
    raise BadPod(f"couldn't find port: {given_port}")


@dataclass(frozen=True, slots=True)
class Tally:
    """The current result, and the number of equal answers in a row."""

    well: bool
    in_a_row: int = 0
    last: bool | None = None

    def with_answer(self, probe: Probe, *, well: bool) -> Tally:
        """Returns the tally after one more answer."""
        in_a_row = self.in_a_row + 1 if well is self.last else 1
        needed = probe.successes if well else probe.failures
        return replace(self, well=well if in_a_row >= needed else self.well, in_a_row=in_a_row, last=well)


async def run_probe(probe: Probe) -> str:
    """Runs the probe once; returns why the container is not healthy, or ""."""
    try:
        async with asyncio.timeout(probe.timeout_s):
            return await (_probe_http(probe) if probe.url else _probe_tcp(probe))
    except TimeoutError:
        return f"no answer within {probe.timeout_s:g} s"
    except (OSError, aiohttp.ClientError) as error:
        return str(error)


async def _probe_tcp(probe: Probe) -> str:
    _, writer = await asyncio.open_connection(probe.host, probe.port)
    writer.close()
    return ""


async def _probe_http(probe: Probe) -> str:
    # Certificates are not verified (kubernetes.io: configure liveness, readiness and startup probes).
    async with aiohttp.ClientSession() as session, session.get(probe.url, headers=probe.headers, ssl=False) as response:
        well = 200 <= response.status < 400
        return "" if well else f"HTTP probe failed with statuscode: {response.status}"
