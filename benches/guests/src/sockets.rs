//! Sends a byte through each of many sockets and receives it back, again and again, while it receives
//! messages.

use std::process::ExitCode;

#[cfg(target_family = "wasm")]
mod pinger {
    use std::{cell::RefCell, net::SocketAddr, str::FromStr};

    use futures_util::future::try_join_all;
    use weir_sdk::{
        Context, Error, Event, Extension, Topic,
        wstd::{
            io::{AsyncRead as _, AsyncWrite as _},
            net::TcpStream,
        },
    };

    /// Starts this many exchanges on each socket.
    const GO: Topic<u32> = Topic::new("go");

    /// All have ended, or the error.
    const DONE: Topic<Option<String>> = Topic::new("done");

    weir_sdk::manifest! { id: "sockets", subscribes: &[GO.pattern()], publishes: &[DONE.pattern()] }

    #[derive(Default)]
    struct Pinger(RefCell<Vec<TcpStream>>);

    pub(super) fn extension() -> Extension<impl Sized + 'static> {
        Extension::new(MANIFEST, Pinger::default()).on_start(Pinger::connect).on_event(GO, Pinger::go)
    }

    impl Pinger {
        async fn connect(&self, context: &Context) -> Result<(), Error> {
            let address: SocketAddr = configured(context, "address")?;
            let sockets: u32 = configured(context, "sockets")?;
            let connected = try_join_all((0..sockets).map(|_| TcpStream::connect_addr(address)));
            let connected = connected.await.map_err(|error| Error::handler("connect", error.to_string()))?;
            self.0.replace(connected);
            Ok(())
        }

        async fn go(&self, context: &Context, event: Event<u32>) -> Result<(), Error> {
            let mut sockets = self.0.take();
            let outcome =
                try_join_all(sockets.iter_mut().map(|socket| exchange(socket, event.payload))).await;
            self.0.replace(sockets);
            context.publish(DONE, &outcome.err())?;
            Ok(())
        }
    }

    /// This many round trips of one byte.
    async fn exchange(socket: &mut TcpStream, exchanges: u32) -> Result<(), String> {
        for number in 0..exchanges {
            let [said, ..] = number.to_le_bytes();
            let mut heard = [!said];
            socket.write_all(&[said]).await.map_err(|error| error.to_string())?;
            let read = socket.read(&mut heard).await.map_err(|error| error.to_string())?;
            if read != 1 || heard != [said] {
                return Err(format!("exchange {number} brought something else back"));
            }
        }
        Ok(())
    }

    fn configured<T: FromStr>(context: &Context, key: &str) -> Result<T, Error> {
        let value = context.config(key)?.and_then(|value| value.parse().ok());
        value.ok_or_else(|| Error::handler("config", format!("no `{key}`")))
    }
}

#[cfg(target_family = "wasm")]
fn main() -> ExitCode {
    pinger::extension().run()
}

#[cfg(not(target_family = "wasm"))]
fn main() -> ExitCode {
    ExitCode::FAILURE
}
