package main

import (
	"context"
	"log"
	"time"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// status writes the addresses of the published Service into all Ingresses of class nginx while it leads.
type status struct {
	client kubernetes.Interface
	settings
}

func newStatus(client kubernetes.Interface, s settings) *status { return &status{client, s} }

// lead takes part in the election as ingress-nginx does: the Lease is never given back.
func (s *status) lead(ctx context.Context) {
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  meta.ObjectMeta{Namespace: s.namespace, Name: s.election},
			Client:     s.client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: s.pod},
		},
		LeaseDuration: 30 * time.Second,
		RenewDeadline: 15 * time.Second,
		RetryPeriod:   7500 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: s.keep,
			OnStoppedLeading: func() { log.Print("no longer the leader") },
		},
	})
}

func (s *status) keep(ctx context.Context) {
	log.Print("the leader")
	for ctx.Err() == nil {
		s.write(ctx, s.addresses(ctx))
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func (s *status) addresses(ctx context.Context) []networking.IngressLoadBalancerIngress {
	namespace, name := pair(s.publish)
	service, err := s.client.CoreV1().Services(namespace).Get(ctx, name, meta.GetOptions{})
	if err != nil {
		log.Print(err)
		return nil
	}
	var all []networking.IngressLoadBalancerIngress
	for _, one := range service.Status.LoadBalancer.Ingress {
		all = append(all, networking.IngressLoadBalancerIngress{IP: one.IP, Hostname: one.Hostname})
	}
	return all
}

func (s *status) write(ctx context.Context, wanted []networking.IngressLoadBalancerIngress) {
	all, err := s.client.NetworkingV1().Ingresses("").List(ctx, meta.ListOptions{})
	if err != nil {
		log.Print(err)
		return
	}
	for _, ingress := range all.Items {
		if !ours(&ingress) || equality.Semantic.DeepEqual(ingress.Status.LoadBalancer.Ingress, wanted) {
			continue
		}
		ingress.Status.LoadBalancer.Ingress = wanted
		client := s.client.NetworkingV1().Ingresses(ingress.Namespace)
		if _, err := client.UpdateStatus(ctx, &ingress, meta.UpdateOptions{}); err != nil {
			log.Print(err)
		}
	}
}

func ours(ingress *networking.Ingress) bool {
	return ingress.Spec.IngressClassName != nil && *ingress.Spec.IngressClassName == "nginx"
}

// farewell empties the status, unless there are several addresses or other Pods with the very labels of this one.
func (s *status) farewell() {
	ctx := context.Background()
	if len(s.addresses(ctx)) > 1 {
		return
	}
	pods := s.client.CoreV1().Pods(s.namespace)
	own, err := pods.Get(ctx, s.pod, meta.GetOptions{})
	if err != nil {
		log.Print(err)
		return
	}
	all, err := pods.List(ctx, meta.ListOptions{LabelSelector: labels.SelectorFromSet(shared(own)).String()})
	if err != nil || len(all.Items) > 1 {
		log.Printf("the status stays: %v", err)
		return
	}
	log.Print("no Pod has these labels but this one: the status is emptied")
	s.write(ctx, nil)
}

// shared are all labels of a Pod but those that differ between Pods of one chart.
func shared(pod *core.Pod) labels.Set {
	set := labels.Set{}
	for key, value := range pod.Labels {
		switch key {
		case "pod-template-hash", "controller-revision-hash", "pod-template-generation":
		default:
			set[key] = value
		}
	}
	return set
}
