"""The tables of gates, flags and plug-ins are what the sources of Kubernetes say."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tools.kubernetes_tables import (
    COMPONENTS,
    KLOG,
    READER,
    Locked,
    Unavailable,
    all_facts,
    config_differences,
    differences,
    locked,
    made,
    tables,
)

OPTIONS = """package app

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/options"
)

const name = "of-a-constant"

type Options struct{ Other *options.Other }

func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Name, name, "", "")
	fs.Var(options.NewMap(&o.Gates), "of-a-map", "")
	register(fs, "log_cadvisor_usage")
	fs.MarkDeprecated("of-a-map", "It goes.")
	o.Other.AddFlags("webhook", fs)
	o.Run()
}

func (o *Options) Run() { lg.String("no-flag", "") }

func register(fs *pflag.FlagSet, name string) {}

func NewKubeletCommand() *cobra.Command {
	o := &Options{}
	o.AddFlags(pflag.NewFlagSet("kubelet"))
	return nil
}
"""
OTHER = """package options

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/component-base/featuregate"
)

type Other struct{}

func (o *Other) AddFlags(prefix string, fs *pflag.FlagSet) {
	fs.Bool(fmt.Sprintf("audit-%s-mode", prefix), false, "")
}

func (o *Other) Unused(fs *pflag.FlagSet) { fs.Bool("of-an-unused-function", false, "") }

var gates = map[featuregate.Feature]featuregate.VersionedSpecs{
	"Swap": {
		{Version: version.MustParse("1.30"), Default: false, PreRelease: featuregate.Alpha},
		{Version: version.MustParse("1.34"), Default: true, PreRelease: featuregate.GA, LockToDefault: true},
	},
}
var subsystem = "apiserver"
var total = metrics.NewCounter(&metrics.CounterOpts{
	Subsystem: subsystem, Name: "it_total", DeprecatedVersion: "1.35.0", StabilityLevel: metrics.ALPHA,
})
var size = metrics.NewDesc(metrics.BuildFQName("", "kubelet", "size"), "", nil, nil, metrics.ALPHA, "")

func NewMetric(name string) { metrics.NewGauge(&metrics.GaugeOpts{Subsystem: subsystem, Name: name}) }

var old = map[featuregate.Feature]featuregate.FeatureSpec{"Old": {Default: true, PreRelease: featuregate.GA}}
"""


@pytest.mark.slow
def test_facts_of_sources(tmp_path: Path) -> None:
    """The flags are those that the function of the command reaches, with their names worked out."""
    if shutil.which("go") is None:
        pytest.skip("needs the go command")
    files = {"kubernetes/cmd/kubelet/app/server.go": OPTIONS, "apiserver/pkg/options/options.go": OTHER}
    for file, text in files.items():
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(text)
    arguments = [f"k8s.io/{module}={tmp_path / module}" for module in ("kubernetes", "apiserver")]
    ran = subprocess.run(
        ["go", "run", str(READER), *arguments], capture_output=True, text=True, check=True, timeout=300
    )
    facts = json.loads(ran.stdout)
    assert facts["flags"]["kubelet"] == {
        "of-a-constant": "",
        "of-a-map": "It goes.",
        "log-cadvisor-usage": "",
        "audit-webhook-mode": "",
    }
    assert [each["since"] for each in facts["gates"]["Swap"]] == [30, 34]
    assert facts["gates"]["Old"] == [{"since": 0, "stage": "GA", "default": True, "locked": False}]
    assert "kube-apiserver" in facts["unreadable"]
    assert facts["configurations"] == []
    assert facts["metrics"] == {"apiserver_it_total": "1.35.0", "kubelet_size": ""}


def gate(since: int = 0, *, default: bool = True, lock: bool = False) -> dict[str, Any]:
    return {"since": since, "stage": "GA", "default": default, "locked": lock}


def test_a_gate_is_locked_from_its_first_such_version_on() -> None:
    """A version that is still to come locks nothing; a later version that backdates a lock does not change the past."""
    before = {"Swap": [gate(30), gate(34, lock=True)], "Late": [gate(32)], "Open": [gate()]}
    after = {**before, "Late": [gate(32, default=False, lock=True)], "Next": [gate(36, lock=True)]}
    assert locked({33: before, 34: before, 35: after}) == {"Swap": Locked(34, True), "Late": Locked(35, False)}


def test_refuses_a_gate_that_is_unlocked_again() -> None:
    """The table cannot say it."""
    with pytest.raises(ValueError, match="Swap is unlocked"):
        locked({34: {"Swap": [gate(lock=True)]}, 35: {"Swap": [gate()]}})


def test_a_name_that_comes_back_is_not_lost() -> None:
    """It is missing in one version because that version declares it in another form."""
    added, lost = differences({33: {"a", "b", "c"}, 34: {"b", "d"}, 35: {"a", "b", "d"}})
    assert (added, lost) == ({34: {"d"}, 35: set()}, {34: {"c"}, 35: set()})


def facts_with(*flags: str, plugins: tuple[str, ...] = ()) -> dict[str, Any]:
    by_component = {component: dict.fromkeys(flags, "") for component in (*COMPONENTS, "etcd")}
    configurations = ["kubeadm.k8s.io/v1beta4"]
    return {
        "configurations": configurations,
        "flags": by_component,
        "gates": {},
        "admission": plugins,
        "controllers": [],
        "providers": [],
        "volumes": {"rbd": True},
        "metrics": {},
        "kubeadm": {"labels": ["old"], "taints": ["old"]},
    }


def test_tables_of_facts() -> None:
    """klog's flags count as one in the sources, and a prerelease says what is planned."""
    facts = {35: facts_with("(klog)", "a", plugins=("Old",)), 36: facts_with("a"), 37: facts_with("b")}
    found = tables(facts, planned=frozenset({37}))["removed-flags"]
    assert f"    kubelet: [{', '.join(KLOG[:4])}" in found
    assert "    admission: [Old]\n" in found
    assert "first: 36\nlast: 36\n" in found
    assert 'planned:\n  "1.37":\n    kube-apiserver: [a]\n' in found


def test_a_metric_is_hidden_after_the_version_that_deprecates_it() -> None:
    """component-base, metrics/registry.go, shouldHide; one that is lost later is removed then."""
    metrics = {"a": "1.35.0", "b": "", "version_info": ""}
    facts = {minor: facts_with() | {"metrics": metrics} for minor in (35, 36)}
    facts[37] = facts_with() | {"metrics": {"b": "", "c": ""}}
    found = tables(facts)["removed-metrics"]
    assert '  "1.36":\n    hides: [a]\n  "1.37":\n    removes: [a]\nbase: [b, c]\n' in found


def test_labels_and_taints_of_nodes() -> None:
    """Labels that a version stops to give, and labels and taints that it is the first to give."""
    facts = {35: facts_with(), 36: facts_with() | {"kubeadm": {"labels": ["new"], "taints": ["old", "new"]}}}
    found = tables(facts)["kubeadm-nodes"]
    assert 'removed:\n  "1.36":\n    labels: [old]\n' in found
    assert 'added:\n  "1.36":\n    labels: [new]\n    taints: [new]\n' in found


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_tables_are_what_the_modules_say() -> None:
    """`python tools/kubernetes_tables.py --check`, where the modules can be downloaded."""
    try:
        facts = all_facts()
    except Unavailable as error:
        if os.environ.get("RUNUP_E2E") == "required":
            raise
        pytest.skip(str(error))
    wanted = made(facts)
    assert [*config_differences(facts)] == []
    assert {file.name: text for file, text in wanted.items()} == {file.name: file.read_text() for file in wanted}
