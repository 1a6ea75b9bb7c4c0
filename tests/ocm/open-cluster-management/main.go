// Open Cluster Management in one program: what a hub runs, and what runs in each cluster of its.
package main

import (
	"embed"
	goflag "flag"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"

	ocmfeature "open-cluster-management.io/api/feature"

	"open-cluster-management.io/ocm/manifests"
	"open-cluster-management.io/ocm/pkg/cmd/hub"
	"open-cluster-management.io/ocm/pkg/cmd/spoke"
	"open-cluster-management.io/ocm/pkg/features"
)

func main() {
	pflag.CommandLine.SetNormalizeFunc(utilflag.WordSepNormalizeFunc)
	pflag.CommandLine.AddGoFlagSet(goflag.CommandLine)
	logs.AddFlags(pflag.CommandLine)
	logs.InitLogs()
	defer logs.FlushLogs()
	utilruntime.Must(features.HubMutableFeatureGate.Add(ocmfeature.DefaultHubRegistrationFeatureGates))
	utilruntime.Must(features.HubMutableFeatureGate.Add(ocmfeature.DefaultHubWorkFeatureGates))
	// An operator sets it by ClusterManager's spec.workConfiguration.featureGates.
	utilruntime.Must(features.HubMutableFeatureGate.Set(string(ocmfeature.ManifestWorkReplicaSet) + "=true"))

	command := &cobra.Command{Use: "open-cluster-management", SilenceUsage: true}
	command.AddCommand(
		named("registration", hub.NewRegistrationController()),
		named("placement", hub.NewPlacementController()),
		named("addons", hub.NewAddonManager()),
		named("work", hub.NewWorkController()),
		// The registration agent and the work agent in one process, as the Klusterlet's mode Singleton has them.
		named("agent", spoke.NewKlusterletAgentCmd()),
		definitions("hub-definitions", manifests.ClusterManagerManifestFiles, "cluster-manager/hub"),
		definitions("cluster-definitions", manifests.KlusterletManifestFiles, "klusterlet/managed"),
	)
	if err := command.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func named(name string, command *cobra.Command) *cobra.Command {
	command.Use = name
	return command
}

// definitions prints the CustomResourceDefinitions of a folder.
func definitions(name string, files embed.FS, folder string) *cobra.Command {
	return &cobra.Command{Use: name, RunE: func(*cobra.Command, []string) error {
		return fs.WalkDir(files, folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "crd.yaml") {
				return err
			}
			text, err := files.ReadFile(path)
			fmt.Printf("---\n%s\n", text)
			return err
		})
	}}
}
