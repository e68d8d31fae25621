// Command dns is ExternalDNS with its source for Ingresses, its plan and its in-memory provider, and no cloud's client.
//
// It syncs as `--source=ingress --policy=sync --events` does, deletions included, and prints a line for each record that it
// makes, changes or deletes: `create web.test A 203.0.113.1`. KUBECONFIG says where; ZONE (test) is the zone, CLASS, if it is
// set, the only class of Ingresses.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/external-dns/endpoint"
	"sigs.k8s.io/external-dns/plan"
	"sigs.k8s.io/external-dns/provider/inmemory"
	"sigs.k8s.io/external-dns/source"
	"sigs.k8s.io/external-dns/source/wrappers"
)

func main() {
	ctx := context.Background()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	wanted := &source.Config{AnnotationFilter: labels.Everything(), LabelFilter: labels.Everything()}
	if class := os.Getenv("CLASS"); class != "" {
		wanted.IngressClassNames = []string{class}
	}
	ingresses, err := source.NewIngressSource(ctx, kubernetes.NewForConfigOrDie(config), wanted)
	if err != nil {
		log.Fatal(err)
	}
	all := wrappers.NewDedupSource(ingresses)
	zone := os.Getenv("ZONE")
	if zone == "" {
		zone = "test"
	}
	records := inmemory.NewInMemoryProvider(inmemory.InMemoryInitZones([]string{zone}))
	records.OnApplyChanges = func(_ context.Context, changes *plan.Changes) {
		tell("create", changes.Create)
		tell("update", changes.UpdateNew)
		tell("delete", changes.Delete)
	}
	news := make(chan struct{}, 1)
	all.AddEventHandler(ctx, func() {
		select {
		case news <- struct{}{}:
		default:
		}
	})
	for {
		if err := sync(ctx, all, records); err != nil {
			log.Print(err)
		}
		select {
		case <-news:
		case <-time.After(time.Second):
		}
	}
}

// sync is a round of the controller's loop.
func sync(ctx context.Context, all source.Source, records *inmemory.InMemoryProvider) error {
	current, err := records.Records(ctx)
	if err != nil {
		return err
	}
	desired, err := all.Endpoints(ctx)
	if err != nil {
		return err
	}
	desired, err = records.AdjustEndpoints(desired)
	if err != nil {
		return err
	}
	todo := &plan.Plan{
		Policies:       []plan.Policy{&plan.SyncPolicy{}},
		Current:        current,
		Desired:        desired,
		DomainFilter:   endpoint.MatchAllDomainFilters{},
		ManagedRecords: []string{endpoint.RecordTypeA, endpoint.RecordTypeAAAA, endpoint.RecordTypeCNAME},
	}
	todo = todo.Calculate()
	if !todo.Changes.HasChanges() {
		return nil
	}
	return records.ApplyChanges(ctx, todo.Changes)
}

func tell(what string, records []*endpoint.Endpoint) {
	for _, record := range records {
		fmt.Println(what, record.DNSName, record.RecordType, strings.Join(record.Targets, ","))
	}
}
