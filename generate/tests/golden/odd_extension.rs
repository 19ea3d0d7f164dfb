//! Names and types that are hard to say.
//!
//! ``
//! panic!("*/ and \"\"\" and \u{202e}")
//! ``
//! indented()
//! >> import os
//!
//! Written from `odd.things@2` by `weir generate rust --for extension`: changes here do not last.

#![allow(dead_code, reason = "a contract has more than one program uses")]

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weir_sdk::Shape;

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
    pub const MOVED: topic(Shape2) = "odd.things.*.moved.>";

    pub const PICTURES: topic(bytes) = "pictures";

    pub const EVENTS: topic(Events) = "odd.things.>";

    /// Work.
    pub const JOBS: queue(Shape2) = "jobs";

    pub const RAW_JOBS: queue(bytes) = "raw-jobs";
}

/// Arguments of `type`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
pub struct ConstructorKind {
    pub inner: ConstructorKindInner,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
pub struct ConstructorKindInner {
    pub deep: ConstructorKindInnerDeep,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Shape)]
pub struct ConstructorKindInnerDeep {
    #[serde(rename = "x y", skip_serializing_if = "Option::is_none")]
    #[shape(as = "f64")]
    pub x_y: Option<f64>,
}

/// Arguments of `nothing`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Shape)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// Words.
#[derive(Clone, Debug, Copy, Eq, Hash, PartialEq, Serialize, Deserialize, Shape)]
pub enum Kind {
    #[serde(rename = "self")]
    Self_,
    #[serde(rename = "Self")]
    Self_2,
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
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

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Shape)]
pub struct NodeParent {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[shape(as = "Box<Node>")]
    pub node: Option<Box<Node>>,
}

/// A list of such lists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
pub struct Tree(pub Vec<Tree>);

pub type Pair = (f32, char);

/// Time.
pub type Seconds = u64;

/// By a field with its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
#[serde(tag = "kind")]
pub enum Shape2 {
    /// Round.
    #[serde(rename = "circle")]
    Circle {
        /// From the middle.
        radius: f64,
    },
    #[serde(rename = "group-of")]
    GroupOf {
        content: Vec<Shape2>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[shape(as = "Seconds")]
        r#for: Option<Seconds>,
    },
    #[serde(rename = "none")]
    None,
    /// A value of a later version of the contract. It is not to be sent.
    #[serde(other)]
    Other,
}

/// By its only field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
pub enum Move {
    #[serde(rename = "stay")]
    Stay,
    #[serde(rename = "leave")]
    Leave,
    /// By so much.
    #[serde(rename = "by")]
    By(Pair),
    #[serde(rename = "to")]
    To {
        x: i32,
        y: i32,
    },
    #[serde(rename = "then")]
    Then(Box<Move>),
    #[serde(rename = "both")]
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
    ValueList([Value; 3]),
    Move(Move),
    Object(ValueValueObject),
    BooleanList(Vec<Option<bool>>),
}

impl Shape for ValueValue {
    const SCHEMA: &'static weir_sdk::shape::Schema = &weir_sdk::shape::Schema::Any;
}

#[derive(Clone, Debug, Copy, Eq, Hash, PartialEq, Serialize, Deserialize, Shape)]
pub enum ValueValueAuto {
    #[serde(rename = "auto")]
    Auto,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
pub struct ValueValueObject {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[shape(as = "String")]
    pub __odd: Option<String>,
    /// Has a space.
    #[serde(rename = "no name")]
    pub no_name: i128,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Nobody {}

impl Shape for Nobody {
    const SCHEMA: &'static weir_sdk::shape::Schema = &weir_sdk::shape::Schema::Any;
}

/// Any JSON.
pub type Anything = serde_json::Value;

pub type Maybe = Option<weir_sdk::Empty>;

/// Has the name of something else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
pub struct Event {
    pub r#const: EventConst,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[shape(as = "Promise")]
    pub promise: Option<Promise>,
}

#[derive(Clone, Debug, Copy, Eq, Hash, PartialEq, Serialize, Deserialize, Shape)]
pub enum EventConst {
    #[serde(rename = "only")]
    Only,
}

pub type Promise = BTreeMap<String, Anything>;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Shape)]
pub struct ConstructorResult {
    pub made: bool,
}

#[derive(Clone, Debug, Copy, Eq, Hash, PartialEq, Serialize, Deserialize, Shape)]
pub enum Events {
    #[serde(rename = "on")]
    On,
    #[serde(rename = "off")]
    Off,
}
