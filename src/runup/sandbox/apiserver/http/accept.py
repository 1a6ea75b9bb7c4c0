"""Which form of an answer a client accepts: the object itself, a table for printing, or metadata alone."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

from runup.sandbox.apiserver.errors import not_acceptable


class Form(Enum):
    """What stands in the body."""

    OBJECT = "object"
    TABLE = "Table"
    PARTIAL = "PartialObjectMetadata"
    PARTIAL_LIST = "PartialObjectMetadataList"
    DISCOVERY = "APIGroupDiscoveryList"


_JSON_LIKE = frozenset({"application/json", "application/*", "*/*", "application/yaml"})
_GROUPS = frozenset({"meta.k8s.io", "apidiscovery.k8s.io"})


@lru_cache(maxsize=256)
def negotiate(accept: str) -> tuple[Form, bool]:
    """The first form of an Accept header that the server has, and whether it is wanted as YAML; raises ApiError 406."""
    if not accept:
        return Form.OBJECT, False
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        if media not in _JSON_LIKE:
            continue
        options = dict(part.split("=", 1) for part in parameters if "=" in part)
        wanted = options.get("as", "")
        if not wanted:
            return Form.OBJECT, media == "application/yaml"
        if options.get("g") in _GROUPS and options.get("v") in {"v1", "v2"} and wanted in _FORMS:
            return _FORMS[wanted], media == "application/yaml"
    raise not_acceptable()


_FORMS = {form.value: form for form in Form if form is not Form.OBJECT}
