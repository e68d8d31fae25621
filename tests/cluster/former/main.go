// Command former is the ingress controller that Fairway takes over from: nginx with the identity and the manners of
// ingress-nginx v1.15.1.
//
// It takes the Lease, the labels and the flags of that controller, writes the status of Ingresses as it does, and ends as it
// does: status first, then nginx quits. What nginx does is real; its configuration covers what the tests ask for.
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// settings are the flags that matter here; the others are taken and forgotten.
type settings struct {
	publish, election      string
	clearAtEnd             bool
	grace                  int
	namespace, pod         string
	class, configMap, role string
}

func read() settings {
	s := settings{namespace: os.Getenv("POD_NAMESPACE"), pod: os.Getenv("POD_NAME")}
	flag.StringVar(&s.publish, "publish-service", "", "namespace/name of the Service whose address is told")
	flag.StringVar(&s.election, "election-id", "ingress-controller-leader", "name of the Lease")
	flag.BoolVar(&s.clearAtEnd, "update-status-on-shutdown", true, "empty the status at the end")
	flag.IntVar(&s.grace, "shutdown-grace-period", 0, "seconds between SIGTERM and the end of nginx")
	flag.StringVar(&s.class, "ingress-class", "nginx", "")
	flag.StringVar(&s.role, "controller-class", "k8s.io/ingress-nginx", "")
	flag.StringVar(&s.configMap, "configmap", "", "")
	flag.Parse()
	return s
}

func main() {
	s := read()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	ctx, stop := context.WithCancel(context.Background())
	status := newStatus(client, s)
	go status.lead(ctx)
	server, err := newServer(client)
	if err != nil {
		log.Fatal(err)
	}
	var leaving atomic.Bool
	go health(func() bool { return server.serves() && !leaving.Load() })
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() { ended <- server.run(ctx) }()
	select {
	case err := <-ended:
		log.Fatalf("nginx: %v", err)
	case <-terminate:
	}
	leaving.Store(true)
	log.Print("SIGTERM")
	time.Sleep(time.Duration(s.grace) * time.Second)
	stop()
	if s.clearAtEnd {
		status.farewell()
	}
	server.quit()
	log.Printf("nginx has ended: %v", <-ended)
}

func health(good func() bool) {
	answer := func(w http.ResponseWriter, r *http.Request) {
		if !good() {
			http.Error(w, "not serving", http.StatusInternalServerError)
		}
	}
	log.Fatal(http.ListenAndServe(":10254", http.HandlerFunc(answer)))
}

// pair cuts namespace/name.
func pair(text string) (string, string) {
	namespace, name, _ := strings.Cut(text, "/")
	return namespace, name
}
