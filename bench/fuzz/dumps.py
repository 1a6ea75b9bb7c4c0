"""Fuzzed dumps: folders of each layout and archives of them, with files that nobody should trust; for `bench.fuzz`."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.fuzz.changes import JSON, ODD, changed_bytes, changed_document, encoded
from bench.fuzz.outcomes import ACCEPTED, FOLDER, check_text
from bench.hostile.images import header
from kubekit.lang.files import remove_tree
from runup.dump import load
from runup.dump.dump_files import BadDump

_META = {"resourceVersion": "7", "uid": "a", "creationTimestamp": "2026-01-14T10:00:00Z", "labels": {"a": "b"}}
_STATUS = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-14T10:00:00Z"}]}
_VERSION = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "ClusterVersion",
    "metadata": _META | {"name": "version"},
    "spec": {"clusterID": "a", "channel": "stable-5.0"},
    "status": _STATUS | {"desired": {"version": "5.0.0"}, "history": [{"version": "5.0.0", "state": "Completed"}]},
}
_NODE = {"apiVersion": "v1", "kind": "Node", "metadata": _META | {"name": "n"}, "status": _STATUS}
_NODES = {"apiVersion": "v1", "kind": "NodeList", "metadata": {"resourceVersion": "9"}, "items": [_NODE] * 3}
_LIST = {"apiVersion": "v1", "kind": "List", "items": [_VERSION, _NODE, _NODE | {"metadata": _META | {"name": "m"}}]}
_MACHINE_CONFIG = {
    "apiVersion": "machineconfiguration.openshift.io/v1",
    "kind": "MachineConfig",
    "metadata": _META | {"name": "mc"},
    "spec": {"config": {"storage": {"files": [{"path": "/a", "contents": {"source": "data:," + "x" * 200}}]}}},
}
_DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": _META | {"name": "as.example.com"},
    "spec": {"group": "example.com", "names": {"kind": "A", "plural": "as"}, "versions": [{"name": "v1"}]},
}
_DOCUMENTS: tuple[JSON, ...] = (_VERSION, _NODE, _NODES, _LIST, _MACHINE_CONFIG, _DEFINITION)
# A file of each layout that a folder may have, and the name of the dump's ClusterVersion in it.
_LAYOUTS = (
    ("cluster.yaml", ("\udcff.yaml", "nodes.yaml", "a.json", "b.yml", "runup-dump.json")),
    (
        "cluster-scoped-resources/config.openshift.io/clusterversions/version.yaml",
        (
            "cluster-scoped-resources/core/nodes.yaml",
            "cluster-scoped-resources/core/nodes/n.yaml",
            "namespaces/a/core/pods.yaml",
            "namespaces/a/a.yaml",
            "timestamp",
            "version",
        ),
    ),
    ("config/version.json", ("config/node/n.json", "config/configmaps/a/b/c", "config/pod/a/p.json")),
    ("x-cv.yaml", ("x-co.yaml", "x-node.yaml", "x-mcp.yaml")),
    (
        "cluster-info/nodes.json",
        ("cluster-resources/nodes.json", "cluster-resources/pods/a.json", "version.yaml", "cluster-info/version.json"),
    ),
)
_WORDS = (
    *(b"\n---\n", b"- ", b"a: ", b"&a ", b"*a", b"<<: *a\n", b"!!python/object:os.system ", b"|\n", b">-\n", b"? "),
    *(b"{", b"[", b"\t", b"\xef\xbb\xbf", b"\0", b"\xff\xfe", b"'", b'"', b"%YAML 9.9\n", b"!!binary ", b"#"),
    *(
        b"&a [*a,*a]",
        b"k: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n",
        b"0x" + b"f" * 5000,
        b"1e9999",
        b"2026-99-99",
        b"!!set {",
    ),
    *(b'"kind":"List","items":null', b'"metadata":[]', b"kind: []\n", b"apiVersion: {}\n"),
)


def make(drawn: random.Random) -> bytes:
    """Returns a line with the way it is given and the files' names and sizes, as JSON, then the files."""
    place, others = drawn.choice(_LAYOUTS)
    names = [place, *(name for name in others if drawn.random() < 0.5)]
    # Most dumps keep a good ClusterVersion, or else all that follows it would never run.
    files = [_file(drawn, name, whole=name == place and drawn.random() < 0.8) for name in names]
    way = drawn.choice(("folder", "folder", "tar", "gz", "bz2", "xz"))
    if way == "folder":
        content, sizes = b"".join(files), list(map(len, files))
    else:
        tar = b"".join(_member(drawn, name, data) for name, data in zip(names, files, strict=True)) + bytes(1024)
        tar = changed_bytes(drawn, tar, (header(b"a.yaml"), bytes(512))) if drawn.random() < 0.3 else tar
        content = _PACKED[way](tar)
        content = changed_bytes(drawn, content) if drawn.random() < 0.3 else content
        names, sizes = [f"dump.{way}"], [len(content)]
    return json.dumps([way, names, sizes]).encode() + b"\n" + content


_PACKED: dict[str, Callable[[bytes], bytes]] = {
    "tar": bytes,
    "gz": lambda data: gzip.compress(data, 1, mtime=0),
    "bz2": lambda data: bz2.compress(data, 1),
    "xz": lambda data: lzma.compress(data, preset=0),
}


def _file(drawn: random.Random, name: str, *, whole: bool) -> bytes:
    document = _VERSION if whole else drawn.choice(_DOCUMENTS)
    if not whole and drawn.random() < 0.7:
        document = changed_document(drawn, document, (*ODD, document, "List", "NodeList", [document] * 30))
    data = encoded(document) if name.endswith(".json") or drawn.random() < 0.3 else _yaml(document).encode()
    return data if whole or drawn.random() < 0.4 else changed_bytes(drawn, data, _WORDS)


def _yaml(document: JSON, indent: str = "") -> str:
    """Returns `document` as block YAML with quoted scalars."""
    if isinstance(document, dict) and document:
        return "".join(
            f"\n{indent}{json.dumps(str(key))}: {_yaml(each, indent + '  ')}" for key, each in document.items()
        )
    if isinstance(document, list) and document:
        return "".join(f"\n{indent}- {_yaml(each, indent + '  ')}" for each in document)
    return json.dumps(document)


def _member(drawn: random.Random, name: str, data: bytes) -> bytes:
    odd = drawn.choice(("../a.yaml", f"/{name}", "d/" * 90 + name, "\udcff.yaml")) if drawn.random() < 0.1 else ""
    kind = drawn.choice((b"0", b"2", b"5", b"S", b"x")) if drawn.random() < 0.1 else b"0"
    path = (odd or f"dump/{name}").encode(errors="surrogateescape")
    return header(path, kind, len(data), b"/etc/passwd") + data + bytes(-len(data) % 512)


def read(data: bytes) -> str:
    """Returns what came of such an input."""
    head, _, content = data.partition(b"\n")
    way, names, sizes = json.loads(head)
    folder = Path(tempfile.mkdtemp(dir=FOLDER, prefix="fuzz-"))
    try:
        at = 0
        for name, size in zip(names, sizes, strict=True):
            file = folder / "dump" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content[at : at + size])
            at += size
        dump = load.read(folder / "dump" if way == "folder" else folder / "dump" / names[0])
        load.time_of_dump(dump)
        for problem in dump.problems:
            check_text(problem)
    except BadDump as error:
        return check_text(str(error))
    finally:
        remove_tree(folder)
    return ACCEPTED
