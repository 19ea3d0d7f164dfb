//! A program that knows `wasi:keyvalue@0.2.0-draft` and nothing of Weir. It obeys the lines of `DO`, and prints what
//! came of each.

#![expect(clippy::print_stdout, reason = "what it prints is what it has found")]

use std::{env, process::ExitCode};

use keyvalue_guest::draft::wasi::keyvalue::{
    atomics, batch,
    store::{self, Bucket, Error},
};

fn main() -> ExitCode {
    let tasks = env::var("DO").unwrap_or_default();
    for task in tasks.split(';').map(str::trim).filter(|task| !task.is_empty()) {
        match obey(task) {
            Ok(said) => println!("{said}"),
            Err(error) => println!("error: {}", shown(&error)),
        }
    }
    ExitCode::SUCCESS
}

fn shown(error: &Error) -> String {
    match error {
        Error::NoSuchStore => "no-such-store".to_owned(),
        Error::AccessDenied => "access-denied".to_owned(),
        Error::Other(text) => format!("other: {text}"),
    }
}

fn obey(task: &str) -> Result<String, Error> {
    let mut words = task.split(' ');
    let (what, name) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (key, value) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let bucket = store::open(name)?;
    let number = || value.parse::<u64>().map_err(|error| Error::Other(error.to_string()));
    Ok(match what {
        "open" => "opened".to_owned(),
        "get" => bucket.get(key)?.map_or("none".to_owned(), |value| text(&value)),
        "set" => done(&bucket.set(key, value.as_bytes())?),
        "set-large" => done(&bucket.set(key, &vec![7; usize::try_from(number()?).unwrap_or(usize::MAX)])?),
        "long-key" => done(&bucket.set(&"k".repeat(usize::try_from(number()?).unwrap_or(usize::MAX)), b"v")?),
        "long-name" => store::open(&"n".repeat(usize::try_from(number()?).unwrap_or(usize::MAX)))
            .map(|_| "opened".to_owned())?,
        "delete" => done(&bucket.delete(key)?),
        "exists" => bucket.exists(key)?.to_string(),
        "increment" => atomics::increment(&bucket, key, number()?)?.to_string(),
        "list" => format!("{:?}", list(&bucket)?),
        "list-while-deleting" => list_while_deleting(&bucket)?,
        "bad-cursor" => bucket.list_keys(Some(77))?.keys.join(","),
        "fill" => fill(&bucket, key.parse().unwrap_or_default())?,
        "many" => many(&bucket)?,
        "batch" => batch_of(&bucket, key.parse().unwrap_or_default())?,
        "open-many" => open_many(name),
        // For ever: its fuel, its share or its time ends it.
        "flood" => loop {
            bucket.set(key, value.as_bytes())?;
        },
        other => return Err(Error::Other(format!("it knows no `{other}`"))),
    })
}

fn list(bucket: &Bucket) -> Result<Vec<String>, Error> {
    let (mut keys, mut cursor) = (Vec::new(), None);
    loop {
        let page = bucket.list_keys(cursor)?;
        keys.extend(page.keys);
        cursor = page.cursor;
        if cursor.is_none() {
            return Ok(keys);
        }
    }
}

/// Deletes every second key of each page before it asks for the next: each must still come once.
fn list_while_deleting(bucket: &Bucket) -> Result<String, Error> {
    let (mut seen, mut deleted, mut cursor) = (0, 0, None);
    loop {
        let page = bucket.list_keys(cursor)?;
        seen += page.keys.len();
        for key in page.keys.iter().rev().step_by(2) {
            bucket.delete(key)?;
            deleted += 1;
        }
        cursor = page.cursor;
        if cursor.is_none() {
            return Ok(format!("{seen} seen, {deleted} deleted, {} left", list(bucket)?.len()));
        }
    }
}

fn fill(bucket: &Bucket, number: usize) -> Result<String, Error> {
    let all: Vec<_> = (0..number).map(|number| (format!("{number:06}"), Vec::new())).collect();
    for part in all.chunks(1000) {
        batch::set_many(bucket, part)?;
    }
    Ok(done(&()))
}

fn many(bucket: &Bucket) -> Result<String, Error> {
    let pairs = [("a".to_owned(), vec![1]), ("b".to_owned(), vec![2])];
    batch::set_many(bucket, &pairs)?;
    let keys = ["b", "none", "a"].map(str::to_owned);
    let found = batch::get_many(bucket, &keys)?;
    batch::delete_many(bucket, &keys)?;
    Ok(format!("{found:?}, then {:?}", list(bucket)?))
}

fn batch_of(bucket: &Bucket, number: usize) -> Result<String, Error> {
    let keys: Vec<_> = (0..number).map(|number| number.to_string()).collect();
    Ok(batch::get_many(bucket, &keys)?.len().to_string())
}

fn open_many(name: &str) -> String {
    let mut open = Vec::new();
    loop {
        match store::open(name) {
            Ok(bucket) => open.push(bucket),
            Err(error) => {
                let said = format!("{} are open: {}", open.len(), shown(&error));
                drop(open);
                return format!(
                    "{said}; then {}",
                    store::open(name).map_or_else(|e| shown(&e), |_| "one".into())
                );
            }
        }
    }
}

fn text(value: &[u8]) -> String {
    if value.len() > 100 {
        return format!("{} bytes", value.len());
    }
    String::from_utf8(value.to_vec()).unwrap_or_else(|_| format!("{value:?}"))
}

fn done(_: &impl Sized) -> String {
    "done".to_owned()
}
