// Command controlplane is etcd, kube-apiserver and kube-controller-manager in one program, one sub-command each.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	_ "unsafe" // go:linkname

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/component-base/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

// The version that the API server says it has. A release sets it while linking; without that it is none that clients
// such as Flagger could read.
//
//go:linkname gitVersion k8s.io/component-base/version.gitVersion
var gitVersion string

const usage = "usage: controlplane etcd|apiserver|quiet-apiserver|controllers [FLAGS of that program]"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	name, args := os.Args[1], os.Args[2:]
	if err := sayVersion(); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
	switch name {
	case "etcd":
		etcdmain.Main(append([]string{"etcd"}, args...))
	case "apiserver":
		run(apiserver.NewAPIServerCommand(), args)
	case "quiet-apiserver":
		run(quietServer(), args)
	case "controllers":
		run(controllers.NewControllerManagerCommand(), args)
	default:
		fmt.Fprintf(os.Stderr, "controlplane: unknown sub-command %q\n%s\n", name, usage)
		os.Exit(2)
	}
}

// sayVersion makes the version that of the module that was built.
func sayVersion() error {
	built, ok := debug.ReadBuildInfo()
	if !ok {
		return errors.New("built without modules")
	}
	for _, module := range built.Deps {
		if module.Path == "k8s.io/kubernetes" {
			gitVersion = module.Version
			return version.SetDynamicVersion(module.Version)
		}
	}
	return errors.New("built without Kubernetes")
}

func run(command *cobra.Command, args []string) {
	command.SetArgs(args)
	os.Exit(cli.Run(command))
}
