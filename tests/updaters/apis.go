// Package updaters names the packages whose definitions controller-gen writes.
package updaters

import (
	_ "github.com/fluxcd/kustomize-controller/api/v1"
	_ "github.com/rancher/system-upgrade-controller/pkg/apis/upgrade.cattle.io/v1"
	_ "sigs.k8s.io/cluster-api/api/core/v1beta2"
	_ "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)
