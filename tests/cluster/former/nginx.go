package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const prefix = "nginx.ingress.kubernetes.io/"

// server is nginx with the Ingresses of the cluster.
type server struct {
	client   kubernetes.Interface
	folder   string
	nginx    *exec.Cmd
	sessions sessions
	ready    atomic.Bool
}

func newServer(client kubernetes.Interface) (*server, error) {
	folder, err := os.MkdirTemp("", "former")
	if err != nil {
		return nil, err
	}
	s := &server{client: client, folder: folder}
	listener, err := net.Listen("unix", s.path("sessions"))
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(s.path("sessions"), 0o777); err != nil {
		return nil, err
	}
	go func() { log.Print(http.Serve(listener, &s.sessions)) }()
	return s, os.Chmod(folder, 0o755)
}

func (s *server) path(name string) string { return filepath.Join(s.folder, name) }

func (s *server) serves() bool { return s.ready.Load() }

// run starts nginx and has it follow the cluster until it ends.
func (s *server) run(ctx context.Context) error {
	latest, err := s.config(ctx)
	for err != nil {
		log.Print(err)
		time.Sleep(200 * time.Millisecond)
		latest, err = s.config(ctx)
	}
	if err := os.WriteFile(s.path("nginx.conf"), []byte(latest), 0o600); err != nil {
		return err
	}
	s.nginx = exec.Command("nginx", "-p", s.folder, "-c", "nginx.conf", "-e", "stderr", "-g", "daemon off;")
	s.nginx.Stderr = os.Stderr
	if err := s.nginx.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- s.nginx.Wait() }()
	ticks := time.NewTicker(500 * time.Millisecond)
	defer ticks.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-ticks.C:
		}
		if connection, err := net.Dial("tcp", "127.0.0.1:80"); err == nil {
			s.ready.Store(true)
			connection.Close()
		}
		fresh, err := s.config(ctx)
		if err != nil || fresh == latest {
			continue
		}
		latest = fresh
		if err := os.WriteFile(s.path("nginx.conf"), []byte(latest), 0o600); err != nil {
			return err
		}
		log.Print("reload")
		_ = s.nginx.Process.Signal(syscall.SIGHUP)
	}
}

// quit lets nginx finish what it has begun.
func (s *server) quit() { _ = s.nginx.Process.Signal(syscall.SIGQUIT) }

func (s *server) config(ctx context.Context) (string, error) {
	all, err := s.client.NetworkingV1().Ingresses("").List(ctx, meta.ListOptions{})
	if err != nil {
		return "", err
	}
	var text strings.Builder
	fmt.Fprintf(&text, head, s.folder)
	for _, ingress := range all.Items {
		if !ours(&ingress) {
			continue
		}
		if err := s.server(ctx, &text, &ingress); err != nil {
			return "", fmt.Errorf("%s: %w", ingress.Name, err)
		}
	}
	text.WriteString("}\n")
	return text.String(), nil
}

const head = `
worker_processes 2;
worker_shutdown_timeout 240s;
pid %[1]s/nginx.pid;
events { worker_connections 4096; }
http {
  access_log off;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
  http2_max_field_size 32k;
  map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
`

// server writes a server and an upstream for an Ingress of one host and one path.
func (s *server) server(ctx context.Context, text *strings.Builder, ingress *networking.Ingress) error {
	rule := ingress.Spec.Rules[0]
	service := rule.HTTP.Paths[0].Backend.Service.Name
	endpoints, err := s.endpoints(ctx, ingress.Namespace, service)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%s-80", ingress.Namespace, service)
	if ingress.Annotations[prefix+"affinity"] == "cookie" {
		s.sessions.ring.Store(newRing(name, endpoints))
	}
	fmt.Fprintf(text, "  upstream %s {\n", ingress.Name)
	for _, endpoint := range endpoints {
		fmt.Fprintf(text, "    server %s max_fails=0;\n", endpoint)
	}
	fmt.Fprint(text, "    keepalive 320;\n  }\n")
	fmt.Fprintf(text, "  server {\n    listen 80;\n    server_name %s;\n", rule.Host)
	if len(ingress.Spec.TLS) > 0 {
		if err := s.certificate(ctx, ingress); err != nil {
			return err
		}
		fmt.Fprintf(text, "    listen 443 ssl http2;\n    ssl_certificate %s;\n    ssl_certificate_key %s;\n",
			s.path(ingress.Name+".crt"), s.path(ingress.Name+".key"))
	}
	fmt.Fprintf(text, "    location / {\n%s    }\n  }\n", s.location(ingress))
	return nil
}

func (s *server) location(ingress *networking.Ingress) string {
	if ingress.Annotations[prefix+"backend-protocol"] == "GRPC" {
		return "      grpc_pass grpc://" + ingress.Name + ";\n"
	}
	target := ingress.Name
	if ingress.Annotations[prefix+"affinity"] == "cookie" {
		target = "unix:" + s.path("sessions")
	}
	return "      proxy_pass http://" + target + `;
      proxy_http_version 1.1;
      proxy_set_header Host $host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
`
}

func (s *server) certificate(ctx context.Context, ingress *networking.Ingress) error {
	name := ingress.Spec.TLS[0].SecretName
	secret, err := s.client.CoreV1().Secrets(ingress.Namespace).Get(ctx, name, meta.GetOptions{})
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.path(ingress.Name+".crt"), secret.Data["tls.crt"], 0o600); err != nil {
		return err
	}
	return os.WriteFile(s.path(ingress.Name+".key"), secret.Data["tls.key"], 0o600)
}

func (s *server) endpoints(ctx context.Context, namespace, service string) ([]string, error) {
	selector := meta.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service}
	slices, err := s.client.DiscoveryV1().EndpointSlices(namespace).List(ctx, selector)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.Conditions.Ready == nil || !*endpoint.Conditions.Ready || len(slice.Ports) == 0 {
				continue
			}
			all = append(all, fmt.Sprintf("%s:%d", endpoint.Addresses[0], *slice.Ports[0].Port))
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("Service %s has no endpoints", service)
	}
	sort.Strings(all)
	return all, nil
}
