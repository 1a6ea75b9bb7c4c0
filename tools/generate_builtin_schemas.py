"""Write the table of built-in types from which the sandbox's API server knows the fields of the kinds it serves.

usage: tools/generate_builtin_schemas.py [VERSION FOLDER]

With a version such as 1.36.3 it writes the files of that version to the folder (tools/generate_kubernetes_versions.py).
Two sources at one VERSION, both by the Go module proxy (`go` must be installed): the OpenAPI v3 documents inside
k8s.io/kubernetes say types, required fields, list types, merge keys and defaults; the structs of k8s.io/api,
apimachinery, apiextensions-apiserver and kube-aggregator say what Go writes for a field that was not given. The
descriptions of types and fields are a separate file. `kubesandbox/apiserver/schema/builtin_table.py` explains the
result, which is checked in.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from kubesandbox.apiserver.served_kinds import BUILTIN

JSON = dict[str, Any]
VERSION = sys.argv[1] if len(sys.argv) > 1 else "1.34.4"
MODULES = {
    "io.k8s.api": ("k8s.io/api", ""),
    "io.k8s.apimachinery": ("k8s.io/apimachinery", ""),
    "io.k8s.apiextensions-apiserver": ("k8s.io/apiextensions-apiserver", ""),
    "io.k8s.kube-aggregator": ("k8s.io/kube-aggregator", ""),
}
_SERVER = Path(__file__).parent.parent / "packages/kubesandbox/src/kubesandbox/apiserver"
_FOLDER = Path(sys.argv[2]) if len(sys.argv) > 2 else None
OUTPUT = _FOLDER / "builtin_types.txt" if _FOLDER else _SERVER / "schema/builtin_types.txt"
DESCRIPTIONS = _FOLDER / "descriptions.json.z" if _FOLDER else _SERVER / "published/descriptions.json.z"
# What subresources read and write, beside the kinds that are served.
OTHER_ROOTS = (
    "io.k8s.api.core.v1.Binding",
    "io.k8s.api.policy.v1.Eviction",
    "io.k8s.api.autoscaling.v1.Scale",
    "io.k8s.api.authentication.v1.TokenRequest",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
)
SCALARS = {
    ("string", ""): "s", ("string", "byte"): "bytes", ("integer", "int32"): "i32", ("integer", "int64"): "i64",
    ("number", "double"): "n", ("boolean", ""): "b",
}  # fmt: skip
ZEROS = ("", 0, False, {})
META = "io.k8s.apimachinery.pkg.apis.meta.v1"
CORE = "io.k8s.api.core.v1"
# As the packages import one another.
_IMPORTS = {"metav1": META, "v1": CORE, "corev1": CORE, "apiv1": CORE}
# Structs that write themselves, and are written whether `omitempty` or not.
_VALUES = ("metav1.Time", "metav1.MicroTime", "Time", "MicroTime", "resource.Quantity", "intstr.IntOrString",
           "runtime.RawExtension")  # fmt: skip
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^type (\w+) (\S+)$", re.MULTILINE)
GATE = re.compile(r"^\s*// \+featureGate=([\w,]+)")
FIELD = re.compile(r'^\t(?:(\w+)\s+)?(\S+)\s+`json:"([^"]*)"', re.MULTILINE)


@cache
def module(name: str) -> Path:
    """Where the Go tool keeps a module."""
    version = f"v{VERSION}" if name == "k8s.io/kubernetes" else f"v0{VERSION.removeprefix('1')}"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "go.mod").write_text("module types\n\ngo 1.24\n")
        argv = ["go", "mod", "download", "-json", f"{name}@{version}"]
        out = subprocess.run(argv, cwd=folder, check=True, capture_output=True, text=True)
    return Path(json.loads(out.stdout)["Dir"])


@cache
def definitions() -> dict[str, JSON]:
    """Every type of the OpenAPI v3 documents by its full name."""
    found: dict[str, JSON] = {}
    for path in sorted((module("k8s.io/kubernetes") / "api/openapi-spec/v3").glob("*_openapi.json")):
        found |= json.loads(path.read_text()).get("components", {}).get("schemas", {})
    return found


# -- Go structs --------------------------------------------------------------------------------------------------------


@cache
def source(package: str) -> str:
    """The hand-written Go text of a package such as `io.k8s.api.core.v1`."""
    prefix = next(known for known in MODULES if package.startswith(known + "."))
    folder = module(MODULES[prefix][0]) / package.removeprefix(prefix + ".").replace(".", "/")
    return "\n".join(path.read_text() for path in sorted(folder.glob("*.go")) if "generated" not in path.name)


@cache
def structs(package: str) -> dict[str, str]:
    """Name -> the body of each struct."""
    return dict(STRUCT.findall(source(package)))


@cache
def go_fields(package: str, name: str) -> dict[str, tuple[str, str]]:
    """JSON name -> Go type and tag options of a struct's fields, those of embedded structs included."""
    found: dict[str, tuple[str, str]] = {}
    for _, go_type, tag in FIELD.findall(structs(package)[name]):
        json_name, _, options = tag.partition(",")
        if json_name:
            found[json_name] = (go_type, options)
        elif go_type.removeprefix("metav1.") == "TypeMeta":
            found |= {"kind": ("string", "omitempty"), "apiVersion": ("string", "omitempty")}
        else:
            found |= go_fields(package, go_type.lstrip("*"))
    return found


def zero_mark(package: str, go_type: str, options: str) -> str:
    """`*` a pointer, left out when nil; `-` a value whose zero is left out; nothing: the zero is written."""
    if "omitzero" in options or go_type.startswith("*"):
        return "*" if "omit" in options else "*null"
    prefix, _, name = go_type.rpartition(".")
    known = _IMPORTS.get(prefix, package if not prefix else "")
    is_struct = known != "" and name in structs(known)
    if is_struct or go_type in _VALUES or "omitempty" not in options:
        return ""
    return "-"


def named_string(package: str, go_type: str) -> str:
    """`v1.PullPolicy` for a field whose type is a string with a name: decoding errors say it."""
    bare = go_type.lstrip("*")
    if bare in {"string", "[]string"} or not re.fullmatch(r"[\w.]+", bare):
        return ""
    prefix, _, name = bare.rpartition(".")
    if home := _IMPORTS.get(prefix, package if not prefix else ""):
        aliases = dict(NAMED.findall(source(home)))
        return f"{home.rpartition('.')[2]}.{name}" if aliases.get(name) == "string" else ""
    return f"{prefix}.{name}" if prefix == "types" else ""


# -- the table ---------------------------------------------------------------------------------------------------------


def reference(schema: JSON) -> str:
    """The name that a schema refers to, or nothing."""
    ref = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf", ()) if "$ref" in part), "")
    return str(ref).rpartition("/")[2]


def references(schema: JSON) -> Iterator[str]:
    """Every type that a type needs."""
    for part in (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")):
        if isinstance(part, dict):
            if name := reference(part):
                yield name
            yield from references(part)


def reachable(roots: list[str]) -> dict[str, JSON]:
    """The types of the roots and of everything below them, by name."""
    found: dict[str, JSON] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = definitions()[name]
            waiting += references(found[name])
    return dict(sorted(found.items()))


def type_word(package: str, schema: JSON, go_type: str = "") -> str:
    """A type as the table writes it."""
    if name := reference(schema):
        return name.removeprefix(f"{package}.")
    if schema.get("type") == "array":
        return "[]" + type_word(package, schema["items"])
    if isinstance(values := schema.get("additionalProperties"), dict):
        return "{}" + type_word(package, values)
    word = SCALARS[schema["type"], schema.get("format", "")]
    alias = named_string(package, go_type) if word == "s" else ""
    return f"{word}/{alias}" if alias else word


def list_word(schema: JSON) -> str:
    """How server-side apply and a strategic merge patch merge a list or a map."""
    kind = schema.get("x-kubernetes-list-type") or schema.get("x-kubernetes-map-type") or ""
    keys = "+".join(schema.get("x-kubernetes-list-map-keys", ()))
    word = {"": "", "atomic": "^", "set": "~", "map": f"@{keys}", "granular": ""}[kind]
    if strategy := schema.get("x-kubernetes-patch-strategy"):
        key = schema.get("x-kubernetes-patch-merge-key", "")
        word += f"<{strategy}:{key}>" if key else f"<{strategy}>"
    return word


def field_word(package: str, owner: str, name: str, schema: JSON, required: bool) -> str:
    """One field."""
    go_type, options = go_fields(package, owner)[name]
    default = schema.get("default")
    word = name + ("!" if required else "") + ":" + type_word(package, schema, go_type)
    word += zero_mark(package, go_type, options) + list_word(schema)
    return word if default is None or default in ZEROS else word + "=" + json.dumps(default)


def type_line(package: str, owner: str, schema: JSON) -> str:
    """One type: its name, then its fields in the order of the structs."""
    order = list(go_fields(package, owner))
    properties = sorted(schema.get("properties", {}).items(), key=lambda item: order.index(item[0]))
    required = schema.get("required", ())
    words = [
        field_word(package, owner, name=name, schema=field, required=name in required) for name, field in properties
    ]
    atomic = "^" if schema.get("x-kubernetes-map-type") == "atomic" else ""
    return " ".join([owner + atomic, *words])


def root_names() -> dict[str, str]:
    """Type -> group of the kinds that the server serves."""
    wanted = {(kind.group, kind.version, kind.kind): kind.group for kind in BUILTIN}
    found = {}
    for name, schema in definitions().items():
        for gvk in schema.get("x-kubernetes-group-version-kind", ()):
            if (gvk["group"], gvk["version"], gvk["kind"]) in wanted and name.rpartition(".")[2] == gvk["kind"]:
                found[name] = gvk["group"]
    missing = len(wanted) - len(found)
    assert not missing, f"{missing} kinds are not in the documents"
    return found


def main() -> None:
    """Write the table."""
    groups = {name.rpartition(".")[0]: group for name, group in root_names().items()}
    groups["io.k8s.api.autoscaling.v1"] = "autoscaling"  # for Scale
    packages: dict[str, list[str]] = {}
    for name, schema in reachable([*root_names(), *OTHER_ROOTS]).items():
        package, _, owner = name.rpartition(".")
        if schema.get("properties") or (package.startswith("io.k8s.api.") and owner in structs(package)):
            packages.setdefault(package, []).append(type_line(package, owner, schema))
    lines = [f"# Kubernetes {VERSION}. Written by tools/generate_builtin_schemas.py, not by hand."]
    for package, types in packages.items():
        group = groups.get(package, "-")
        lines += [f"[{package} {group or 'core'}]", *types]
    OUTPUT.write_text("\n".join(lines) + "\n")
    DESCRIPTIONS.write_bytes(zlib.compress(json.dumps(descriptions(), separators=(",", ":")).encode(), 9))
    if _FOLDER:
        (_FOLDER / "gated_fields.json").write_text(json.dumps(gated_fields()))


def gated_fields() -> dict[str, dict[str, list[str]]]:
    """Returns by type and field the feature gates that a field needs by the comment of the Go struct."""
    gated: dict[str, dict[str, list[str]]] = {}
    for full in reachable([*root_names(), *OTHER_ROOTS]):
        package, _, name = full.rpartition(".")
        gates: list[str] = []
        known = any(package.startswith(prefix + ".") for prefix in MODULES)
        for line in structs(package).get(name, "").splitlines() if known else ():
            if match := GATE.match(line):
                gates += match[1].split(",")
            elif match := FIELD.match(line):
                if gates:
                    gated.setdefault(full, {})[match[3].partition(",")[0]] = gates
                gates = []
    return gated


def descriptions() -> JSON:
    """Returns the texts, and by type and field the number of the text; the type itself is the field ""."""
    numbers: dict[str, int] = {}
    types: dict[str, dict[str, int]] = {}
    for name, schema in sorted(reachable([*root_names(), *OTHER_ROOTS]).items()):
        described = {"": schema, **schema.get("properties", {})}
        of_fields = {field: text for field, one in described.items() if (text := one.get("description"))}
        types[name] = {field: numbers.setdefault(text, len(numbers)) for field, text in of_fields.items()}
    return {"texts": list(numbers), "types": types}


if __name__ == "__main__":
    main()
