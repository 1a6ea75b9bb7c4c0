"""Reads and writes YAML as Kubernetes does; values are JSON-like (dict, list, str, int, float, bool, None).

The scalar rules are those of the Go library behind sigs.k8s.io/yaml, which differ from PyYAML's: `y` and `on` are true,
`0644` and `0o644` are 420, `1e3` is 1000, times of day and dates stay text, every key becomes a string. A loader with
other rules would apply a file mode of 644, or accept an annotation that the cluster's own tools reject.

Three readers are tried in turn: JSON, `yaml_plain` for the layout that cluster tools write, `yaml_events` for
everything, including errors. They differ in speed only: the values are the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubekit.lang import yaml_plain
from kubekit.lang.yaml_errors import YamlError
from kubekit.lang.yaml_scalars import NotPlain, scalar

__all__ = ("YamlError", "dump", "dump_all", "load", "load_all", "scalar")


def load(text: str | bytes, *, name: str = "", strict: bool = False) -> Any:
    """Returns the only document of `text`, or None if it is empty.

    `name` is the file's name for errors. `strict` makes a duplicate key an error; otherwise the last one counts. Raises
    YamlError, also for more than one document.
    """
    documents = load_all(text, name=name, strict=strict)
    if len(documents) > 1:
        raise YamlError(f"holds {len(documents)} documents where one is expected", name=name)
    return documents[0] if documents else None


def load_all(text: str | bytes, *, name: str = "", strict: bool = False) -> list[Any]:
    """Returns every document of `text` in order; an empty document is None. Raises YamlError as `load` does."""
    decoded = _decode_text(text, name)
    if not strict and decoded.lstrip()[:1] == "{":
        # JSON may be indented with tabs, which YAML forbids; and decoding it as JSON is many times as fast.
        import msgspec  # which YAML does not need

        try:
            return [msgspec.json.decode(decoded)]
        except (msgspec.DecodeError, RecursionError):
            pass
    try:
        return yaml_plain.read_plain_documents(decoded, strict=strict)
    except NotPlain:
        from kubekit.lang import yaml_events

        return yaml_events.read_documents(decoded, name, strict=strict)


def dump(value: Any) -> str:
    """Returns `value` as one document in block style, with its key order kept and ambiguous YAML 1.1 text quoted."""
    from kubekit.lang.yaml_dump import dump_document

    return dump_document(value)


def dump_all(values: Iterable[Any]) -> str:
    """Returns `values` as documents separated by `---`."""
    return "---\n".join(dump(value) for value in values)


def _decode_text(text: str | bytes, name: str) -> str:
    """Returns the text without a byte order mark. Raises YamlError, with the line, if it is not UTF-8."""
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise YamlError(f"is not UTF-8 text (byte {error.object[error.start]:#x})", name=name, line=line) from error
