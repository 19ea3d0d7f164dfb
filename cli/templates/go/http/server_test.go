// The answers alone, without Main.

package server

import (
	"net/http/httptest"
	"testing"
)

func asked(method, path string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	Handler.ServeHTTP(answer, httptest.NewRequest(method, path, nil))
	return answer
}

func TestGreetsTheLastPartOfThePath(t *testing.T) {
	if answer := asked("GET", "/a/Ada"); answer.Code != 200 || answer.Body.String() != "hello, Ada\n" {
		t.Errorf("it answers %d %q", answer.Code, answer.Body)
	}
}

func TestNobodyIsNotGreeted(t *testing.T) {
	if answer := asked("GET", "/"); answer.Code != 404 {
		t.Errorf("it answers %d", answer.Code)
	}
	if answer := asked("POST", "/Ada"); answer.Code != 405 {
		t.Errorf("it answers %d", answer.Code)
	}
}
