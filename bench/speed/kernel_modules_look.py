"""One process that looks for a module in images: `python -m bench.speed.kernel_modules_look JOB`, JOB being JSON."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from kubekit.oci.access import Access
from runup.api.kmm_v1beta1 import TLSOptions
from runup.kernelmodules.control.module_check import verdicts_of
from runup.kernelmodules.control.registries import GivenRegistries
from runup.kernelmodules.decide.module_state import ImageQuestion

KERNEL = "5.14.0-427.50.1.el9_4.x86_64"


def main(job: dict[str, Any]) -> None:
    """Write how many are verified, and how many bytes of layers were fetched."""
    questions = [
        ImageQuestion(
            image=image, kernel=KERNEL, dir_name="/opt", module_names=("bench",), tls=TLSOptions(), namespace="bench"
        )
        for image in job["images"]
    ]
    verdicts = asyncio.run(verdicts_of(questions, GivenRegistries(Access()))).values()
    outcome = {
        "images": len(questions),
        "verified": sum(each.verified for each in verdicts),
        "fetched_bytes": sum(each.fetched_bytes for each in verdicts),
    }
    Path(job["outcome"]).write_text(json.dumps(outcome))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
