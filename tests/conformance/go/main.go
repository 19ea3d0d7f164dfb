// The conformance guest in Go. `tests/conformance/README.md` specifies it.
package main

import (
	"context"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	weir "github.com/weir-rt/weir/guest-sdk/go"
)

const contract = "conformance@1"

// Numbers are what `add` takes.
type Numbers struct {
	Left  int64 `json:"left" doc:"The first."`
	Right int64 `json:"right" doc:"The second."`
}

// Sum is what it gives.
type Sum struct {
	Sum int64 `json:"sum" doc:"The sum."`
}

func main() {
	ext := weir.New(weir.Manifest{
		ID:         "conformance",
		Version:    "0.1.0",
		Requires:   []string{"tester@1"},
		Wants:      []string{"other@1", "nobody@1"},
		Publishes:  []string{"conformance.out.>"},
		Subscribes: []string{"conformance.more.>"},
		Puts:       []string{"conformance-out"},
		Takes:      []string{"conformance-more"},
		Dirs:       []weir.Dir{{Guest: "/data", Writable: true}},
		Env:        []string{"CONFORMANCE"},
	})
	weir.Describe(ext, contract, "What Weir can do from a language.")
	weir.DescribeTopic[Numbers](ext, contract, "conformance.numbers", "Numbers to add.")
	weir.DescribeTopic[Sum](ext, contract, "conformance.out.sum", "Their sums.")
	serve(ext)
	weir.Subscribe(ext, "conformance.in.>", hear)
	weir.Subscribe(ext, "conformance.numbers", func(ctx context.Context, event weir.Event[Numbers]) error {
		_, err := add(ctx, event.Payload)
		return err
	})
	weir.HandleJobs(ext, "conformance-jobs", 1, work)
	ext.OnStart(start)
	ext.OnStop(func(ctx context.Context) error {
		_, err := weir.Publish(ctx, "conformance.out.stopped", []byte("bye"))
		return err
	})
	ext.Run()
}

func serve(ext *weir.Extension) {
	var subscriptions = map[string]*weir.Subscription{}

	weir.Handle(ext, contract, "add", add, weir.Doc("Adds, and publishes the sum."),
		weir.Fails("overflow", "`left` is over 1,000,000."))
	bytes := func(name, doc string, handler func(context.Context, []byte) ([]byte, error)) {
		weir.Handle(ext, contract, name, handler, weir.Doc(doc))
	}
	text := func(name, doc string, words int, handler func(context.Context, ...string) (string, error)) {
		bytes(name, doc, func(ctx context.Context, line []byte) ([]byte, error) {
			given := strings.SplitN(string(line), " ", words)
			if len(given) < words {
				return nil, weir.Errorf("invalid-argument", "not %d words: `%s`", words, line)
			}
			answer, err := handler(ctx, given...)
			return []byte(answer), err
		})
	}
	bytes("echo", "The same bytes.", func(_ context.Context, in []byte) ([]byte, error) { return in, nil })
	text("large", "`N` bytes.", 1, func(_ context.Context, words ...string) (string, error) {
		count, err := strconv.Atoi(words[0])
		return strings.Repeat("x", max(count, 0)), err
	})
	text("relay", "Adds by `tester@1`: `LEFT RIGHT`.", 2, relay)
	text("fail", "Fails: `CODE MESSAGE`.", 2, func(_ context.Context, words ...string) (string, error) {
		return "", weir.Errorf(words[0], "%s", words[1])
	})
	bytes("break", "Panics.", func(context.Context, []byte) ([]byte, error) { return failUnexpectedly(), nil })
	bytes("spin", "Never waits.", func(context.Context, []byte) ([]byte, error) {
		for {
		}
	})
	text("recurse", "Calls itself: `LEVELS`.", 1, func(_ context.Context, words ...string) (string, error) {
		levels, err := strconv.Atoi(words[0])
		if err != nil {
			return "", err
		}
		down(levels)
		for place := range table {
			if table[place] != byte(place) {
				return "overwritten", nil
			}
		}
		return "ok", nil
	})
	text("call", "Calls: `CONTRACT OPERATION PROVIDER MS PAYLOAD`.", 5,
		func(ctx context.Context, words ...string) (string, error) { return outcome(call(ctx, words)) })
	text("send", "Sends, as `call`.", 5, send)
	text("cancel", "Sends, as `call`, and cancels.", 5, cancel)
	text("publish", "Publishes: `TOPIC PAYLOAD`.", 2, func(ctx context.Context, words ...string) (string, error) {
		return counts(weir.Publish(ctx, words[0], []byte(words[1])))
	})
	text("publish-to", "Publishes to one: `EXTENSION TOPIC PAYLOAD`.", 3,
		func(ctx context.Context, words ...string) (string, error) {
			return counts(weir.PublishTo(ctx, words[0], words[1], []byte(words[2])))
		})
	text("subscribe", "Subscribes: `PATTERN`.", 1, func(ctx context.Context, words ...string) (string, error) {
		subscription, err := weir.Listen(ctx, words[0], hear)
		if err == nil {
			subscriptions[words[0]] = subscription
		}
		return outcome("", err)
	})
	text("unsubscribe", "Ends a subscription: `PATTERN`.", 1,
		func(_ context.Context, words ...string) (string, error) {
			subscription, found := subscriptions[words[0]]
			if !found {
				return outcome("", &weir.Error{Case: weir.CaseInvalid, Text: "there is no such subscription"})
			}
			delete(subscriptions, words[0])
			return outcome("", subscription.Unsubscribe())
		})
	text("put", "Puts a job: `QUEUE MS PAYLOAD`.", 3, func(ctx context.Context, words ...string) (string, error) {
		ctx, stop := within(ctx, words[1])
		defer stop()
		_, err := weir.Put(ctx, words[0], []byte(words[2]))
		return outcome("", err)
	})
	text("take", "Takes a job: `QUEUE MS`.", 2, func(ctx context.Context, words ...string) (string, error) {
		ctx, stop := within(ctx, words[1])
		defer stop()
		job, err := weir.Take[[]byte](ctx, words[0])
		if err != nil {
			return outcome("", err)
		}
		return outcome(string(job.Payload), job.Done())
	})
	text("sleep", "Waits: `MS`.", 1, sleep)
	text("context", "`OWN-NAME SENDER REMAINING`.", 1, func(ctx context.Context, _ ...string) (string, error) {
		deadline, _ := ctx.Deadline()
		remaining := strconv.FormatInt(time.Until(deadline).Milliseconds(), 10)
		return weir.OwnName(ctx) + " " + weir.Sender(ctx) + " " + remaining, nil
	})
	text("interrupt", "Declares itself interrupted: `REASON`.", 1,
		func(ctx context.Context, words ...string) (string, error) {
			weir.Interrupted(ctx, words[0])
			return "ok", nil
		})
	text("log", "Logs: `LEVEL TEXT`.", 2, func(ctx context.Context, words ...string) (string, error) {
		levels := map[string]slog.Level{
			"trace": weir.LevelTrace, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn,
			"error": slog.LevelError,
		}
		slog.Log(ctx, levels[words[0]], words[1], "from", "conformance")
		return "ok", nil
	})
	text("config", "A value of the configuration: `KEY`.", 1,
		func(ctx context.Context, words ...string) (string, error) {
			value, found, err := weir.Config(ctx, words[0])
			return optional(value, found), err
		})
	text("env", "A variable of the environment: `NAME`.", 1, func(_ context.Context, words ...string) (string, error) {
		return optional(os.LookupEnv(words[0])), nil
	})
	text("read", "Reads a file: `PATH`.", 1, func(_ context.Context, words ...string) (string, error) {
		content, err := os.ReadFile(words[0])
		return outcome(string(content), err)
	})
	text("write", "Writes a file: `PATH CONTENT`.", 2, func(_ context.Context, words ...string) (string, error) {
		return outcome("", os.WriteFile(words[0], []byte(words[1]), 0o644))
	})
}

func start(ctx context.Context) error {
	if start, _, err := weir.Config(ctx, "start"); err != nil || start == "fail" {
		return weir.Errorf("failed", "asked to fail")
	}
	slog.Info("conformance is ready", "language", "Go")
	return nil
}

func add(ctx context.Context, in Numbers) (Sum, error) {
	if in.Left > 1_000_000 {
		return Sum{}, weir.Errorf("overflow", "`left` is over 1,000,000")
	}
	sum := Sum{in.Left + in.Right}
	if in.Right > math.MaxInt64-max(in.Left, 0) {
		sum.Sum = math.MaxInt64
	}
	_, err := weir.Publish(ctx, "conformance.out.sum", sum)
	return sum, err
}

func relay(ctx context.Context, words ...string) (string, error) {
	left, wrong := strconv.ParseInt(words[0], 10, 64)
	right, alsoWrong := strconv.ParseInt(words[1], 10, 64)
	if wrong != nil || alsoWrong != nil {
		return "", weir.Errorf("invalid-argument", "no numbers")
	}
	sum, err := weir.Call[Sum](ctx, "tester@1", "add", Numbers{left, right})
	return outcome(strconv.FormatInt(sum.Sum, 10), err)
}

var table [4096]byte

func init() {
	for place := range table {
		table[place] = byte(place)
	}
}

//go:noinline
func down(levels int) int {
	var frame [256]byte
	frame[levels%256] = byte(levels)
	if levels == 0 {
		return 0
	}
	return down(levels-1) + int(frame[255])
}

//go:noinline
func failUnexpectedly() []byte { panic("out of cheese") }

func sent(ctx context.Context, words []string) (*weir.Pending[[]byte], error) {
	var options []weir.CallOption
	if words[2] != "-" {
		options = append(options, weir.To(words[2]))
	}
	return weir.Send[[]byte](ctx, words[0], words[1], []byte(words[4]), options...)
}

func call(ctx context.Context, words []string) (string, error) {
	ctx, stop := within(ctx, words[3])
	defer stop()
	pending, err := sent(ctx, words)
	if err != nil {
		return "", err
	}
	answer, err := pending.Wait()
	return string(answer), err
}

func send(ctx context.Context, words ...string) (string, error) {
	// The context of a request ends with its answer.
	ctx = context.WithoutCancel(ctx)
	go func() {
		line, _ := outcome(call(ctx, words))
		if _, err := weir.Publish(ctx, "conformance.out.response", []byte(line)); err != nil {
			slog.Error("the response is not told", "error", err)
		}
	}()
	return "ok", nil
}

func cancel(ctx context.Context, words ...string) (string, error) {
	within, stop := within(ctx, words[3])
	defer stop()
	pending, err := sent(within, words)
	if err != nil {
		return outcome("", err)
	}
	select {
	case <-pending.Done():
		answer, err := pending.Wait()
		return outcome(string(answer), err)
	case <-time.After(50 * time.Millisecond):
		pending.Cancel()
		return "ok", nil
	}
}

func sleep(ctx context.Context, words ...string) (string, error) {
	ms, err := strconv.Atoi(words[0])
	if err != nil {
		return "", weir.Errorf("invalid-argument", "no number")
	}
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
	case <-ctx.Done():
		return "", ctx.Err()
	}
	_, err = weir.Publish(ctx, "conformance.out.slept", []byte(words[0]))
	return "", err
}

func hear(ctx context.Context, event weir.Event[[]byte]) error {
	kind := "new"
	if event.Retained {
		kind = "retained"
	}
	line := strings.Join([]string{
		event.Topic, strconv.FormatUint(event.Sequence, 10), strconv.FormatUint(event.Lost, 10), kind,
		weir.Sender(ctx), string(event.Payload),
	}, " ")
	_, err := weir.Publish(ctx, "conformance.out.heard", []byte(line))
	return err
}

func work(ctx context.Context, job *weir.Job[[]byte]) error {
	switch string(job.Payload) {
	case "fail":
		return weir.Errorf("failed", "asked to fail")
	case "die":
		os.Exit(1)
	case "ready":
		weir.Ready(ctx)
	default:
		_, err := weir.Publish(ctx, "conformance.out.worked", job.Payload)
		return err
	}
	return nil
}
