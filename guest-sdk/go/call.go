package weir

import (
	"context"
	"time"

	"github.com/weir-rt/weir/guest-sdk/go/internal/host"
)

// CallOption changes a call.
type CallOption func(*callOptions)

type callOptions struct{ provider string }

// To names the provider of a call: an extension, or `main`. Otherwise it is the owner of the contract.
func To(provider string) CallOption {
	return func(options *callOptions) { options.provider = provider }
}

// Call calls another contract and waits for the answer. Meanwhile this extension serves other messages.
//
// The call takes at most the time of the context: that of the request in hand, or less by context.WithTimeout. If the
// context is cancelled before, so is the call. An answer that is no Out is an error with the code `invalid-answer`.
func Call[Out, In any](ctx context.Context, contract, operation string, in In, options ...CallOption) (out Out, err error) {
	pending, err := Send[Out](ctx, contract, operation, in, options...)
	if err != nil {
		return out, err
	}
	return pending.Wait()
}

// Pending is a request that was sent with Send.
type Pending[Out any] struct {
	ctx  context.Context
	link *link
	id   uint64
	name string
	slot *slot
}

// slot is for one answer.
type slot struct {
	answered chan struct{}
	payload  []byte
	err      error
}

// Send sends a request, as Call does, and does not wait for the answer.
func Send[Out, In any](
	ctx context.Context, contract, operation string, in In, options ...CallOption,
) (*Pending[Out], error) {
	var chosen callOptions
	for _, option := range options {
		option(&chosen)
	}
	origin, err := from(ctx)
	if err != nil {
		return nil, err
	}
	payload, err := encode(in)
	if err != nil {
		return nil, invalid("the arguments: %v", err)
	}
	timing, err := origin.options(ctx)
	if err != nil {
		return nil, err
	}
	id, slot, err := origin.link.send(target{contract, operation, chosen.provider}, payload, timing)
	if err != nil {
		return nil, err
	}
	return &Pending[Out]{ctx, origin.link, id, contract + "/" + operation, slot}, nil
}

// Wait waits for the answer, as long as Call does.
func (p *Pending[Out]) Wait() (out Out, err error) {
	select {
	case <-p.slot.answered:
	case <-p.ctx.Done():
		if p.ctx.Err() == context.Canceled {
			p.Cancel()
			return out, p.ctx.Err()
		}
		// Main knows the deadline, and answers what it knows by then.
		<-p.slot.answered
	}
	if p.slot.err != nil {
		return out, p.slot.err
	}
	out, err = decode[Out](p.slot.payload)
	if err != nil {
		return out, Errorf("invalid-answer", "`%s`: %v", p.name, err)
	}
	return out, nil
}

// Done is closed when the answer is there.
func (p *Pending[Out]) Done() <-chan struct{} { return p.slot.answered }

// Cancel gives up the request. Wait then fails with context.Canceled.
func (p *Pending[Out]) Cancel() { p.link.cancel(p.id) }

// options are the time and the parent of an operation for a context.
func (o *origin) options(ctx context.Context) (host.Options, error) {
	if ctx.Err() == context.Canceled {
		return host.Options{}, ctx.Err()
	}
	options := host.Options{Parent: o.parent.Load()}
	// Main knows the deadline of the request in hand. Without another one, its default holds.
	if deadline, ok := ctx.Deadline(); ok && (options.Parent == 0 || !deadline.Equal(o.deadline)) {
		options.Timeout = max(time.Until(deadline), time.Millisecond)
	}
	return options, nil
}

type target struct{ contract, operation, provider string }

// number looks up a target once.
func (l *link) number(target target) (uint32, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if known, ok := l.targets[target]; ok {
		return known, nil
	}
	number, err := l.host.Open(target.contract, target.operation, target.provider)
	if err == nil {
		l.targets[target] = number
	}
	return number, err
}

func (l *link) send(target target, payload []byte, options host.Options) (uint64, *slot, error) {
	number, err := l.number(target)
	if err != nil {
		return 0, nil, err
	}
	slot := &slot{answered: make(chan struct{})}
	if !l.receiving.Load() {
		// No answer comes through the inbox before the first receive, nor after the last.
		slot.payload, slot.err = l.host.Call(number, payload, options)
		close(slot.answered)
		return 0, slot, nil
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	id, err := l.host.Send(number, payload, options)
	if err != nil {
		return 0, nil, err
	}
	l.underWay[id] = slot
	l.changed()
	return id, slot, nil
}

func (l *link) cancel(id uint64) {
	l.mutex.Lock()
	slot, found := l.underWay[id]
	delete(l.underWay, id)
	l.mutex.Unlock()
	if found {
		l.host.Cancel(id)
		slot.fill(nil, context.Canceled)
		l.changed()
	}
}

// answered hands over an answer. There may be no slot: the caller gave up while the answer was in the inbox.
func (l *link) answered(response host.Response) {
	l.mutex.Lock()
	slot, found := l.underWay[response.ID]
	delete(l.underWay, response.ID)
	l.mutex.Unlock()
	if found {
		slot.fill(response.Payload, response.Err)
	}
}

func (s *slot) fill(payload []byte, err error) {
	s.payload, s.err = payload, err
	close(s.answered)
}
