// Command provider is a provider of OpenID Connect that signs everybody in as jane.doe@example.com without a question.
//
// It listens at the address that it is started with; the client is `fairway` with the secret `very-secret`. It prints its
// issuer once it listens.
package main

import (
	"fmt"
	"log"
	"net"
	"os"

	"github.com/oauth2-proxy/mockoidc"
)

func main() {
	listener, err := net.Listen("tcp", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	provider, err := mockoidc.NewServer(nil)
	if err != nil {
		log.Fatal(err)
	}
	provider.ClientID, provider.ClientSecret = "fairway", "very-secret"
	if err := provider.Start(listener, nil); err != nil {
		log.Fatal(err)
	}
	fmt.Println(provider.Issuer())
	select {}
}
