// The component in a real Main. `weir test` starts it, and says where the command is.

package main

import (
	"os"
	"os/exec"
	"testing"
)

func greet(t *testing.T, arguments string) string {
	t.Helper()
	weir := os.Getenv("WEIR")
	if weir == "" {
		t.Skip("`weir test` starts a Main")
	}
	// A refused call fails, and says why.
	output, _ := exec.Command(weir, "call", "{{name}}@1", "greet", arguments).CombinedOutput()
	return string(output)
}

func TestTheRunningComponentGreetsByName(t *testing.T) {
	if answer := greet(t, `{"name":"Grace"}`); answer != `"hello, Grace"` {
		t.Errorf("it says %s", answer)
	}
}

func TestAGreetingNeedsAName(t *testing.T) {
	if answer := greet(t, `{"name":""}`); answer != "error: nobody: nobody\n" {
		t.Errorf("it says %s", answer)
	}
}
