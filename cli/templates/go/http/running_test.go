// The server in a real Main. `weir test` starts it, and says where the gateway is.

package main

import (
	"io"
	"net/http"
	"os"
	"testing"
)

func get(t *testing.T, path string) (int, string) {
	t.Helper()
	gateway := os.Getenv("WEIR_HTTP_ADDRESS")
	if gateway == "" {
		t.Skip("`weir test` starts a Main")
	}
	answer, err := http.Get("http://" + gateway + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestTheRunningServerGreets(t *testing.T) {
	if status, body := get(t, "/Grace"); status != 200 || body != "hello, Grace\n" {
		t.Errorf("it answers %d %q", status, body)
	}
}

func TestAGreetingNeedsAName(t *testing.T) {
	if status, _ := get(t, "/"); status != 404 {
		t.Errorf("it answers %d", status)
	}
}
