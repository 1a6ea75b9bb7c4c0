"""The frozen input of one decision about a validation. `control` fills it from caches and answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubekit.api.codec import Undecodable
from kubekit.api.core_v1 import Node
from kubekit.api.meta_v1 import NamespacedName
from runup.api.kmm_v1beta1 import Module
from runup.api.kmm_v1beta2 import PreflightValidation, PreflightValidationOCP
from runup.kernelmodules.decide.build_jobs import Builder
from runup.kernelmodules.decide.external_queries import Answers
from runup.kernelmodules.decide.runs import Run, Runner


@dataclass(frozen=True, slots=True)
class Observed:
    """The objects of one name: a PreflightValidationOCP and the PreflightValidation it created, or either alone.

    `modules` is None while they are not listed, and `modules_problem` says why. `runner` is None until it is known
    whether the cluster has OpenShift Builds. `refused` holds the API server's messages about runs that it rejected.
    """

    name: str
    ocp: PreflightValidationOCP | None = None
    validation: PreflightValidation | None = None
    # Every PreflightValidation and PreflightValidationOCP by name: a release for several architectures has several.
    validations: Mapping[str, PreflightValidation] = field(default_factory=dict)
    parents: Mapping[str, PreflightValidationOCP] = field(default_factory=dict)
    modules: tuple[Module, ...] | None = ()
    unreadable: tuple[Undecodable, ...] = ()
    modules_problem: str = ""
    # Why there may be more Modules than are listed: a Module that is absent need not be deleted then.
    incomplete: str = ""
    # None if they could not be listed.
    nodes: tuple[Node, ...] | None = ()
    runs: tuple[Run, ...] = ()
    runner: Runner | None = Runner.JOBS
    refused: Mapping[NamespacedName, str] = field(default_factory=dict)
    answers: Answers = field(default_factory=Answers)
    builder: Builder = field(default_factory=Builder)
