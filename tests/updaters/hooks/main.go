// Command hooks speaks with a runtime extension in the types of Cluster API. Without arguments it prints a request of each
// hook; with -answers it reads the answers from standard input, one a line, and fails for a field that the types lack.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooks "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

func main() {
	if len(os.Args) > 1 {
		lines := bufio.NewScanner(os.Stdin)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var head metav1.TypeMeta
			check(json.Unmarshal(lines.Bytes(), &head))
			answer := map[string]any{
				"DiscoveryResponse":                 &hooks.DiscoveryResponse{},
				"BeforeClusterUpgradeResponse":      &hooks.BeforeClusterUpgradeResponse{},
				"BeforeControlPlaneUpgradeResponse": &hooks.BeforeControlPlaneUpgradeResponse{},
				"BeforeWorkersUpgradeResponse":      &hooks.BeforeWorkersUpgradeResponse{},
			}[head.Kind]
			strict := json.NewDecoder(bytes.NewReader(lines.Bytes()))
			strict.DisallowUnknownFields()
			check(strict.Decode(answer))
			fmt.Println(head.Kind)
		}
		return
	}
	cluster := clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "harbour"}}
	steps := []hooks.UpgradeStepInfo{{Version: "v1.35.1"}, {Version: "v1.36.0"}}
	meta := func(hook string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: hooks.GroupVersion.String(), Kind: hook + "Request"}
	}
	for _, request := range []any{
		hooks.BeforeClusterUpgradeRequest{TypeMeta: meta("BeforeClusterUpgrade"), Cluster: cluster, FromKubernetesVersion: "v1.34.2", ToKubernetesVersion: "v1.36.0", ControlPlaneUpgrades: steps},
		hooks.BeforeControlPlaneUpgradeRequest{TypeMeta: meta("BeforeControlPlaneUpgrade"), Cluster: cluster, FromKubernetesVersion: "v1.34.2", ToKubernetesVersion: "v1.35.1", ControlPlaneUpgrades: steps},
		hooks.BeforeWorkersUpgradeRequest{TypeMeta: meta("BeforeWorkersUpgrade"), Cluster: cluster, FromKubernetesVersion: "v1.34.2", ToKubernetesVersion: "v1.35.1"},
	} {
		line, err := json.Marshal(request)
		check(err)
		fmt.Println(string(line))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
