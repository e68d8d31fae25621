//go:build tools

// Package echo holds nothing itself: it names the program that answers in the Pods of the conformance suite.
package echo

import _ "sigs.k8s.io/gateway-api/conformance/echo-basic"
