//! Names and types that are hard to say.
//!
//! ``
//! panic!("*/ and \"\"\" and \u{202e}")
//! ``
//! indented()
//! >> import os
//!
//! Written by `weir generate rust --for extension` from `odd.things@2`: changes here do not last.

#![allow(dead_code, reason = "a contract has more than one program uses")]

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

weir_sdk::contract! {
    /// Names and types that are hard to say.
    ///
    /// ``
    /// panic!("*/ and \"\"\" and \u{202e}")
    /// ``
    /// indented()
    /// >> import os
    pub const CONTRACT = "odd.things@2";

    /// Keywords.
    pub const TYPE: fn(Self2) -> Kind = "type", errors {
        "*/ \"`": "The code is odd.",
        "plain": "",
    };
    pub const LIST: fn(Vec<Pair>) -> Vec<Node> = "list";
    pub const STR: fn(Option<String>) -> BTreeMap<String, Kind> = "str";
    pub const CONSTRUCTOR: fn(ConstructorKind) -> ConstructorResult = "constructor";
    pub const _2ND_SELF: fn(bytes) -> bytes = "2nd.Self";
    /// Takes nothing, strictly.
    pub const NOTHING: fn(Nothing) -> () = "nothing";
    pub const NEVER: fn(weir_sdk::Empty) -> Nobody = "never";

    /// Moves.
    pub const MOVED: topic(Shape) = "odd.things.*.moved.>";
    pub const PICTURES: topic(bytes) = "pictures";
    pub const EVENTS: topic(Events) = "odd.things.*";

    /// Work.
    pub const JOBS: queue(Shape) = "jobs";
    pub const RAW_JOBS: queue(bytes) = "raw-jobs";
}

/// Arguments of `type`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
#[serde(deny_unknown_fields)]
pub struct Self2 {
    /// A keyword of Rust.
    pub r#type: Kind,
    /// A keyword of Python and JavaScript.
    pub class: Vec<String>,
    #[serde(rename = "self", skip_serializing_if = "Option::is_none")]
    #[shape(as = "String")]
    pub self_: Option<String>,
    #[serde(rename = "größe", skip_serializing_if = "Option::is_none")]
    pub gr_e: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub _answer: Option<serde_json::Value>,
    #[serde(rename = "$base64", skip_serializing_if = "Option::is_none")]
    #[shape(as = "Tree")]
    pub base64: Option<Tree>,
}

/// Arguments of `constructor`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
pub struct ConstructorKind {
    pub inner: ConstructorKindInner,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
pub struct ConstructorKindInner {
    pub deep: ConstructorKindInnerDeep,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
pub struct ConstructorKindInnerDeep {
    #[serde(rename = "x y", skip_serializing_if = "Option::is_none")]
    #[shape(as = "f64")]
    pub x_y: Option<f64>,
}

/// Arguments of `nothing`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, weir_sdk::Shape)]
pub enum Kind {
    #[serde(rename = "self")]
    Self2,
    #[serde(rename = "Self")]
    Self3,
    #[serde(rename = "1st")]
    _1st,
    #[serde(rename = "")]
    Unnamed,
    #[serde(rename = "a b")]
    AB,
    None,
    /// Not Latin.
    #[serde(rename = "größer")]
    GrEr,
    /// A value of a later version of the contract. It is not to be sent.
    #[serde(other)]
    Other,
}

/// A tree with its parts inside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
#[serde(deny_unknown_fields)]
pub struct Node {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<Box<Node>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[shape(as = "Box<Node>")]
    pub right: Option<Box<Node>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[shape(as = "NodeParent")]
    pub parent: Option<NodeParent>,
    pub children: Vec<Node>,
    pub value: Value,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
pub struct NodeParent {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[shape(as = "Box<Node>")]
    pub node: Option<Box<Node>>,
}

/// A list of such lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
pub struct Tree(pub Vec<Tree>);

pub type Pair = (f32, char);

/// Time.
pub type Seconds = u64;

/// By a field with its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Shape {
    /// Round.
    Circle {
        /// From the middle.
        radius: f64,
    },
    GroupOf {
        content: Vec<Shape>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[shape(as = "Seconds")]
        r#for: Option<Seconds>,
    },
    None,
    /// A value of a later version of the contract. It is not to be sent.
    #[serde(other)]
    Other,
}

/// By its only field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
#[serde(rename_all = "lowercase")]
pub enum Move {
    Stay,
    Leave,
    /// By so much.
    By(Pair),
    To {
        x: i32,
        y: i32,
    },
    Then(Box<Move>),
    Both(Box<Move>, bool),
}

/// By nothing but its JSON.
pub type Value = Option<ValueValue>;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ValueValue {
    Integer(i64),
    Number(f64),
    Auto(ValueValueAuto),
    Value7(i64),
    ValueTrue(bool),
    ValueList([Box<Value>; 3]),
    Move(Move),
    Object(ValueValueObject),
    BooleanList(Vec<Option<bool>>),
}

impl weir_sdk::Shape for ValueValue {
    const SCHEMA: &'static weir_sdk::shape::Schema = &weir_sdk::shape::Schema::Any;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, weir_sdk::Shape)]
#[serde(rename_all = "lowercase")]
pub enum ValueValueAuto {
    Auto,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
pub struct ValueValueObject {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[shape(as = "String")]
    pub __odd: Option<String>,
    /// Has a space.
    #[serde(rename = "no name")]
    pub no_name: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Nobody {}

impl weir_sdk::Shape for Nobody {
    const SCHEMA: &'static weir_sdk::shape::Schema = &weir_sdk::shape::Schema::Any;
}

/// Any JSON.
pub type Anything = serde_json::Value;

pub type Maybe = Option<weir_sdk::Empty>;

/// Has the name of something else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
pub struct Event {
    pub r#const: EventConst,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[shape(as = "Promise")]
    pub promise: Option<Promise>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, weir_sdk::Shape)]
#[serde(rename_all = "lowercase")]
pub enum EventConst {
    Only,
}

pub type Promise = BTreeMap<String, Anything>;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, weir_sdk::Shape)]
pub struct ConstructorResult {
    pub made: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, weir_sdk::Shape)]
#[serde(rename_all = "lowercase")]
pub enum Events {
    On,
    Off,
}
