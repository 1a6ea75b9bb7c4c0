"""Content negotiation: the representation that a client accepts (the object, a table, or metadata only)."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from kubesandbox.apiserver.status_errors import not_acceptable, only_media_types, only_stream_types


class Form(Enum):
    """The representation in a response's body."""

    OBJECT = "object"
    TABLE = "Table"
    PARTIAL = "PartialObjectMetadata"
    PARTIAL_LIST = "PartialObjectMetadataList"
    DISCOVERY = "APIGroupDiscoveryList"


class Accepted(NamedTuple):
    """The negotiated representation; `version` is that of `meta.k8s.io` for its kinds."""

    form: Form = Form.OBJECT
    as_yaml: bool = False
    version: str = "v1"


_JSON_LIKE = frozenset({"application/json", "application/*", "*/*", "application/yaml"})
_META, _DISCOVERY = ("meta.k8s.io", ("v1", "v1beta1")), ("apidiscovery.k8s.io", ("v2",))
# Form -> its group, and the versions of it that the server has.
_FORMS = {
    "Table": (Form.TABLE, *_META),
    "PartialObjectMetadata": (Form.PARTIAL, *_META),
    "PartialObjectMetadataList": (Form.PARTIAL_LIST, *_META),
    "APIGroupDiscoveryList": (Form.DISCOVERY, *_DISCOVERY),
}


# The representations of objects; those of what is answered and never stored, such as a review.
OBJECTS = frozenset({Form.OBJECT, Form.TABLE, Form.PARTIAL, Form.PARTIAL_LIST})
UNSTORED = frozenset({Form.OBJECT, Form.PARTIAL})
DOCUMENTS = frozenset({Form.OBJECT, Form.DISCOVERY})


@lru_cache(maxsize=256)
def negotiate(accept: str, forms: frozenset[Form] = OBJECTS, *, stream: bool = False) -> Accepted:
    """Returns the first representation of an Accept header that the server supports. Raises ApiError 406."""
    if not accept:
        return Accepted()
    refusal = not_acceptable
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        if media not in _JSON_LIKE:
            continue
        as_yaml = media == "application/yaml"
        if stream and as_yaml:
            refusal = only_stream_types
            continue
        refusal = only_media_types
        options = dict(part.split("=", 1) for part in parameters if "=" in part)
        # Without as= the client accepts the object itself.
        if not options.get("as"):
            return Accepted(as_yaml=as_yaml)
        form, group, versions = _FORMS.get(options["as"], (Form.OBJECT, "", ()))
        if form in forms and (version := options.get("v", "")) in versions and options.get("g") == group:
            return Accepted(form, as_yaml, version)
    raise refusal()
