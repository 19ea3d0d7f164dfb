//! Requests: arguments, answers, and many at once.

#![expect(clippy::unused_async, reason = "handlers are async, whether they wait or not")]

use std::{
    cell::{Cell, RefCell},
    future::{poll_fn, ready},
    pin::pin,
    task::Poll,
    time::Duration,
};

use weir_sdk::{
    CallOptions, Context, Contract, Empty, Error, Extension, Operation, codec::Bytes, testing::Harness,
};

const SLOW: Contract = Contract::new("slow@1");
const SLEEP: Operation<u64, u64> = SLOW.operation("sleep");

const PROXY: Contract = Contract::new("proxy@1");
/// Calls `slow@1` with the same argument.
const FORWARD: Operation<u64, u64> = PROXY.operation("forward");
/// Answers by itself.
const DOUBLE: Operation<u64, u64> = PROXY.operation("double");
const GIVE_UP: Operation<Empty, Empty> = PROXY.operation("give-up");
/// Milliseconds left, at first and after a second.
const REMAINING: Operation<Empty, (u128, u128)> = PROXY.operation("remaining");
/// Waits without end.
const HANG: Operation<Empty, Empty> = PROXY.operation("hang");
/// The number of `hang` handlers that were dropped.
const HANGS_ENDED: Operation<Empty, u32> = PROXY.operation("hangs-ended");
const BYTES: Operation<Vec<u8>, Vec<u8>, Bytes> = PROXY.bytes("bytes");
const SENDER: Operation<Empty, Option<String>> = PROXY.operation("sender");

weir_sdk::manifest! { id: "proxy", fulfills: &[PROXY], requires: &[SLOW] }

#[derive(Default)]
struct Proxy {
    hangs_ended: Cell<u32>,
}

impl Proxy {
    async fn forward(&self, ctx: &Context, ms: u64) -> Result<u64, Error> {
        ctx.call(SLEEP, &ms).await
    }

    async fn double(&self, _: &Context, number: u64) -> Result<u64, Error> {
        number.checked_mul(2).ok_or_else(|| Error::handler("too-much", number))
    }

    async fn give_up(&self, ctx: &Context, _: Empty) -> Result<Empty, Error> {
        let mut call = pin!(ctx.call(SLEEP, &1000));
        poll_fn(|cx| {
            assert!(call.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        Ok(Empty {})
    }

    async fn remaining(&self, ctx: &Context, _: Empty) -> Result<(u128, u128), Error> {
        let remaining = || ctx.remaining().unwrap_or_default().as_millis();
        let at_first = remaining();
        ctx.sleep(Duration::from_secs(1)).await;
        Ok((at_first, remaining()))
    }

    async fn hang(&self, _: &Context, _: Empty) -> Result<Empty, Error> {
        struct Ended<'a>(&'a Cell<u32>);
        impl Drop for Ended<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let _ended = Ended(&self.hangs_ended);
        std::future::pending().await
    }
}

fn harness() -> Harness {
    let extension = Extension::new(MANIFEST, Proxy::default())
        .on(FORWARD, Proxy::forward)
        .on(DOUBLE, Proxy::double)
        .on(GIVE_UP, Proxy::give_up)
        .on(REMAINING, Proxy::remaining)
        .on(HANG, Proxy::hang)
        .on(HANGS_ENDED, async |proxy: &Proxy, _: &Context, _| Ok(proxy.hangs_ended.get()))
        .on(BYTES, async |_: &Proxy, _: &Context, bytes| Ok(bytes))
        .on(SENDER, async |_: &Proxy, ctx: &Context, _| Ok(ctx.sender()));
    let main = Harness::new(extension);
    let clock = main.clock();
    main.fake(SLEEP, async move |ms| {
        clock.sleep(Duration::from_millis(ms)).await;
        Ok(ms)
    });
    main
}

#[test]
fn a_handler_that_waits_for_another_contract_does_not_delay_other_requests() {
    let main = harness();
    let slow = main.send(FORWARD, &1000, None).unwrap();
    for number in 0..100 {
        assert_eq!(main.call(DOUBLE, &number), Ok(2 * number));
    }
    assert_eq!(main.clock().now(), Duration::ZERO);
    assert!(!slow.is_answered());
    assert_eq!(slow.wait(), Ok(1000));
    assert_eq!(main.clock().now(), Duration::from_secs(1));
}

#[test]
fn a_thousand_requests_at_once_get_each_its_own_answer() {
    let main = harness();
    let requests: Vec<_> = (0..1000).map(|ms| main.send(FORWARD, &(1000 - ms), None).unwrap()).collect();
    assert_eq!(main.calls_under_way(), 1000);
    for (ms, request) in (0..1000).zip(requests) {
        assert_eq!(request.wait(), Ok(1000 - ms));
    }
    assert_eq!(main.calls_under_way(), 0);
}

#[test]
fn arguments_that_do_not_decode_are_refused_with_the_reason() {
    let main = harness();
    let refused = main.send_bytes(DOUBLE, b"\"two\"", None).unwrap().wait().unwrap_err();
    assert_eq!(refused.code(), "invalid-argument");
    assert!(refused.to_string().contains("expected u64"), "{refused}");
    let refused = main.send_bytes(DOUBLE, b"", None).unwrap().wait().unwrap_err();
    assert_eq!(refused.code(), "invalid-argument");
}

#[test]
fn arguments_may_be_left_out_where_there_are_none() {
    assert_eq!(harness().send_bytes(SENDER, b"", None).unwrap().wait(), Ok(Some("test".to_owned())));
}

#[test]
fn bytes_travel_as_they_are() {
    let bytes = b"\0\xff{".to_vec();
    assert_eq!(harness().call(BYTES, &bytes), Ok(bytes));
}

#[test]
fn a_handlers_own_error_reaches_its_caller() {
    let error = harness().call(DOUBLE, &u64::MAX).unwrap_err();
    assert_eq!(error, Error::handler("too-much", u64::MAX));
}

#[test]
fn an_error_of_a_nested_call_is_passed_on_under_its_own_code() {
    let main = harness();
    let errors = [
        (Error::Trapped, "trapped"),
        (Error::NoProvider("slow".to_owned()), "no-provider"),
        (Error::WouldDeadlock(vec!["a".to_owned(), "b".to_owned()]), "would-deadlock"),
        (Error::handler("broken", "no"), "broken"),
    ];
    for (error, code) in errors {
        main.fake(SLEEP, move |_| ready(Err(error.clone())));
        let passed_on = main.call(FORWARD, &1).unwrap_err();
        assert!(matches!(passed_on, Error::Handler(_)));
        assert_eq!(passed_on.code(), code);
    }
}

#[test]
fn a_call_that_is_dropped_is_cancelled() {
    let main = harness();
    assert_eq!(main.call(GIVE_UP, &Empty {}), Ok(Empty {}));
    assert_eq!(main.calls_under_way(), 0);
    assert_eq!(main.clock().now(), Duration::ZERO);
}

#[test]
fn a_nested_call_has_no_more_time_than_the_request_it_is_made_for() {
    let main = harness();
    let request = main.send(FORWARD, &4000, Some(Duration::from_secs(1))).unwrap();
    assert_eq!(request.wait().unwrap_err().code(), "timeout");
    assert_eq!(main.clock().now(), Duration::from_secs(1));
    assert_eq!(main.calls_under_way(), 0);
}

#[test]
fn a_call_can_have_a_shorter_time_of_its_own() {
    const QUICK: Contract = Contract::new("quick@1");
    const TRY: Operation<Empty, u64> = QUICK.operation("try");
    weir_sdk::manifest! { id: "quick", fulfills: &[QUICK], wants: &[SLOW] }

    let extension = Extension::new(MANIFEST, ()).on(TRY, async |(), ctx: &Context, _| {
        let options = CallOptions::new().timeout(Duration::from_millis(10)).provider("slow");
        ctx.call_with(SLEEP, &1000, options).await
    });
    let main = Harness::new(extension);
    let clock = main.clock();
    main.fake(SLEEP, async move |ms| {
        clock.sleep(Duration::from_millis(ms)).await;
        Ok(ms)
    });
    assert_eq!(main.call(TRY, &Empty {}).unwrap_err().code(), "timeout");
    assert_eq!(main.clock().now(), Duration::from_millis(10));
}

#[test]
fn what_is_done_within_a_time_takes_no_longer() {
    const HASTY: Contract = Contract::new("hasty@1");
    const TRY: Operation<u64, u64> = HASTY.operation("try");
    weir_sdk::manifest! { id: "hasty", fulfills: &[HASTY], wants: &[SLOW] }

    let extension = Extension::new(MANIFEST, ()).on(TRY, async |(), ctx: &Context, ms| {
        let hasty = ctx.within(Duration::from_millis(10));
        assert_eq!((hasty.sender(), hasty.remaining()), (ctx.sender(), ctx.remaining()));
        hasty.call(SLEEP, &ms).await
    });
    let main = Harness::new(extension);
    let clock = main.clock();
    main.fake(SLEEP, async move |ms| {
        clock.sleep(Duration::from_millis(ms)).await;
        Ok(ms)
    });
    assert_eq!(main.call(TRY, &9), Ok(9));
    assert_eq!(main.call(TRY, &1000).unwrap_err().code(), "timeout");
    assert_eq!(main.clock().now(), Duration::from_millis(19));
}

#[test]
fn the_time_that_is_left_shrinks_as_it_passes() {
    let main = harness();
    let request = main.send(REMAINING, &Empty {}, Some(Duration::from_millis(2500))).unwrap();
    assert_eq!(request.wait(), Ok((2500, 1500)));
}

#[test]
fn a_handler_past_its_deadline_is_dropped_where_it_waits() {
    let main = harness();
    let long = main.send(HANG, &Empty {}, Some(Duration::from_secs(9))).unwrap();
    let short = main.send(HANG, &Empty {}, Some(Duration::from_secs(2))).unwrap();
    main.advance(Duration::from_secs(1));
    assert_eq!(main.call(HANGS_ENDED, &Empty {}), Ok(0));
    assert_eq!(short.wait(), Err(Error::Timeout));
    assert_eq!(main.call(HANGS_ENDED, &Empty {}), Ok(1));
    assert_eq!(long.wait(), Err(Error::Timeout));
    assert_eq!(main.call(HANGS_ENDED, &Empty {}), Ok(2));
    assert_eq!(main.clock().now(), Duration::from_secs(9));
}

#[test]
fn an_answer_that_is_too_large_is_answered_with_that() {
    let main = harness();
    main.message_size(16);
    assert_eq!(main.call(BYTES, &vec![0; 16]), Ok(vec![0; 16]));
    assert_eq!(main.call(BYTES, &vec![0; 17]).unwrap_err().code(), "too-large");
}

#[test]
fn the_sender_is_whom_main_names() {
    let main = harness();
    assert_eq!(main.call(SENDER, &Empty {}), Ok(Some("test".to_owned())));
    main.sender("settings");
    assert_eq!(main.call(SENDER, &Empty {}), Ok(Some("settings".to_owned())));
}

#[test]
fn an_operation_without_a_handler_is_unknown_to_the_caller() {
    const OTHER: Operation<Empty, Empty> = PROXY.operation("other");
    let error = harness().call(OTHER, &Empty {}).unwrap_err();
    assert_eq!(error, Error::Invalid("`proxy@1` has no operation `other`".to_owned()));
}

#[test]
fn handlers_can_wait_for_each_other() {
    const GATE: Contract = Contract::new("gate@1");
    const PASS: Operation<Empty, Empty> = GATE.operation("pass");
    const OPEN: Operation<Empty, Empty> = GATE.operation("open");
    weir_sdk::manifest! { id: "gate", fulfills: &[GATE] }

    #[derive(Default)]
    struct Gate {
        open: Cell<bool>,
        waiting: RefCell<Vec<std::task::Waker>>,
    }

    let extension = Extension::new(MANIFEST, Gate::default())
        .on(PASS, async |gate: &Gate, _: &Context, _| {
            poll_fn(|cx| {
                if gate.open.get() {
                    return Poll::Ready(());
                }
                gate.waiting.borrow_mut().push(cx.waker().clone());
                Poll::Pending
            })
            .await;
            Ok(Empty {})
        })
        .on(OPEN, async |gate: &Gate, _: &Context, _| {
            gate.open.set(true);
            gate.waiting.take().into_iter().for_each(std::task::Waker::wake);
            Ok(Empty {})
        });
    let main = Harness::new(extension);
    let pass = main.send(PASS, &Empty {}, None).unwrap();
    assert!(!pass.is_answered());
    main.call(OPEN, &Empty {}).unwrap();
    assert!(pass.is_answered());
    assert_eq!(pass.wait(), Ok(Empty {}));
}
