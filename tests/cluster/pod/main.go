// Command pod is what runs in the Pods of tests: a server that says who it is and what it was asked.
//
// It reads its settings from the environment: PORT (8080), POD_NAME, VERSION, START_DELAY (a duration before it listens).
// It speaks HTTP/1.1 and, in clear, HTTP/2 (prior knowledge). GET /healthz answers 200; every other path answers 200 with
// the request as JSON. Two request headers steer an answer: Echo-Delay (a duration before the first byte) and Echo-Size
// (that many bytes of x instead of the JSON). A request to upgrade to WebSocket gets every message back, and so does a
// gRPC stream of whatever method. On SIGTERM it takes no new connections, finishes what it has begun, tells WebSockets
// that it is going away (code 1001) and ends with code 0.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type answer struct {
	Pod     string      `json:"pod"`
	Address string      `json:"address"` // at which it was asked
	Version string      `json:"version,omitempty"`
	Method  string      `json:"method"`
	Host    string      `json:"host"`
	URI     string      `json:"uri"`
	Headers http.Header `json:"headers"`
}

func main() {
	delay, err := duration(os.Getenv("START_DELAY"))
	if err != nil {
		log.Fatalf("START_DELAY: %v", err)
	}
	time.Sleep(delay)
	server := &http.Server{Addr: ":" + port(), Handler: http.HandlerFunc(serve), ReadHeaderTimeout: 10 * time.Second}
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		terminate := make(chan os.Signal, 1)
		signal.Notify(terminate, syscall.SIGTERM)
		<-terminate
		log.Print("SIGTERM: finishing what was begun")
		sockets.leave()
		if err := server.Shutdown(context.Background()); err != nil {
			log.Print(err)
		}
		sockets.open.Wait()
	}()
	log.Printf("listening on %s", server.Addr)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
	<-stopped
}

func serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/healthz" {
		fmt.Fprintln(w, "ok")
		return
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		grpc(w, r)
		return
	}
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		sockets.serve(w, r)
		return
	}
	delay, err := duration(r.Header.Get("Echo-Delay"))
	if err != nil {
		http.Error(w, "Echo-Delay: "+err.Error(), http.StatusBadRequest)
		return
	}
	time.Sleep(delay)
	if size := r.Header.Get("Echo-Size"); size != "" {
		count, err := strconv.Atoi(size)
		if err != nil || count < 0 {
			http.Error(w, "Echo-Size: not a number of bytes: "+size, http.StatusBadRequest)
			return
		}
		fmt.Fprint(w, strings.Repeat("x", count))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	err = json.NewEncoder(w).Encode(answer{
		Pod: os.Getenv("POD_NAME"), Address: address(r), Version: os.Getenv("VERSION"),
		Method: r.Method, Host: r.Host, URI: r.RequestURI, Headers: r.Header,
	})
	if err != nil {
		log.Print(err)
	}
}

// grpc sends every message of a stream back as it comes.
func grpc(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w).Flush
	_ = flush()
	status := "0"
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(r.Body, head); err != nil {
			if !errors.Is(err, io.EOF) {
				status = "1" // cancelled
			}
			break
		}
		message := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(r.Body, message); err != nil {
			status = "1"
			break
		}
		if _, err := w.Write(append(head, message...)); err != nil {
			return
		}
		_ = flush()
	}
	w.Header().Set("Grpc-Status", status)
}

func address(r *http.Request) string {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	host, _, err := net.SplitHostPort(local.String())
	if err != nil {
		return local.String()
	}
	return host
}

func port() string {
	if value := os.Getenv("PORT"); value != "" {
		return value
	}
	return "8080"
}

// duration reads a Go duration; nothing means none.
func duration(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	return time.ParseDuration(text)
}
