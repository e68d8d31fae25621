//go:build tools

// Package conformance holds nothing itself: it names the programs that `make conformance` builds, so that go.mod keeps them.
package conformance

import (
	_ "sigs.k8s.io/gateway-api/conformance"
	_ "sigs.k8s.io/gateway-api-conformance-images/echo-basic/tcpserver"
)
