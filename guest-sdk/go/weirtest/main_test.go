package weirtest

import (
	"testing"

	"github.com/weir-rt/weir/guest-sdk/go/internal/host"
)

func TestAJobThatIsNotInHandIsInvalid(t *testing.T) {
	main := memory{New(nil)}
	for name, err := range map[string]error{"done": main.Done(7), "give-back": main.GiveBack(7)} {
		failure, ok := err.(*host.Error)
		if !ok || failure.Case != host.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
