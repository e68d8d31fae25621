// Command monitoring is Prometheus, configured by its operator: discovery in Kubernetes, scraping, storage, rules, queries.
//
// The operator's generator makes the configuration of the ServiceMonitor in the file MONITOR; the rules are in the file
// RULES; KUBECONFIG says where the cluster is, FOLDER where samples go. It prints the address of its HTTP server, which
// answers /query?query=, /alerts and /configuration.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus-operator/prometheus-operator/pkg/assets"
	operator "github.com/prometheus-operator/prometheus-operator/pkg/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/discovery"
	"github.com/prometheus/prometheus/discovery/kubernetes"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/scrape"
	"github.com/prometheus/prometheus/tsdb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// What the operator's defaults are made for.
const version = "v3.5.0"

func main() {
	ctx := context.Background()
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	text := must(configuration())
	loaded := must(config.Load(string(text), logger))
	store := must(tsdb.Open(os.Getenv("FOLDER"), logger, nil, tsdb.DefaultOptions(), nil))
	registry := prometheus.NewRegistry()
	targets := discovery.NewManager(ctx, logger, registry, must(discovery.CreateAndRegisterSDMetrics(registry)))
	scraper := must(scrape.NewManager(&scrape.Options{}, logger, nil, store, registry))
	scrapes := must(loaded.GetScrapeConfigs())
	found := map[string]discovery.Configs{}
	for _, one := range scrapes {
		for _, where := range one.ServiceDiscoveryConfigs {
			if where, ok := where.(*kubernetes.SDConfig); ok {
				where.KubeConfig = os.Getenv("KUBECONFIG")
			}
		}
		found[one.JobName] = one.ServiceDiscoveryConfigs
	}
	check(scraper.ApplyConfig(loaded))
	check(targets.ApplyConfig(found))
	engine := promql.NewEngine(promql.EngineOpts{Logger: logger, MaxSamples: 1e7, Timeout: time.Minute})
	alerts := rules.NewManager(&rules.ManagerOptions{
		Context: ctx, Logger: logger, Appendable: store, Queryable: store, Registerer: registry,
		ExternalURL: &url.URL{}, QueryFunc: rules.EngineQueryFunc(engine, store),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
	})
	check(alerts.Update(time.Second, []string{os.Getenv("RULES")}, labels.EmptyLabels(), "", nil))
	go func() { check(targets.Run()) }()
	go func() { check(scraper.Run(targets.SyncCh())) }()
	go alerts.Run()
	http.HandleFunc("/configuration", func(w http.ResponseWriter, _ *http.Request) { w.Write(text) })
	http.HandleFunc("/alerts", func(w http.ResponseWriter, _ *http.Request) { tell(w, active(alerts)) })
	http.HandleFunc("/query", func(w http.ResponseWriter, r *http.Request) {
		query, err := engine.NewInstantQuery(ctx, store, nil, r.URL.Query().Get("query"), time.Now())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		defer query.Close()
		result := query.Exec(ctx)
		if result.Err != nil {
			http.Error(w, result.Err.Error(), http.StatusInternalServerError)
			return
		}
		tell(w, result.Value)
	})
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	fmt.Println(listener.Addr())
	check(http.Serve(listener, nil))
}

// configuration is what the operator makes of the ServiceMonitor.
func configuration() ([]byte, error) {
	monitor := &v1.ServiceMonitor{}
	if err := yaml.UnmarshalStrict(must(os.ReadFile(os.Getenv("MONITOR"))), monitor); err != nil {
		return nil, err
	}
	wanted := &v1.Prometheus{ObjectMeta: metav1.ObjectMeta{Name: "k8s", Namespace: "monitoring"}}
	wanted.Spec.Version = version
	slices := v1.EndpointSliceRole
	wanted.Spec.ServiceDiscoveryRole = &slices
	wanted.Spec.ScrapeInterval = "1s"
	wanted.Spec.EvaluationInterval = "1s"
	generator, err := operator.NewConfigGenerator(nil, wanted, operator.WithEndpointSliceSupport())
	if err != nil {
		return nil, err
	}
	monitors := map[string]*v1.ServiceMonitor{monitor.Namespace + "/" + monitor.Name: monitor}
	text, err := generator.GenerateServerConfiguration(
		wanted, monitors, nil, nil, nil, assets.NewTestStoreBuilder(), nil, nil, nil, nil)
	// The operator leaves the number of the replica open; its reloader fills it in for each of them.
	return bytes.ReplaceAll(text, []byte("$(SHARD)"), []byte("0")), err
}

// active has the labels of every alert that is pending or firing, by the name of its rule; rules without are there, too.
func active(manager *rules.Manager) map[string][]labels.Labels {
	all := map[string][]labels.Labels{}
	for _, rule := range manager.AlertingRules() {
		all[rule.Name()] = []labels.Labels{}
		for _, alert := range rule.ActiveAlerts() {
			all[rule.Name()] = append(all[rule.Name()], alert.Labels)
		}
	}
	return all
}

func tell(w http.ResponseWriter, what any) {
	if err := json.NewEncoder(w).Encode(what); err != nil {
		log.Print(err)
	}
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
