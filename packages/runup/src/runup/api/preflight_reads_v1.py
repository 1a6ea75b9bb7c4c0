"""The file in a release image that names what its Python checks read (`preflight-reads-v1`)."""

from kubekit.api.meta_v1 import Wire

FILE = "preflight-checks/reads"


class Right(Wire, frozen=True):
    """The permission to read one kind: `resource` is its plural, `namespace` is empty for the whole cluster."""

    group: str
    resource: str
    namespace: str = ""
