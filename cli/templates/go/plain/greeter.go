// Package export_local_plugin_greeter has the functions of the interface in wit/plugin.wit.
package export_local_plugin_greeter

import (
	witTypes "go.bytecodealliance.org/pkg/wit/types"

	"{{name}}/dist/bindings/local_plugin_greeter"
)

// Greet makes a greeting for this name.
func Greet(name string) witTypes.Result[string, local_plugin_greeter.Problem] {
	if name == "" {
		return witTypes.Err[string](local_plugin_greeter.ProblemNobody)
	}
	return witTypes.Ok[string, local_plugin_greeter.Problem]("hello, " + name)
}
