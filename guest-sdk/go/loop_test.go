package weir

import (
	"testing"
	"time"

	"github.com/weir-rt/weir/guest-sdk/go/internal/host"
)

// restless is a host under which goroutines are always ready.
type restless struct {
	host.Host
	waits []time.Duration
}

func (*restless) Settle() bool { return false }

func (r *restless) Receive(until time.Time) ([]any, bool) {
	wait := time.Hour
	if !until.IsZero() {
		wait = time.Until(until)
	}
	r.waits = append(r.waits, wait)
	return nil, len(r.waits) == 2
}

func TestTheLoopDoesNotWaitWhileOthersAreReady(t *testing.T) {
	inbox := &restless{}
	link := &link{host: inbox}
	if err := link.loop(func() {}); err != nil {
		t.Fatal(err)
	}
	for _, wait := range inbox.waits {
		if wait > 0 {
			t.Errorf("it waits for %v", wait)
		}
	}
}
