package main

import (
	"log"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// echoes are the WebSockets that are open.
type echoes struct {
	open    sync.WaitGroup
	mutex   sync.Mutex
	all     map[*echo]struct{}
	leaving bool
}

// echo is one of them; only one goroutine may write at a time.
type echo struct {
	mutex sync.Mutex
	*websocket.Conn
	left bool
}

var sockets = echoes{all: map[*echo]struct{}{}}

// serve sends every message back until the client closes.
func (e *echoes) serve(w http.ResponseWriter, r *http.Request) {
	upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		log.Print(err)
		return
	}
	own := &echo{Conn: conn}
	e.open.Add(1)
	defer e.open.Done()
	e.mutex.Lock()
	e.all[own] = struct{}{}
	leaving := e.leaving
	e.mutex.Unlock()
	if leaving {
		own.leave()
	}
	own.echo()
	e.mutex.Lock()
	delete(e.all, own)
	e.mutex.Unlock()
}

// leave tells everyone that this server is going away.
func (e *echoes) leave() {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.leaving = true
	for own := range e.all {
		own.leave()
	}
}

func (own *echo) echo() {
	defer own.Close()
	for {
		kind, message, err := own.ReadMessage()
		if err != nil {
			return
		}
		own.mutex.Lock()
		// After the close frame nothing may follow.
		if !own.left {
			err = own.WriteMessage(kind, message)
		}
		own.mutex.Unlock()
		if err != nil {
			return
		}
	}
}

func (own *echo) leave() {
	own.mutex.Lock()
	defer own.mutex.Unlock()
	own.left = true
	deadline := time.Now().Add(2 * time.Second)
	bye := websocket.FormatCloseMessage(websocket.CloseGoingAway, "")
	if err := own.WriteControl(websocket.CloseMessage, bye, deadline); err != nil {
		log.Print(err)
	}
	_ = own.SetReadDeadline(deadline)
}
