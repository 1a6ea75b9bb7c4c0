"""The newest report of a cluster in ConfigMap `preflight-newest`, small enough for a ManifestWork's status.

    binaryData:
      report: ...
    data:
      summary: "5.1.0: 2 risks apply, 1 unknown, observed 2026-11-23T09:21:59Z"

An agent of Open Cluster Management copies both values into the status of the ManifestWork that made the ConfigMap
(docs/decisions/0106), from where `runup fleet preflight --hub` reads them. The report is JSON packed by gzip. One that
does not fit loses details of its risks, as in the stored history, and never a risk.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Any

from msgspec.structs import replace

from kubekit.api import codec
from kubekit.lang.text import cut, one_line
from runup.preflight.decide import packed_reports, stored_reports
from runup.preflight.decide.cluster_run import NAMESPACE, PART_OF
from runup.report import report as reports
from runup.report.report import BadReport, Report

NAME = "preflight-newest"
REPORT, SUMMARY = "report", "summary"
# Base64 makes it a third longer, and an object of etcd may have 1.5 MiB: other reports fit next to it in one status.
MAX_BYTES = 96 * 1024
_MAX_SUMMARY = 512
_FEW_CHECKS = 200

JSON = dict[str, Any]


def empty_config_map() -> JSON:
    """Returns the ConfigMap as it is created."""
    metadata = {"name": NAME, "namespace": NAMESPACE, "labels": PART_OF}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def with_report(report: Report) -> JSON:
    """Returns the merge patch that puts a report in place of the one before. Raises ValueError if it is too large.

    It has as many details as there is room for, and one line for people who look at the object itself.
    """
    fewer_checks, last_limit = replace(report, checks=report.checks[:_FEW_CHECKS]), stored_reports.TEXT_LIMITS[-1]
    attempts = [(report, limit) for limit in (None, *stored_reports.TEXT_LIMITS)] + [(fewer_checks, last_limit)]
    for whole, limit in attempts:
        fitting = whole if limit is None else stored_reports.reduce_report(whole, limit)
        packed = packed_reports.pack(reports.encode(fitting))
        if len(packed) <= MAX_BYTES:
            break
    else:
        raise ValueError(f"it takes {-(-len(packed) // 1024)} KiB packed, of {MAX_BYTES // 1024} KiB")
    applies = sum(risk.applies == "True" for risk in report.risks)
    observed = f", observed {report.observed_time:%Y-%m-%dT%H:%M:%SZ}" if report.observed_time else ""
    verb = "risk applies" if applies == 1 else "risks apply"
    summary = f"{report.target_version}: {applies} {verb}, {len(report.risks) - applies} unknown{observed}"
    if report.execution_status != "completed":
        summary = cut(one_line(f"{report.target_version}: not evaluated: {report.message}"), _MAX_SUMMARY)
    return {"binaryData": {REPORT: codec.to_dict(packed)}, "data": {SUMMARY: summary}}


def unpack(text: str) -> Report:
    """Returns the report in a value of `binaryData`, which is base64. Raises BadReport."""
    try:
        return reports.read(packed_reports.unpack(b64decode(text, validate=True)))
    except (binascii.Error, UnicodeEncodeError) as error:
        raise BadReport(f"the report is not base64: {error}", reason="ReportInvalid") from error
    except ValueError as error:
        raise BadReport(f"the report cannot be unpacked: {error}", reason="ReportInvalid") from error
