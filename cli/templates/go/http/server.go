// Package server has the answers, as a handler of net/http.
package server

import (
	"fmt"
	"net/http"
	"path"
)

// Handler answers all requests.
var Handler http.Handler = http.HandlerFunc(greet)

// greet answers with a greeting for the last part of the path.
func greet(answer http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodGet {
		http.Error(answer, "only GET is known here", http.StatusMethodNotAllowed)
		return
	}
	name := path.Base(request.URL.Path)
	if name == "/" || name == "." {
		http.Error(answer, "there is nobody to greet", http.StatusNotFound)
		return
	}
	fmt.Fprintf(answer, "hello, %s\n", name)
}
