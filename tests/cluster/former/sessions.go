package main

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sort"
	"strings"
	"sync/atomic"
	"time"
)

// sessions sends each cookie of ingress-nginx (affinity-mode balanced) to the endpoint that it stands for.
type sessions struct {
	ring atomic.Pointer[ring]
}

// ring has 160 places for each endpoint, as resty.chash has them.
type ring struct {
	upstream string
	places   []uint32
	owner    map[uint32]string
}

func newRing(upstream string, endpoints []string) *ring {
	r := &ring{upstream: upstream, owner: map[uint32]string{}}
	for _, endpoint := range endpoints {
		var place uint32
		for range 160 {
			bytes := binary.LittleEndian.AppendUint32([]byte(endpoint), place)
			place = crc32.ChecksumIEEE(bytes)
			r.places = append(r.places, place)
			r.owner[place] = endpoint
		}
	}
	sort.Slice(r.places, func(a, b int) bool { return r.places[a] < r.places[b] })
	return r
}

func (r *ring) find(key string) string {
	if len(r.places) == 0 {
		return ""
	}
	place := crc32.ChecksumIEEE([]byte(key))
	at := sort.Search(len(r.places), func(at int) bool { return r.places[at] >= place })
	return r.owner[r.places[at%len(r.places)]]
}

// mark is the second part of a cookie: it tells upstreams apart.
func (r *ring) mark() string {
	digest := func(text string) string {
		sum := md5.Sum([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	return digest(digest(r.upstream) + r.upstream)
}

func (s *sessions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ring := s.ring.Load()
	if ring == nil {
		http.Error(w, "no endpoints", http.StatusServiceUnavailable)
		return
	}
	key := ""
	if cookie, err := r.Cookie("INGRESSCOOKIE"); err == nil {
		first, second, _ := strings.Cut(cookie.Value, "|")
		if second == ring.mark() {
			key = first
		}
	}
	if key == "" {
		key = fmt.Sprintf("%.3f.%d.%d", float64(time.Now().UnixMilli())/1e3, rand.IntN(100), rand.IntN(1e6))
		value := "INGRESSCOOKIE=" + key + "|" + ring.mark() + "; Path=/; HttpOnly"
		w.Header().Add("Set-Cookie", value)
	}
	target := &url.URL{Scheme: "http", Host: ring.find(key)}
	proxy := &httputil.ReverseProxy{Rewrite: func(request *httputil.ProxyRequest) {
		request.SetURL(target)
		request.Out.Host = request.In.Host
	}}
	proxy.ServeHTTP(w, r)
}
