"""Writes the page of the sandbox's admission plugins: `python tools/admission_page.py`. A test compares it."""

from __future__ import annotations

from pathlib import Path

from kubesandbox.apiserver.objects.admission_plugins import page

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "sandbox-admission.md"

if __name__ == "__main__":
    PAGE.write_text(page())
