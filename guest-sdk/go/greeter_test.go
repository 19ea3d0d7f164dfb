package weir_test

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	weir "github.com/weir-rt/weir/guest-sdk/go"
	"github.com/weir-rt/weir/guest-sdk/go/weirtest"
)

type Name struct {
	Name string `json:"name" doc:"Who to greet."`
	Mood *int8  `json:"mood,omitempty"`
}

type Greeting struct {
	Text string `json:"text"`
}

func extension(more ...func(*weir.Extension)) *weir.Extension {
	ext := weir.New(weir.Manifest{
		ID: "greeter", Version: "0.1.0", Wants: []string{"device.info@1"}, Publishes: []string{"greeter.>"},
		Subscribes: []string{"late.*"}, Puts: []string{"letters"}, Takes: []string{"parcels"},
	})
	for _, add := range more {
		add(ext)
	}
	return ext
}

func handling[In, Out any](name string, handler func(context.Context, In) (Out, error)) func(*weir.Extension) {
	return func(ext *weir.Extension) { weir.Handle(ext, "greeter@1", name, handler) }
}

func greet(_ context.Context, in Name) (Greeting, error) {
	if in.Name == "" {
		return Greeting{}, weir.Errorf("no-name", "there is nobody to greet")
	}
	return Greeting{"hello " + in.Name}, nil
}

func equal[T any](t *testing.T, found, expected T) {
	t.Helper()
	if !reflect.DeepEqual(found, expected) {
		t.Errorf("found %v, not %v", found, expected)
	}
}

func TestArgumentsAreCheckedBeforeTheHandler(t *testing.T) {
	main := weirtest.New(extension(handling("greet", greet)))
	main.Run(t, func(t *testing.T) {
		greeting, err := weirtest.Call[Greeting](main, "greeter@1", "greet", Name{Name: "Ada"})
		equal(t, err, nil)
		equal(t, greeting, Greeting{"hello Ada"})
		for payload, expected := range map[string]string{
			`{"name":""}`:             "no-name: there is nobody to greet",
			`{}`:                      "invalid-argument: `$` lacks `name`",
			``:                        "invalid-argument: `$` lacks `name`",
			`{"name":null}`:           "invalid-argument: `$.name` cannot be null",
			`{"name":3}`:              "invalid-argument: `$.name` cannot be a number",
			`{"name":"x","mood":300}`: "invalid-argument: `$.mood` cannot be a number 300",
			`[]`:                      "invalid-argument: `$` cannot be a array",
		} {
			_, err := weirtest.Call[[]byte](main, "greeter@1", "greet", []byte(payload))
			equal(t, err.Error(), expected)
		}
		_, err = weirtest.Call[[]byte](main, "greeter@1", "greet", []byte("{"))
		equal(t, weir.Code(err), "invalid-argument")
	})
}

func TestRequestsOverlapAndEndAtTheirDeadline(t *testing.T) {
	var ended atomic.Int32
	slow := handling("slow", func(ctx context.Context, _ struct{}) (int, error) {
		select {
		case <-time.After(time.Second):
			return 1, nil
		case <-ctx.Done():
			ended.Add(1)
			return 0, ctx.Err()
		}
	})
	main := weirtest.New(extension(slow))
	main.Run(t, func(t *testing.T) {
		begun := time.Now()
		answers := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := weirtest.Call[int](main, "greeter@1", "slow", struct{}{})
				answers <- err
			}()
		}
		equal(t, <-answers, nil)
		equal(t, <-answers, nil)
		equal(t, time.Since(begun), time.Second)

		_, err := weirtest.CallWithin[int](main, 100*time.Millisecond, "greeter@1", "slow", struct{}{})
		equal(t, errors.Is(err, weir.ErrTimeout), true)
		equal(t, errors.Is(err, context.DeadlineExceeded), true)
		time.Sleep(time.Millisecond)
		equal(t, ended.Load(), 1)
	})
}

func TestACallHasTheDeadlineOfItsRequestAndCanBeCancelled(t *testing.T) {
	var left atomic.Int64
	main := weirtest.New(extension(
		handling("ask", func(ctx context.Context, ms int) (int, error) {
			if ms > 0 {
				var stop context.CancelFunc
				ctx, stop = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
				defer stop()
			}
			return weir.Call[int](ctx, "device.info@1", "uptime", struct{}{})
		}),
		handling("give-up", func(ctx context.Context, _ struct{}) (bool, error) {
			pending, err := weir.Send[int](ctx, "device.info@1", "uptime", struct{}{})
			if err != nil {
				return false, err
			}
			pending.Cancel()
			_, err = pending.Wait()
			return errors.Is(err, context.Canceled), nil
		}),
		handling("wrong", func(ctx context.Context, _ struct{}) (int, error) {
			return weir.Call[int](ctx, "device.info@1", "name", struct{}{})
		}),
		handling("stranger", func(ctx context.Context, _ struct{}) (int, error) {
			return weir.Call[int](ctx, "secrets@1", "all", struct{}{})
		}),
		handling("elsewhere", func(context.Context, struct{}) (int, error) {
			return weir.Call[int](context.Background(), "device.info@1", "uptime", struct{}{})
		}),
	))
	weirtest.Fake(main, "device.info@1", "uptime", func(ctx context.Context, _ struct{}) (int, error) {
		deadline, _ := ctx.Deadline()
		left.Store(time.Until(deadline).Milliseconds())
		time.Sleep(50 * time.Millisecond)
		return 7, nil
	})
	weirtest.Fake(main, "device.info@1", "name", func(context.Context, struct{}) (string, error) { return "weir", nil })
	main.Run(t, func(t *testing.T) {
		uptime, err := weirtest.Call[int](main, "greeter@1", "ask", 0)
		equal(t, err, nil)
		equal(t, uptime, 7)
		_, err = weirtest.Call[int](main, "greeter@1", "ask", 20)
		equal(t, weir.Code(err), "timeout")
		equal(t, left.Load(), 20)
		gone, err := weirtest.Call[bool](main, "greeter@1", "give-up", struct{}{})
		equal(t, err, nil)
		equal(t, gone, true)
		_, err = weirtest.Call[int](main, "greeter@1", "wrong", struct{}{})
		equal(t, weir.Code(err), "invalid-answer")
		_, err = weirtest.Call[int](main, "greeter@1", "stranger", struct{}{})
		equal(t, weir.Code(err), "permission-denied")
		_, err = weirtest.Call[int](main, "greeter@1", "elsewhere", struct{}{})
		equal(t, err.Error(), "invalid: invalid: the context is not that of a handler")
	})
}

func failUnexpectedly(names map[string]int) { names["Ada"] = 1 }

func TestAPanicIsAnsweredAndLoggedWithItsFunctions(t *testing.T) {
	main := weirtest.New(extension(
		handling("break", func(context.Context, struct{}) (int, error) {
			failUnexpectedly(nil)
			return 0, nil
		}),
		handling("greet", greet),
	))
	main.Run(t, func(t *testing.T) {
		_, err := weirtest.Call[int](main, "greeter@1", "break", struct{}{})
		equal(t, err.Error(), "unexpected: the handler panicked")
		line := main.Logged()[0]
		equal(t, line.Level, slog.LevelError)
		equal(t, line.Fields["panic"], "assignment to entry in nil map")
		if !strings.Contains(line.Fields["in"], "go_test.failUnexpectedly (greeter_test.go:") {
			t.Error(line.Fields["in"])
		}
		_, err = weirtest.Call[Greeting](main, "greeter@1", "greet", Name{Name: "Ada"})
		equal(t, err, nil)
	})
}

func TestEventsComeInOrderAndTheOldestAreLost(t *testing.T) {
	type heard struct {
		payload int
		lost    uint64
	}
	var all []heard
	main := weirtest.New(extension(func(ext *weir.Extension) {
		weir.Subscribe(ext, "numbers.*", func(_ context.Context, event weir.Event[int]) error {
			time.Sleep(time.Second)
			all = append(all, heard{event.Payload, event.Lost})
			return nil
		})
	}))
	main.Run(t, func(t *testing.T) {
		equal(t, weirtest.Publish(main, "letters.one", 0), false)
		weirtest.Publish(main, "numbers.one", "no number")
		time.Sleep(time.Minute)
		equal(t, main.Logged()[0].Message, "an event was not handled")
		for number := range 300 {
			weirtest.Publish(main, "numbers.one", number)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		equal(t, len(all), 257)
		equal(t, all[:2], []heard{{0, 0}, {44, 43}})
		equal(t, all[256], heard{299, 0})
	})
}

func TestASubscriptionAtRunTimeEnds(t *testing.T) {
	var subscription *weir.Subscription
	main := weirtest.New(extension(
		handling("listen", func(ctx context.Context, pattern string) (_ struct{}, err error) {
			subscription, err = weir.Listen(ctx, pattern, func(ctx context.Context, event weir.Event[string]) error {
				_, err := weir.Publish(ctx, "greeter.heard", event.Topic+" "+event.Payload)
				return err
			})
			return struct{}{}, err
		}),
		handling("end", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, subscription.Unsubscribe() }),
		func(ext *weir.Extension) {
			weir.Subscribe(ext, "late.two", func(context.Context, weir.Event[string]) error { return nil })
		},
	))
	main.Run(t, func(t *testing.T) {
		_, err := weirtest.Call[struct{}](main, "greeter@1", "listen", "other.one")
		equal(t, weir.Code(err), "permission-denied")
		_, err = weirtest.Call[struct{}](main, "greeter@1", "listen", "late.one")
		equal(t, err, nil)
		first := subscription
		for _, taken := range []string{"late.one", "late.two"} {
			_, err = weirtest.Call[struct{}](main, "greeter@1", "listen", taken)
			equal(t, err.Error(), "invalid: invalid: `"+taken+"` has a handler already")
		}
		subscription = first
		equal(t, weirtest.Publish(main, "late.one", "hi"), true)
		heard, err := weirtest.Decode[string](main.Published()[0])
		equal(t, err, nil)
		equal(t, heard, "late.one hi")
		_, err = weirtest.Call[struct{}](main, "greeter@1", "end", struct{}{})
		equal(t, err, nil)
		equal(t, weirtest.Publish(main, "late.one", "hi"), false)
		_, err = weirtest.Call[struct{}](main, "greeter@1", "end", struct{}{})
		equal(t, weir.Code(err), "invalid")
		_, err = weirtest.Call[struct{}](main, "greeter@1", "listen", "late.one")
		equal(t, err, nil)
	})
}

func TestAJobIsDoneOrGivenBack(t *testing.T) {
	var running, most, given int
	var mutex sync.Mutex
	main := weirtest.New(extension(func(ext *weir.Extension) {
		weir.HandleJobs(ext, "uploads", 2, func(ctx context.Context, job *weir.Job[string]) error {
			mutex.Lock()
			running++
			most = max(most, running)
			mutex.Unlock()
			time.Sleep(time.Second)
			mutex.Lock()
			defer mutex.Unlock()
			running--
			if job.Payload == "bad" {
				given++
				return errors.New("a bad job")
			}
			_, err := weir.Put(ctx, "letters", job.Payload)
			return err
		})
	}))
	main.Run(t, func(t *testing.T) {
		for _, job := range []string{"a", "b", "bad", "c"} {
			weirtest.Put(main, "uploads", job)
		}
		weirtest.Put(main, "uploads", 3)
		time.Sleep(time.Minute)
		synctest.Wait()
		done, dead := main.Finished("uploads")
		equal(t, []int{done, dead, given, most}, []int{3, 2, 3, 2})
		equal(t, len(main.Waiting("letters")), 3)
	})
}

func TestTakeWaitsForOneJobOrForItsTime(t *testing.T) {
	main := weirtest.New(extension(
		handling("take", func(ctx context.Context, ms int) (string, error) {
			ctx, stop := context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
			defer stop()
			job, err := weir.Take[string](ctx, "parcels")
			if err != nil {
				return "", err
			}
			return job.Payload, job.Done()
		}),
	))
	main.Run(t, func(t *testing.T) {
		_, err := weirtest.Call[string](main, "greeter@1", "take", 100)
		equal(t, weir.Code(err), "timeout")
		weirtest.Put(main, "parcels", "for nobody")
		equal(t, len(main.Waiting("parcels")), 1)
		taken, err := weirtest.Call[string](main, "greeter@1", "take", 100)
		equal(t, err, nil)
		equal(t, taken, "for nobody")
		done, _ := main.Finished("parcels")
		equal(t, done, 1)
	})
}
