//! The handlers of an extension, without their types.

use std::rc::Rc;

use futures_util::future::LocalBoxFuture;

use crate::{Context, Error, Event};

pub(crate) type RequestHandler =
    Rc<dyn Fn(Context, Vec<u8>) -> LocalBoxFuture<'static, Result<Vec<u8>, Error>>>;

pub(crate) type EventHandler =
    Rc<dyn Fn(Context, Event<Vec<u8>>) -> LocalBoxFuture<'static, Result<(), Error>>>;

pub(crate) type JobHandler = Rc<dyn Fn(Context, Vec<u8>) -> LocalBoxFuture<'static, Result<(), Error>>>;

pub(crate) type Hook = Box<dyn FnOnce(Context) -> LocalBoxFuture<'static, Result<(), Error>>>;
