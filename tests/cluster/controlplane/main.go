// Command controlplane is etcd, kube-apiserver and kube-controller-manager in one program, one sub-command each.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

const usage = "usage: controlplane etcd|apiserver|controllers [FLAGS of that program]"

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	name, args := os.Args[1], os.Args[2:]
	switch name {
	case "etcd":
		etcdmain.Main(append([]string{"etcd"}, args...))
	case "apiserver":
		run(apiserver.NewAPIServerCommand(), args)
	case "controllers":
		run(controllers.NewControllerManagerCommand(), args)
	default:
		fmt.Fprintf(os.Stderr, "controlplane: unknown sub-command %q\n%s\n", name, usage)
		os.Exit(2)
	}
}

func run(command *cobra.Command, args []string) {
	command.SetArgs(args)
	os.Exit(cli.Run(command))
}
