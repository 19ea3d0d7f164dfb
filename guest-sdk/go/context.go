package weir

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// origin is the message that a handler runs for, and what it reaches Main by. Contexts carry it.
type origin struct {
	link *link
	// sender is nil if nobody sent anything.
	sender *uint32
	// parent is the request or job in hand. It is 0 if there is none, and once it is answered or done.
	parent atomic.Uint64
	// deadline is that of the request in hand.
	deadline time.Time
}

type originKey struct{}

// from gives what a context of this package carries.
func from(ctx context.Context) (*origin, error) {
	if found, ok := ctx.Value(originKey{}).(*origin); ok {
		return found, nil
	}
	return nil, invalid("the context is not that of a handler")
}

// Sender is the id of the sender of the request, event or job in hand: an extension, or `main`. Main vouches for it. It is
// empty if nobody sent anything.
func Sender(ctx context.Context) string {
	origin, err := from(ctx)
	if err != nil || origin.sender == nil {
		return ""
	}
	return origin.link.host.NameOf(*origin.sender)
}

// OwnName is the id under which the operator runs this extension.
func OwnName(ctx context.Context) string {
	origin, err := from(ctx)
	if err != nil {
		return ""
	}
	return origin.link.host.OwnName()
}

// Config is a value of this extension's `config` table in the operator's file, and whether it is there.
func Config(ctx context.Context, key string) (value string, found bool, err error) {
	origin, err := from(ctx)
	if err != nil {
		return "", false, err
	}
	return origin.link.host.Config(key)
}

// Ready declares that this extension serves again after Interrupted. At the start that happens by itself.
func Ready(ctx context.Context) {
	if origin, err := from(ctx); err == nil {
		origin.link.host.Ready()
	}
}

// Interrupted declares that this extension cannot serve for now, and why. Requests to it fail with `not-ready` until Ready.
func Interrupted(ctx context.Context, reason string) {
	if origin, err := from(ctx); err == nil {
		origin.link.host.Interrupted(reason)
	}
}

// requestContext ends at the deadline of its request. The loop ends it: a timer of Go for each request would wake an idle
// extension once more after the last of them.
type requestContext struct {
	*origin
	mutex sync.Mutex
	done  chan struct{}
	err   error
	after map[int]func()
	next  int
}

func (c *requestContext) Deadline() (time.Time, bool) { return c.deadline, true }

func (c *requestContext) Value(key any) any {
	if key == (originKey{}) {
		return c.origin
	}
	return nil
}

func (c *requestContext) Done() <-chan struct{} {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	return c.done
}

func (c *requestContext) Err() error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.err
}

// AfterFunc lets the contexts that are derived from this one end with it, without a goroutine for each.
func (c *requestContext) AfterFunc(call func()) (stop func() bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.err != nil {
		go call()
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = make(map[int]func())
	}
	key := c.next
	c.next++
	c.after[key] = call
	return func() bool {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		_, found := c.after[key]
		delete(c.after, key)
		return found
	}
}

func (c *requestContext) end(err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.err != nil {
		return
	}
	c.err = err
	if c.done != nil {
		close(c.done)
	}
	for _, call := range c.after {
		go call()
	}
	c.after = nil
}
