//! The macro that declares a contract and describes it.

/// Declares a contract: its name, operations, topics and queues, for its provider and its callers.
///
/// Defines a constant for each: a [`Contract`](crate::Contract), and any number of
/// [`Operation`](crate::Operation), [`Topic`](crate::Topic) and [`Queue`](crate::Queue). Together they are the
/// contract's description. [`manifest!`](crate::manifest!) puts it into the finished component, where
/// `weir describe` finds it. The description takes no memory of the running program.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use weir_sdk::{Empty, Shape};
///
/// weir_sdk::contract! {
///     /// Notes that people leave for each other.
///     pub const NOTES = "notes@1";
///
///     /// A note.
///     pub const GET: fn(Id) -> Note = "get", errors { "not-found": "No note has this number." };
///     /// Adds a note.
///     pub const ADD: fn(Note) -> Id = "add";
///     /// All notes, compressed by the client.
///     pub const ARCHIVE: fn(bytes) -> bytes = "archive";
///
///     /// Notes, as they are added.
///     pub const ADDED: topic(Note) = "notes.added";
///
///     /// Notes to print.
///     pub const PRINTS: queue(Note) = "prints";
/// }
///
/// /// The number of a note.
/// #[derive(Serialize, Deserialize, Shape)]
/// #[serde(deny_unknown_fields)]
/// pub struct Id {
///     /// The number, from 1.
///     pub id: u32,
/// }
///
/// /// A note.
/// #[derive(Serialize, Deserialize, Shape)]
/// pub struct Note {
///     /// Its text.
///     pub text: String,
/// }
///
/// # fn main() {
/// assert_eq!(GET.to_string(), "notes@1 get");
/// # }
/// ```
///
/// Arguments, results, events and jobs are JSON of a type that implements [`Shape`](trait@crate::Shape), or
/// `bytes`. A type without a description does not compile:
///
/// ```compile_fail,E0277
/// pub struct Note;
///
/// weir_sdk::contract! {
///     pub const NOTES = "notes@1";
///     pub const ADD: fn(Note) -> weir_sdk::Empty = "add";
/// }
/// # fn main() {}
/// ```
///
/// Two different types of one name do not compile either, since callers in other languages could not tell them apart:
///
/// ```compile_fail,E0080
/// mod other {
///     #[derive(weir_sdk::Shape)]
///     pub struct Note(String);
/// }
///
/// #[derive(weir_sdk::Shape)]
/// pub struct Note(String);
///
/// weir_sdk::contract! {
///     pub const NOTES = "notes@1";
///     pub const CONVERT: fn(Note) -> other::Note = "convert";
/// }
/// # fn main() {}
/// ```
///
/// Arguments and result of an operation are either both bytes, or neither is:
///
/// ```compile_fail,E0308
/// weir_sdk::contract! {
///     pub const NOTES = "notes@1";
///     pub const COMPRESS: fn(bytes) -> String = "compress";
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! contract {
    (
        $(#[doc = $doc:literal])*
        $vis:vis const $contract:ident = $name:literal;
        $(
            $(#[doc = $item_doc:literal])*
            $item_vis:vis const $item:ident: $kind:ident($($input:tt)*) $(-> $output:ty)? = $item_name:literal
            $(, errors { $($code:literal: $meaning:literal),* $(,)? })?;
        )*
    ) => {
        $(#[doc = $doc])*
        $vis const $contract: $crate::Contract = {
            const DESCRIPTION: &$crate::Description = &$crate::Description {
                doc: &[$($doc),*],
                items: &[$(
                    $crate::__described!(
                        $item_name, &[$($item_doc),*], [$($(($code, $meaning)),*)?],
                        $kind($($input)*) $(-> $output)?
                    ),
                )*],
            };
            $crate::Contract::new($name).described(DESCRIPTION)
        };
        // A contract that cannot be described is refused here, rather than where it is first used.
        #[allow(long_running_const_eval, reason = "the compiler takes about a second to describe a large contract")]
        const _: () = $contract.check_description();
        $(
            $crate::__constant!(
                [
                    $(#[doc = $item_doc])*
                    $(#[doc = concat!("\n# Error codes\n", $("- `", $code, "`: ", $meaning, "\n"),*)])?
                    $item_vis const $item
                ]
                $contract, $item_name,
                $kind($($input)*) $(-> $output)?
            );
        )*
    };
}

/// An item of a contract's description.
#[doc(hidden)]
#[macro_export]
macro_rules! __described {
    ($name:literal, $doc:expr, [$($errors:tt)*], fn($($arguments:tt)*) -> $result:ty) => {
        $crate::__private::Item::Operation {
            name: $name,
            doc: $doc,
            arguments: $crate::__payload!($($arguments)*),
            result: $crate::__payload!($($arguments)*; $result),
            errors: &[$($errors)*],
        }
    };
    ($name:literal, $doc:expr, [], topic($($payload:tt)*)) => {
        $crate::__private::Item::Topic { name: $name, doc: $doc, payload: $crate::__payload!($($payload)*) }
    };
    ($name:literal, $doc:expr, [], queue($($payload:tt)*)) => {
        $crate::__private::Item::Queue { name: $name, doc: $doc, payload: $crate::__payload!($($payload)*) }
    };
    ($($other:tt)*) => {
        compile_error!(
            "expected `fn(ARGUMENTS) -> RESULT = \"name\"`, which can have `errors`, or `topic(EVENT)` or \
             `queue(JOB)`, which cannot"
        )
    };
}

/// The description of a payload, or, with arguments and `;` before it, of a result.
#[doc(hidden)]
#[macro_export]
macro_rules! __payload {
    (bytes $(; $result:ty)?) => {
        $crate::__private::Payload::Bytes
    };
    ($type:ty) => {
        $crate::__private::Payload::Json(<$type as $crate::Shape>::SCHEMA)
    };
    ($arguments:ty; $result:ty) => {
        $crate::__private::Payload::Json(<$result as $crate::Shape>::SCHEMA)
    };
    ($($other:tt)*) => {
        compile_error!("expected one type, or `bytes`")
    };
}

/// The constant of an operation, a topic or a queue.
#[doc(hidden)]
#[macro_export]
macro_rules! __constant {
    ([$($declaration:tt)*] $contract:ident, $name:literal, fn(bytes) -> $result:ty) => {
        $($declaration)*: $crate::Operation<
            ::std::vec::Vec<u8>,
            ::std::vec::Vec<u8>,
            $crate::codec::Bytes,
        > = $contract.bytes($name);

        // This does not compile unless the result is `bytes`, too.
        const _: () = {
            #[expect(non_camel_case_types, reason = "authors write `bytes` in the macro")]
            struct bytes;
            let _: fn(bytes) -> $result = |bytes| bytes;
        };
    };
    ([$($declaration:tt)*] $contract:ident, $name:literal, fn($arguments:ty) -> $result:ty) => {
        $($declaration)*: $crate::Operation<$arguments, $result> = $contract.operation($name);
    };
    ([$($declaration:tt)*] $contract:ident, $name:literal, topic(bytes)) => {
        $($declaration)*: $crate::Topic<::std::vec::Vec<u8>, $crate::codec::Bytes> =
            $crate::Topic::bytes($name);
    };
    ([$($declaration:tt)*] $contract:ident, $name:literal, topic($payload:ty)) => {
        $($declaration)*: $crate::Topic<$payload> = $crate::Topic::new($name);
    };
    ([$($declaration:tt)*] $contract:ident, $name:literal, queue(bytes)) => {
        $($declaration)*: $crate::Queue<::std::vec::Vec<u8>, $crate::codec::Bytes> =
            $crate::Queue::bytes($name);
    };
    ([$($declaration:tt)*] $contract:ident, $name:literal, queue($payload:ty)) => {
        $($declaration)*: $crate::Queue<$payload> = $crate::Queue::new($name);
    };
    // An invalid item has no constant here, because `__described` reports it.
    ($($other:tt)*) => {};
}
