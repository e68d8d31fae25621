package main

import (
	"errors"

	"github.com/spf13/cobra"
	"k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	"k8s.io/component-base/version/verflag"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// quietServer is kube-apiserver but for one thing: it publishes no OpenAPI. Nobody reads that but helm and kubectl, and
// to write it takes a sixth of what a start computes, and again some for each definition of a kind. What it checks of
// objects, it checks as always.
func quietServer() *cobra.Command {
	ctx := server.SetupSignalContext()
	wanted := options.NewServerRunOptions()
	command := &cobra.Command{
		Use:          "kube-apiserver",
		SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			if err := wanted.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
				return err
			}
			rest.SetDefaultWarningHandler(rest.NoWarnings{})
			completed, err := wanted.Complete(ctx)
			if err != nil {
				return err
			}
			if all := completed.Validate(); len(all) > 0 {
				return errors.Join(all...)
			}
			config, err := apiserver.NewConfig(completed)
			if err != nil {
				return err
			}
			config.KubeAPIs.ControlPlane.Generic.SkipOpenAPIInstallation = true
			config.ApiExtensions.GenericConfig.SkipOpenAPIInstallation = true
			// What gathers the documents of all servers; those of version 3 are none then.
			config.Aggregator.GenericConfig.OpenAPIConfig = nil
			whole, err := config.Complete()
			if err != nil {
				return err
			}
			chain, err := apiserver.CreateServerChain(whole)
			if err != nil {
				return err
			}
			prepared, err := chain.PrepareRun()
			if err != nil {
				return err
			}
			return prepared.Run(ctx)
		},
	}
	sets := wanted.Flags()
	verflag.AddFlags(sets.FlagSet("global"))
	globalflag.AddGlobalFlags(sets.FlagSet("global"), command.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range sets.FlagSets {
		command.Flags().AddFlagSet(set)
	}
	return command
}
