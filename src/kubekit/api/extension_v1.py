"""What extends the API server: definitions, aggregated APIs, webhooks and admission policies."""

from typing import Any

from kubekit.api.meta_v1 import Condition, LabelSelector, LooseCondition, Object, Wire


class ServiceReference(Wire, frozen=True):
    """A Service that the API server calls; without a port it is 443."""

    namespace: str = ""
    name: str = ""
    port: int = 443


class WebhookClientConfig(Wire, frozen=True):
    """How a webhook is reached: a service of the cluster, or an URL."""

    service: ServiceReference | None = None
    url: str = ""
    ca_bundle: str = ""


class WebhookConversion(Wire, frozen=True):
    """`spec.conversion.webhook` of a CustomResourceDefinition."""

    client_config: WebhookClientConfig | None = None


class CRDConversion(Wire, frozen=True):
    """`spec.conversion`; `strategy` is None or Webhook."""

    strategy: str = ""
    webhook: WebhookConversion | None = None


class CRDNames(Wire, frozen=True):
    """`spec.names`."""

    kind: str = ""
    plural: str = ""


class CRDVersion(Wire, frozen=True):
    """One of `spec.versions`; its schema is not read."""

    name: str = ""
    served: bool = False
    storage: bool = False


class CRDSpec(Wire, frozen=True):
    """`spec` of a CustomResourceDefinition."""

    group: str = ""
    names: CRDNames = CRDNames()
    versions: tuple[CRDVersion, ...] = ()
    conversion: CRDConversion = CRDConversion()


class CRDStatus(Wire, frozen=True):
    """`status`; `stored_versions` are those in which objects may lie in etcd."""

    stored_versions: tuple[str, ...] = ()
    conditions: tuple[LooseCondition, ...] = ()


class CustomResourceDefinition(Object, frozen=True):
    """A kind that somebody added."""

    spec: CRDSpec = CRDSpec()
    status: CRDStatus = CRDStatus()


class APIServiceSpec(Wire, frozen=True):
    """`spec` of an APIService; without a service it is the API server's own."""

    service: ServiceReference | None = None
    group: str = ""
    version: str = ""


class APIServiceStatus(Wire, frozen=True):
    """`status` of an APIService."""

    conditions: tuple[Condition, ...] = ()


class APIService(Object, frozen=True):
    """A version of a group, and who answers for it."""

    spec: APIServiceSpec = APIServiceSpec()
    status: APIServiceStatus = APIServiceStatus()


class RuleWithOperations(Wire, frozen=True):
    """Which requests a webhook or policy is asked about; `*` is all."""

    operations: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    scope: str = "*"


class Webhook(Wire, frozen=True):
    """One webhook; the defaults are those of admissionregistration.k8s.io/v1."""

    name: str = ""
    client_config: WebhookClientConfig = WebhookClientConfig()
    rules: tuple[RuleWithOperations, ...] = ()
    failure_policy: str = "Fail"
    match_policy: str = "Equivalent"
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    timeout_seconds: int = 10
    admission_review_versions: tuple[str, ...] = ()
    match_conditions: tuple[Any, ...] = ()


class ValidatingWebhookConfiguration(Object, frozen=True):
    """Webhooks that may refuse a request."""

    webhooks: tuple[Webhook, ...] = ()


class MutatingWebhookConfiguration(Object, frozen=True):
    """Webhooks that may change a request."""

    webhooks: tuple[Webhook, ...] = ()


class ParamKind(Wire, frozen=True):
    """The kind of the objects that parameterise a policy."""

    api_version: str = ""
    kind: str = ""


class AdmissionPolicySpec(Wire, frozen=True):
    """`spec` of a ValidatingAdmissionPolicy."""

    param_kind: ParamKind | None = None
    failure_policy: str = "Fail"


class ValidatingAdmissionPolicy(Object, frozen=True):
    """Rules in CEL that may refuse a request."""

    spec: AdmissionPolicySpec = AdmissionPolicySpec()


class AdmissionPolicyBindingSpec(Wire, frozen=True):
    """`spec` of a ValidatingAdmissionPolicyBinding."""

    policy_name: str = ""
    validation_actions: tuple[str, ...] = ()


class ValidatingAdmissionPolicyBinding(Object, frozen=True):
    """Puts a policy into force."""

    spec: AdmissionPolicyBindingSpec = AdmissionPolicyBindingSpec()
