// The functions alone, without Main.

package export_local_plugin_greeter

import (
	"testing"

	"{{name}}/dist/bindings/local_plugin_greeter"
)

func TestGreetsByName(t *testing.T) {
	if greeting := Greet("Ada").Ok(); greeting != "hello, Ada" {
		t.Errorf("it says %q", greeting)
	}
}

func TestNobodyIsNotGreeted(t *testing.T) {
	if problem := Greet("").Err(); problem != local_plugin_greeter.ProblemNobody {
		t.Errorf("the problem is %d", problem)
	}
}
