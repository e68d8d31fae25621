// Command acme is cert-manager with what it needs around it. Its first argument says which part:
//
//   - `controllers`: cert-manager's controllers for namespace `demo`; KUBECONFIG says where, DNS whom self-checks ask for names.
//   - `authority`: pebble, an authority for tests, and a DNS server at DNS that gives every name the address ADDRESS. It prints
//     the URL of its directory on the first line, and then the certificate of its root.
//   - `solver`: what cert-manager starts in a Pod for each challenge, with the arguments that it gives.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"
	_ "github.com/cert-manager/cert-manager/pkg/controller/acmechallenges"
	_ "github.com/cert-manager/cert-manager/pkg/controller/acmeorders"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificate-shim/ingresses"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/acme"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/acme"
	"github.com/cert-manager/cert-manager/pkg/issuer/acme/http/solver"
	"github.com/go-logr/stdr"
	"github.com/letsencrypt/challtestsrv"
	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	switch part := os.Args[1]; part {
	case "controllers":
		controllers(context.Background())
	case "authority":
		authority()
	case "solver":
		solve(os.Args[2:])
	default:
		log.Fatalf("there is no part %q", part)
	}
}

func controllers(ctx context.Context) {
	factory := must(controller.NewContextFactory(ctx, options()))
	for _, build := range controller.Known() {
		one := must(build(factory))
		go func() { check(one.Run(5, ctx)) }()
	}
	root := must(factory.Build())
	root.SharedInformerFactory.Start(ctx.Done())
	root.KubeSharedInformerFactory.Start(ctx.Done())
	root.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	select {}
}

// options are what cert-manager's own command has when it is told nothing, but for the namespace, the image and the DNS.
func options() controller.ContextOptions {
	return controller.ContextOptions{
		Kubeconfig: os.Getenv("KUBECONFIG"), Namespace: "demo", KubernetesAPIQPS: 100, KubernetesAPIBurst: 200,
		IssuerOptions: controller.IssuerOptions{ClusterResourceNamespace: "demo"},
		ACMEOptions: controller.ACMEOptions{
			HTTP01SolverImage:                 "fairway.test/solver",
			HTTP01SolverResourceRequestCPU:    resource.MustParse("10m"),
			HTTP01SolverResourceRequestMemory: resource.MustParse("64Mi"),
			HTTP01SolverResourceLimitsCPU:     resource.MustParse("100m"),
			HTTP01SolverResourceLimitsMemory:  resource.MustParse("64Mi"),
			ACMEHTTP01SolverRunAsNonRoot:      true,
			HTTP01SolverNameservers:           []string{os.Getenv("DNS")},
			DNS01CheckRetryPeriod:             10 * time.Second,
		},
		IngressShimOptions: controller.IngressShimOptions{DefaultIssuerKind: "Issuer", DefaultIssuerGroup: "cert-manager.io"},
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
		SchedulerOptions: controller.SchedulerOptions{MaxConcurrentChallenges: 60},
	}
}

func authority() {
	logger := log.New(os.Stderr, "", log.LstdFlags)
	names := must(challtestsrv.New(challtestsrv.Config{Log: logger, DNSAddrs: []string{os.Getenv("DNS")}}))
	names.SetDefaultDNSIPv4(os.Getenv("ADDRESS"))
	names.SetDefaultDNSIPv6("")
	go names.Run()
	store := db.NewMemoryStore()
	profiles := map[string]ca.Profile{"default": {Description: "the only one"}}
	signs := ca.New(logger, store, "", "ecdsa", 0, 1, profiles)
	asks := va.New(logger, 80, 443, true, os.Getenv("DNS"), store)
	front := wfe.New(logger, store, asks, signs, []string{"authority.test"}, true, false, 1, 1)
	server := httptest.NewTLSServer(front.Handler())
	fmt.Println(server.URL + wfe.DirectoryPath)
	fmt.Print(string(signs.GetRootCert(0).PEM()))
	select {}
}

func solve(arguments []string) {
	flags := flag.NewFlagSet("solver", flag.ExitOnError)
	one := solver.HTTP01Solver{}
	flags.IntVar(&one.ListenPort, "listen-port", 0, "where it listens")
	flags.StringVar(&one.Domain, "domain", "", "whose challenge it answers")
	flags.StringVar(&one.Token, "token", "", "the last part of the path")
	flags.StringVar(&one.Key, "key", "", "the answer")
	check(flags.Parse(arguments))
	check(one.Listen(stdr.New(log.Default())))
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
