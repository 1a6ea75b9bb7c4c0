"""Lists the admission webhooks of both kinds, and determines which of them are called for the requests of an update.

In: a snapshot of the cluster. Out: the webhooks, and for each of them the objects that it intercepts, in words.
How the API server decides whom it calls is in its source: apiserver, `pkg/admission/plugin/webhook/predicates` (rules,
namespace, object). A namespaceSelector spares no object that is in no namespace, except namespaces themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product

from msgspec.structs import replace

from kubekit.api.core_v1 import Namespace
from kubekit.api.extension_v1 import MutatingWebhookConfiguration as Mutating
from kubekit.api.extension_v1 import RuleWithOperations, Webhook
from kubekit.api.extension_v1 import ValidatingWebhookConfiguration as Validating
from kubekit.rules.webhooks import is_in_scope, is_named, is_resource_named
from runup.checks.catalogue.apis.shared.release_writes import ReleaseWrite
from runup.checks.catalogue.shared.pods import PODS
from runup.checks.decide.built_in_groups import is_built_in
from runup.checks.decide.removal_tables import removed_resource, removed_versions, table
from runup.checks.writing import Finding, Resource, Snapshot, Unreadable, names, resource_of, unknown, yield_from_all
from runup.rules.platform_namespaces import is_system
from runup.rules.update_writes import WRITES, Place, Write

Configuration = Validating | Mutating
READS: tuple[Resource, ...] = (
    resource_of(Validating),
    resource_of(Mutating),
)
NAMESPACES = resource_of(Namespace)
# Labels by namespace.
Namespaces = Mapping[str, dict[str, str]]
# No minor version of Kubernetes 1 is higher.
_ANY_MINOR = 1_000
# Used as the platform's namespaces if the cluster's are unknown: most have no run-level.
_USUAL_NAMESPACES: Namespaces = {
    "openshift-etcd": {"kubernetes.io/metadata.name": "openshift-etcd", "openshift.io/run-level": "0"},
    "openshift-ingress": {"kubernetes.io/metadata.name": "openshift-ingress"},
}


def webhooks(snapshot: Snapshot) -> Iterator[tuple[Configuration, Webhook]]:
    """Yields every webhook with its configuration, in a fixed order. Raises Unreadable at the end if a kind lacks."""
    kinds: tuple[type[Configuration], ...] = (Mutating, Validating)

    def of_kind(kind: type[Configuration]) -> list[Configuration]:
        return sorted(snapshot.all(kind), key=lambda configuration: configuration.metadata.name)

    for configuration in yield_from_all(*(partial(of_kind, kind) for kind in kinds)):
        for webhook in configuration.webhooks:
            yield configuration, webhook


def writes_of(webhook: Webhook) -> tuple[Write, ...]:
    """Returns the writes of an update that a rule of the webhook names, in whatever namespace."""
    return tuple(write for write in WRITES if any(_matches_write(rule, write) for rule in webhook.rules))


def intercepted_release_objects(snapshot: Snapshot, webhook: Webhook, writes: Iterable[ReleaseWrite]) -> str:
    """Returns in words the objects of the release that the webhook intercepts, "" if they do not exist.

    Raises Unreadable if a namespaceSelector needs namespaces that could not be read.
    """
    found: dict[str, None] = {}
    for each in writes:
        resource, selector = each.resource, webhook.namespace_selector
        place: Place = "platform" if resource.namespaced else "cluster"
        write = Write(
            group=resource.group, resource=resource.plural, operations=each.operations, place=place, sender="release"
        )
        if not any(_matches_write(rule, write) for rule in webhook.rules):
            continue
        if webhook.object_selector is not None and not webhook.object_selector.matches(each.labels):
            continue
        if resource.namespaced and selector is not None:
            own = {"kubernetes.io/metadata.name": each.namespace}
            if not selector.matches(namespaces(snapshot).get(each.namespace, own)):
                continue
        found[f"{resource.kind} {each.name} of the release"] = None
    return names(list(found), 3)


def intercepted_objects(snapshot: Snapshot, webhook: Webhook) -> str:
    """Returns in words the objects that an update writes and the webhook intercepts, "" if they do not exist.

    An objectSelector that needs a label intercepts no object of the release, whose labels are the release's, and those
    pods of users that have the label. Raises Unreadable if a selector needs namespaces or pods that could not be read.
    """
    matched = writes_of(webhook)
    if webhook.object_selector is not None and not webhook.object_selector.matches({}):
        return _labelled_pods(snapshot, webhook, matched)
    if in_cluster := _resources(matched, "cluster"):
        return in_cluster
    own, platform, everywhere = (
        _resources(matched, "platform's namespaces"),
        _resources(matched, "platform", "everywhere"),
        _resources(matched, "everywhere"),
    )
    if not matched:
        return ""
    selector = webhook.namespace_selector
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return own or f"{platform} in every namespace"
    try:
        reached = _matching_names(webhook, namespaces(snapshot))
    except Unreadable:
        # The namespaces that every cluster has may be enough to answer.
        if not (reached := _matching_names(webhook, _USUAL_NAMESPACES)):
            raise
    system = sorted(name for name in reached if is_system(name))
    if own and system:
        return f"{own} ({names(system)})"
    if platform and system:
        return f"{platform} in {names(system)}"
    return f"{everywhere} in {names(reached)}" if everywhere and reached else ""


def _labelled_pods(snapshot: Snapshot, webhook: Webhook, matched: Sequence[Write]) -> str:
    """Returns the namespaces of pods that the webhook's objectSelector selects, if it is called for pods at all."""
    selector = webhook.object_selector
    if selector is None or not any((write.group, write.resource) == ("", "pods") for write in matched):
        return ""
    reached = _matching_names(webhook, namespaces(snapshot))
    found = {pod.metadata.namespace for pod in snapshot.listed(PODS) if selector.matches(pod.metadata.labels)}
    here = sorted(found.intersection(reached))
    return f"pods in {names(here)}" if here else ""


def _resources(writes: Sequence[Write], *places: str) -> str:
    """Returns the resources of the writes to these places in words, without repetitions."""
    return names(list(dict.fromkeys(write.resource for write in writes if write.place in places)), 3)


def namespaces(snapshot: Snapshot) -> Namespaces:
    """Returns the labels of every namespace; those of usual ones if the cluster's list is empty. Raises Unreadable."""
    listed = snapshot.all(Namespace)
    # The API server sets the label with the name; a file that somebody wrote may lack it.
    return {
        namespace.metadata.name: {"kubernetes.io/metadata.name": namespace.metadata.name} | namespace.metadata.labels
        for namespace in listed
    } or _USUAL_NAMESPACES


def is_called_for_pod(webhook: Webhook, namespace: dict[str, str], labels: dict[str, str]) -> bool:
    """Returns whether the webhook is called when a pod with these labels is made in a namespace with those."""
    if not any(_matches_write(rule, _NEW_POD) for rule in webhook.rules):
        return False
    selectors = ((webhook.namespace_selector, namespace), (webhook.object_selector, labels))
    return all(selector is None or selector.matches(label_set) for selector, label_set in selectors)


_NEW_POD = Write(group="", resource="pods", operations=("CREATE",), place="everywhere", sender="drain")


def with_served_rules(webhook: Webhook, minor: int) -> Webhook:
    """Returns the webhook without the rules whose versions Kubernetes of that minor version no longer serves.

    The API server calls no webhook by such a rule, not even with matchPolicy Equivalent (the Kubernetes documentation
    of dynamic admission control).
    """
    rules = tuple(rule for rule in webhook.rules if (last := last_served_before(rule)) is None or last > minor)
    return webhook if len(rules) == len(webhook.rules) else replace(webhook, rules=rules)


def names_removed(rules: Iterable[RuleWithOperations]) -> bool:
    """Returns whether one of the rules names only versions that some minor version of Kubernetes removes."""
    return any(last_served_before(rule) is not None for rule in rules)


def versions_beyond_table(rules: Iterable[RuleWithOperations], target: int) -> list[str]:
    """Returns the versions of rules that name only unstable versions, if no table says whether `target` serves them.

    Only alpha and beta versions are ever removed within a major version
    (https://kubernetes.io/docs/reference/using-api/deprecation-policy/).
    """
    if table("removed-apis").knows(target):
        return []
    unstable = [
        rule
        for rule in rules
        if all(map(is_built_in, rule.api_groups))
        and all("alpha" in version or "beta" in version for version in rule.api_versions)
        and last_served_before(rule) is None
    ]
    pairs = (pair for rule in unstable for pair in product(rule.api_groups, rule.api_versions))
    return sorted({f"{group}/{version}" for group, version in pairs})


def beyond_table_finding(name: str, holder: str, versions: Sequence[str]) -> Finding:
    """Returns the Unknown finding of check `name` about the versions that a rule of `holder` names."""
    last = table("removed-apis").last
    why = f"the table of removed versions ends with Kubernetes 1.{last}, and a rule of {holder} names only "
    why += names(versions)
    return unknown(name, why, fix="Look the versions up in the Kubernetes deprecation guide.")


def versions_not_covered(rules: Sequence[RuleWithOperations], source: int, target: int) -> list[str]:
    """Returns the versions (`group/version`) that rules match at minor version `source` and none match at `target`.

    A rule that matches nothing then does not count where others match the same resources and operations.
    """
    lasts = [(rule, last_served_before(rule)) for rule in rules]
    # What a rule with a version that stays matches: API groups, resources, operations.
    live = [
        ({*rule.api_groups}, {*rule.resources}, {*rule.operations})
        for rule, last in lasts
        if last is None or last > target
    ]

    def is_covered(rule: RuleWithOperations) -> bool:
        """Returns whether the live rules name the same operations on the same resources."""
        return all(
            any(
                {group, "*"} & groups and {resource, "*"} & resources and {verb, "*"} & verbs
                for groups, resources, verbs in live
            )
            for group, resource, verb in product(rule.api_groups, rule.resources, rule.operations)
        )

    dead = [rule for rule, last in lasts if last is not None and source < last <= target and not is_covered(rule)]
    return sorted({f"{group}/{version}" for rule in dead for group in rule.api_groups for version in rule.api_versions})


def last_served_before(rule: RuleWithOperations) -> int | None:
    """Returns the first minor version that serves nothing of what a rule names; None if there may be something."""
    last = None
    for group, version, resource in product(rule.api_groups, rule.api_versions, rule.resources):
        if resource.partition("/")[0] == "*":
            # Kinds of one version may go one after the other.
            gone = removed_versions(0, _ANY_MINOR).items()
            minors = [minor for (its_group, its, _), minor in gone if (its_group, its) == (group, version)]
            minor = max(minors, default=None)
        else:
            minor = removed_resource(resource.partition("/")[0], version, group)
        if minor is None:
            return None
        last = max(minor, last or 0)
    return last


def _matching_names(webhook: Webhook, listed_namespaces: Namespaces) -> list[str]:
    """Returns the names of the namespaces that the webhook's namespaceSelector matches."""
    selector = webhook.namespace_selector
    return sorted(name for name, labels in listed_namespaces.items() if selector is None or selector.matches(labels))


def _matches_write(rule: RuleWithOperations, write: Write) -> bool:
    """Returns whether a rule names the resource of a write and one of its operations, whatever the version."""
    return (
        is_in_scope(rule.scope, namespaced=write.namespaced)
        and any(is_named(operation, rule.operations) for operation in write.operations)
        and is_named(write.group, rule.api_groups)
        and is_resource_named(write.resource, rule.resources)
    )
