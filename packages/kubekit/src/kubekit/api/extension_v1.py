"""The kinds that extend the API server: definitions, aggregated APIs, webhooks and admission policies."""

from typing import Any

from kubekit.api.meta_v1 import Condition, LabelSelector, LooseCondition, Object, Wire


class ServiceReference(Wire, frozen=True):
    """A Service that the API server calls; without a port it is 443."""

    namespace: str = ""
    name: str = ""
    port: int = 443


class WebhookClientConfig(Wire, frozen=True):
    """The address of a webhook: a service of the cluster, or a URL."""

    service: ServiceReference | None = None
    url: str = ""
    ca_bundle: str = ""


class WebhookConversion(Wire, frozen=True):
    """`spec.conversion.webhook` of a CustomResourceDefinition."""

    client_config: WebhookClientConfig | None = None


class CRDConversion(Wire, frozen=True):
    """`spec.conversion` of a CustomResourceDefinition; `strategy` is None or Webhook."""

    strategy: str = ""
    webhook: WebhookConversion | None = None


class CRDNames(Wire, frozen=True):
    """`spec.names` of a CustomResourceDefinition."""

    kind: str = ""
    plural: str = ""


class CRDVersion(Wire, frozen=True):
    """An entry of `spec.versions` of a CustomResourceDefinition; its schema is not read."""

    name: str = ""
    served: bool = False
    storage: bool = False


class CRDSpec(Wire, frozen=True):
    group: str = ""
    names: CRDNames = CRDNames()
    versions: tuple[CRDVersion, ...] = ()
    conversion: CRDConversion = CRDConversion()


class CRDStatus(Wire, frozen=True):
    """`status` of a CustomResourceDefinition; `stored_versions` are those in which objects may be stored in etcd."""

    stored_versions: tuple[str, ...] = ()
    conditions: tuple[LooseCondition, ...] = ()


class CustomResourceDefinition(Object, frozen=True, kw_only=True):
    """A kind that was added to the API."""

    spec: CRDSpec = CRDSpec()
    status: CRDStatus = CRDStatus()


class APIServiceSpec(Wire, frozen=True):
    """`spec` of an APIService; without a service the API server itself serves it."""

    service: ServiceReference | None = None
    group: str = ""
    version: str = ""


class APIServiceStatus(Wire, frozen=True):
    conditions: tuple[Condition, ...] = ()


class APIService(Object, frozen=True, kw_only=True):
    """A version of a group, and the server that serves it."""

    spec: APIServiceSpec = APIServiceSpec()
    status: APIServiceStatus = APIServiceStatus()


class RuleWithOperations(Wire, frozen=True, kw_only=True):
    """The requests for which a webhook or policy is called; `*` is all."""

    operations: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    api_versions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    scope: str = "*"


class Webhook(Wire, frozen=True, kw_only=True):
    """A webhook; the defaults are those of admissionregistration.k8s.io/v1."""

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


class MatchResources(Wire, frozen=True, kw_only=True):
    """The requests that a policy or its binding is for."""

    resource_rules: tuple[RuleWithOperations, ...] = ()
    exclude_resource_rules: tuple[RuleWithOperations, ...] = ()
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    match_policy: str = ""


class NamedExpression(Wire, frozen=True):
    """A match condition or a variable of a policy, in CEL."""

    name: str
    expression: str


class Validation(Wire, frozen=True):
    """A condition that requests must meet, in CEL, and the message of a denial."""

    expression: str
    message: str = ""
    message_expression: str = ""


class AdmissionPolicySpec(Wire, frozen=True, kw_only=True):
    """`spec` of an admission policy; without constraints the requests that it is for are not known.

    A MutatingAdmissionPolicy has no validations; its mutations are not read.
    """

    param_kind: ParamKind | None = None
    failure_policy: str = "Fail"
    match_constraints: MatchResources | None = None
    match_conditions: tuple[NamedExpression, ...] = ()
    variables: tuple[NamedExpression, ...] = ()
    validations: tuple[Validation, ...] = ()


class ValidatingAdmissionPolicy(Object, frozen=True):
    """Rules in CEL that may refuse a request."""

    spec: AdmissionPolicySpec = AdmissionPolicySpec()


class AdmissionPolicyBindingSpec(Wire, frozen=True):
    """`spec` of the binding of an admission policy; one of a MutatingAdmissionPolicy has no actions."""

    policy_name: str = ""
    validation_actions: tuple[str, ...] = ()
    match_resources: MatchResources | None = None


class ValidatingAdmissionPolicyBinding(Object, frozen=True):
    """A binding that puts a policy into force."""

    spec: AdmissionPolicyBindingSpec = AdmissionPolicyBindingSpec()
