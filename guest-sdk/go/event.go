package weir

import (
	"context"

	"github.com/weir-rt/weir/guest-sdk/go/internal/host"
)

// Event is an event, with the envelope that Main stamped on it.
type Event[T any] struct {
	// Topic is the topic that it was published under.
	Topic string
	// Sequence rises with each event of the topic. It is 0 for an event published to this extension alone.
	Sequence uint64
	// Lost counts the events of this subscription that were lost just before this one.
	Lost uint64
	// Retained says whether it was published before this instance subscribed.
	Retained bool
	// Payload is the published value.
	Payload T
}

// Receipt counts the subscriptions that an event reached or missed.
type Receipt = host.Receipt

// Publish publishes an event to all subscribers of a topic, with the value as JSON, or the bytes of a []byte.
//
// Where the operator's policy for a full subscription is `block`, it waits for room for the operator's default time, or
// that of the context. Nothing else of this extension runs meanwhile.
func Publish[T any](ctx context.Context, topic string, value T) (Receipt, error) {
	origin, payload, options, err := outgoing(ctx, value)
	if err != nil {
		return Receipt{}, err
	}
	return origin.link.host.Publish(topic, payload, options)
}

// PublishTo publishes an event to one extension alone, which must have subscribed to the topic.
func PublishTo[T any](ctx context.Context, extension, topic string, value T) (Receipt, error) {
	origin, payload, options, err := outgoing(ctx, value)
	if err != nil {
		return Receipt{}, err
	}
	return origin.link.host.PublishTo(extension, topic, payload, options)
}

func outgoing[T any](ctx context.Context, value T) (*origin, []byte, host.Options, error) {
	origin, err := from(ctx)
	if err != nil {
		return nil, nil, host.Options{}, err
	}
	payload, err := encode(value)
	if err != nil {
		return nil, nil, host.Options{}, invalid("the payload: %v", err)
	}
	options, err := origin.options(ctx)
	return origin, payload, options, err
}

// Subscription is one that Listen has made.
type Subscription struct {
	link   *link
	number uint32
}

// Listen subscribes to a pattern that is known only at run time, such as one of the configuration. It handles events as
// Subscribe does. It fails with `invalid` if the pattern has a handler already.
func Listen[T any](
	ctx context.Context, pattern string, handler func(context.Context, Event[T]) error,
) (*Subscription, error) {
	origin, err := from(ctx)
	if err != nil {
		return nil, err
	}
	number, err := origin.link.subscribe(subscription{pattern, eventHandler(handler)})
	if err != nil {
		return nil, err
	}
	return &Subscription{origin.link, number}, nil
}

// Unsubscribe ends the subscription, and drops its events in the inbox.
func (s *Subscription) Unsubscribe() error {
	s.link.mutex.Lock()
	delete(s.link.lanes, s.number)
	s.link.mutex.Unlock()
	return s.link.host.Unsubscribe(s.number)
}

type subscription struct {
	pattern string
	handle  func(context.Context, host.Event) error
}

func eventHandler[T any](
	handler func(context.Context, Event[T]) error,
) func(context.Context, host.Event) error {
	return func(ctx context.Context, event host.Event) error {
		payload, err := decode[T](event.Payload)
		if err != nil {
			return err
		}
		return handler(ctx, Event[T]{event.Topic, event.Sequence, event.Lost, event.Retained, payload})
	}
}

// waiting is how many events may wait for a busy handler, under every policy: Main's default for an extension. Beyond that
// the oldest are lost, and the handler sees how many. They cannot stay in the inbox: it yields all subscriptions or none, and the handler
// may be waiting for an event of another one.
const waiting = 256

// lane hands the events of one subscription to its handler, one after the other.
type lane struct {
	subscription
	events []host.Event
	busy   bool
}

func (l *link) subscribe(subscription subscription) (uint32, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	number, err := l.host.Subscribe(subscription.pattern)
	if err != nil {
		return 0, err
	}
	// Main gives the same number for the same pattern.
	if l.lanes[number] != nil {
		return 0, invalid("`%s` has a handler already", subscription.pattern)
	}
	l.lanes[number] = &lane{subscription: subscription}
	return number, nil
}

func (l *link) event(event host.Event) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	lane := l.lanes[event.Subscription]
	if lane == nil {
		return
	}
	if event.Topic == "" {
		event.Topic = lane.pattern
	}
	lane.events = append(lane.events, event)
	if len(lane.events) > waiting {
		lane.events[1].Lost += lane.events[0].Lost + 1
		lane.events = lane.events[1:]
	}
	if !lane.busy {
		lane.busy = true
		l.handlers++
		go l.handleEvents(lane)
	}
}

func (l *link) handleEvents(lane *lane) {
	for {
		l.mutex.Lock()
		if len(lane.events) == 0 {
			lane.busy = false
			l.handlers--
			l.changed()
			l.mutex.Unlock()
			return
		}
		event := lane.events[0]
		lane.events = lane.events[1:]
		l.mutex.Unlock()

		ctx := l.context(&origin{sender: &event.Sender})
		if err := guarded(func() error { return lane.handle(ctx, event) }); err != nil {
			l.log(host.Warn, "an event was not handled", "topic", event.Topic, "error", err.Error())
		}
	}
}
