package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The extension in a real Main. `weir test` starts it.
func TestTheRunningExtensionGreetsByName(t *testing.T) {
	if os.Getenv("WEIR_SOCKET") == "" {
		t.Skip("under plain `go test` there is no Main")
	}
	answer, err := exec.Command(os.Getenv("WEIR"), "call", contract, "greet", `{"name":"Grace"}`).CombinedOutput()
	if err != nil || !strings.Contains(string(answer), "hello, Grace") {
		t.Fatalf("%v: %s", err, answer)
	}
	refused, err := exec.Command(os.Getenv("WEIR"), "call", contract, "greet", `{"name":""}`).CombinedOutput()
	if err == nil || !strings.Contains(string(refused), "there is nobody to greet") {
		t.Fatalf("%v: %s", err, refused)
	}
}
