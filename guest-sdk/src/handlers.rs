//! The handlers of an extension, without their types.

use std::rc::Rc;

use futures_util::future::LocalBoxFuture;

use crate::{Context, Error, Event};

/// Answers one request.
pub(crate) type RequestHandler =
    Rc<dyn Fn(Context, Vec<u8>) -> LocalBoxFuture<'static, Result<Vec<u8>, Error>>>;

/// Takes note of one event.
pub(crate) type EventHandler =
    Rc<dyn Fn(Context, Event<Vec<u8>>) -> LocalBoxFuture<'static, Result<(), Error>>>;

/// Works on one job.
pub(crate) type JobHandler = Rc<dyn Fn(Context, Vec<u8>) -> LocalBoxFuture<'static, Result<(), Error>>>;

/// Runs once.
pub(crate) type Hook = Box<dyn FnOnce(Context) -> LocalBoxFuture<'static, Result<(), Error>>>;
