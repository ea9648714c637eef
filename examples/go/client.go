package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// Client asks the daemon of one home.
type Client struct{ http http.Client }

// Frontend is the stable address of a service.
type Frontend struct {
	Host string `json:"host"`
	Port int    `json:"port"`
	URL  string `json:"url"`
}

// Endpoint is what a client connects to: a URL, else host and port.
func (f Frontend) Endpoint() string {
	if f.URL != "" {
		return f.URL
	}
	return net.JoinHostPort(f.Host, fmt.Sprint(f.Port))
}

// Service is one name, with what is known of it.
type Service struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Status   string   `json:"status"`
	Frontend Frontend `json:"frontend"`
	Reason   string   `json:"reason"`
}

// Backend is where a service listens now.
type Backend struct {
	Host string `json:"host"`
	Port int    `json:"port"`
}

// Request registers a service. What is left empty is the daemon's default.
type Request struct {
	Name          string  `json:"name"`
	Kind          string  `json:"kind,omitempty"`
	AppProtocol   string  `json:"app_protocol,omitempty"`
	HTTPHost      string  `json:"http_host,omitempty"`
	Backend       Backend `json:"backend"`
	PreferredPort int     `json:"preferred_port,omitempty"`
	TTLSeconds    int     `json:"ttl_seconds,omitempty"`
}

// Registration is a lease on a name.
type Registration struct {
	ID         string   `json:"registration_id"`
	Token      string   `json:"lease_token"`
	Frontend   Frontend `json:"frontend"`
	TTLSeconds int      `json:"ttl_seconds"`

	client  *Client
	request Request
}

// Error is what the daemon refused. Branch on Code; Message is for people.
type Error struct {
	Status  int    `json:"-"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// NewClient asks at a socket; an empty path is the usual one.
func NewClient(path string) *Client {
	if path == "" {
		home, _ := os.UserHomeDir()
		path = filepath.Join(home, ".devmesh", "run", "devmesh.sock")
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	return &Client{http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: dial}}}
}

// Services lists every known service, by name.
func (c *Client) Services(ctx context.Context) ([]Service, error) {
	var list struct{ Services []Service }
	err := c.call(ctx, "GET", "/v1/services", nil, nil, &list)
	return list.Services, err
}

// Address is the stable address of a service, when something stands behind it.
func (c *Client) Address(ctx context.Context, name string) (string, error) {
	var service Service
	if err := c.call(ctx, "GET", "/v1/services/"+url.PathEscape(name), nil, nil, &service); err != nil {
		return "", err
	}
	if service.Status != "ready" {
		return "", fmt.Errorf("%s is %s: %s", name, service.Status, service.Reason)
	}
	return service.Frontend.Endpoint(), nil
}

// Register takes a name for what listens at the request's backend. Keep renews it.
func (c *Client) Register(ctx context.Context, request Request) (*Registration, error) {
	made := &Registration{client: c, request: request}
	// The key makes a repeated request answer what the first one made, when its answer was lost.
	key := make([]byte, 16)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	header := http.Header{"Idempotency-Key": {hex.EncodeToString(key)}}
	return made, c.call(ctx, "POST", "/v1/registrations", header, request, made)
}

// Keep renews the lease until ctx ends, and registers anew when the daemon has forgotten it.
func (r *Registration) Keep(ctx context.Context) {
	third := time.Duration(r.TTLSeconds) * time.Second / 3
	if third < time.Second {
		third = time.Second
	}
	pause := third
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = third
		err := r.client.call(ctx, "POST", "/v1/registrations/"+r.ID+"/heartbeat", r.bearer(), nil, nil)
		if refused, ok := err.(*Error); ok && refused.Status == http.StatusNotFound {
			var made *Registration
			if made, err = r.client.Register(ctx, r.request); err == nil {
				*r = *made
			}
		}
		if err != nil {
			pause = time.Second
		}
	}
}

// Close ends the registration; its address is kept for the name.
func (r *Registration) Close() {
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	// Without an answer the lease runs out by itself.
	_ = r.client.call(ctx, "DELETE", "/v1/registrations/"+r.ID, r.bearer(), nil, nil)
}

func (r *Registration) bearer() http.Header {
	return http.Header{"Authorization": {"Bearer " + r.Token}}
}

func (c *Client) call(ctx context.Context, method, path string, header http.Header, body, into any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, "http://stado"+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	for name, values := range header {
		request.Header[name] = values
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err = io.ReadAll(io.LimitReader(answer.Body, 64<<20))
	if err != nil {
		return err
	}
	if answer.StatusCode/100 != 2 {
		var envelope struct{ Error Error }
		if json.Unmarshal(text, &envelope) != nil || envelope.Error.Code == "" {
			envelope.Error = Error{Code: "internal_error", Message: string(bytes.TrimSpace(text))}
		}
		envelope.Error.Status = answer.StatusCode
		return &envelope.Error
	}
	if into == nil || len(text) == 0 {
		return nil
	}
	return json.Unmarshal(text, into)
}
