// Open Cluster Management in one program: what a hub runs, and what runs in each cluster of its.
package main

import (
	goflag "flag"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"

	ocmfeature "open-cluster-management.io/api/feature"

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

	command := &cobra.Command{Use: "open-cluster-management", SilenceUsage: true}
	command.AddCommand(
		named("registration", hub.NewRegistrationController()),
		named("placement", hub.NewPlacementController()),
		named("addons", hub.NewAddonManager()),
		// The registration agent and the work agent in one process, as the Klusterlet's mode Singleton has them.
		named("agent", spoke.NewKlusterletAgentCmd()),
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
