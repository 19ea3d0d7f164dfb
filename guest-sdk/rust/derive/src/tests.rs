//! What cannot be described is refused, with advice.

use syn::{DeriveInput, parse_quote};

use crate::container::shape;

fn refusal(input: &DeriveInput) -> String {
    shape(input).expect_err("it is described").to_string()
}

#[test]
fn what_cannot_be_described_is_refused_with_advice() {
    let refusals: Vec<String> = [
        parse_quote!(
            struct T {
                #[serde(flatten)]
                a: A,
            }
        ),
        parse_quote!(
            #[serde(untagged)]
            enum T {
                A(u8),
            }
        ),
        parse_quote!(
            enum T {
                A,
                #[serde(untagged)]
                B(u8),
            }
        ),
        parse_quote!(
            struct T {
                #[serde(with = "text")]
                a: u8,
            }
        ),
        parse_quote!(
            struct T(#[serde(serialize_with = "text")] u8);
        ),
        parse_quote!(
            #[serde(from = "u8", into = "u8")]
            struct T(u8);
        ),
        parse_quote!(
            #[serde(remote = "Other")]
            struct T(u8);
        ),
        parse_quote!(
            struct T {
                #[serde(skip_serializing)]
                a: u8,
            }
        ),
        parse_quote!(
            enum T {
                A,
                #[serde(skip_deserializing)]
                B,
            }
        ),
        parse_quote!(
            struct T {
                #[serde(rename(serialize = "b"))]
                a: u8,
            }
        ),
        parse_quote!(
            #[serde(rename_all(deserialize = "camelCase"))]
            struct T {
                a: u8,
            }
        ),
        parse_quote!(
            #[serde(rename_all = "Title")]
            struct T {
                a: u8,
            }
        ),
        parse_quote!(
            #[serde(tag = "type")]
            struct T {
                a: u8,
            }
        ),
        parse_quote!(
            #[serde(rename = "a/b")]
            struct T {
                a: u8,
            }
        ),
        parse_quote!(
            struct T<const N: usize>([u8; N]);
        ),
        parse_quote!(
            enum T {}
        ),
        parse_quote!(
            #[serde(tag = "type")]
            enum T {
                A(u8, u8),
            }
        ),
        parse_quote!(
            #[shape(with = "u8")]
            struct T(u8);
        ),
        parse_quote!(union T { a: u8 }),
    ]
    .iter()
    .map(refusal)
    .collect();
    insta::assert_snapshot!(refusals.join("\n"));
}

#[test]
fn another_type_in_its_place_is_described() {
    for input in [
        parse_quote!(
            struct T {
                #[serde(with = "text")]
                #[shape(as = "String")]
                a: u8,
            }
        ),
        parse_quote!(
            #[serde(try_from = "String", into = "String")]
            #[shape(as = "String")]
            struct T(u8);
        ),
        parse_quote!(
            enum T {
                A(
                    #[serde(with = "text")]
                    #[shape(as = "String")]
                    u8,
                ),
            }
        ),
    ] {
        let tokens = shape(&input).unwrap().to_string();
        assert!(tokens.contains("< String as"), "{tokens}");
        assert!(!tokens.contains("u8"), "{tokens}");
    }
}

#[test]
fn the_crate_of_the_trait_can_have_another_name() {
    let tokens = shape(&parse_quote!(
        #[shape(crate = "names")]
        struct T;
    ))
    .unwrap()
    .to_string();
    assert!(tokens.contains("names :: shape :: Shape for T"), "{tokens}");
    assert!(!tokens.contains("weir_sdk"), "{tokens}");
}
