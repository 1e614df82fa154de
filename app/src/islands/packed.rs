//! Properties of islands as one line of text each.
//!
//! An island's properties travel as JSON. Structures, lists and numbers in them would bring
//! their decoders into the bundle, a tenth of it; a text brings none. Fields are set apart by
//! control characters, which no text of ours holds and no title may.

/// Between two fields.
pub(crate) const FIELD: char = '\u{1f}';
/// Between two items of a field that is a list.
const ITEM: char = '\u{1e}';

/// The items of a list in one text.
#[cfg(feature = "ssr")]
pub(crate) fn list(items: &[&str]) -> String {
    items.join("\u{1e}")
}

/// The item at `index` of such a list; empty where there is none.
pub(crate) fn item(list: &str, index: usize) -> String {
    list.split(ITEM).nth(index).unwrap_or_default().to_owned()
}

/// A structure of texts that travels as one.
macro_rules! packed {
    ($(#[$about:meta])* pub struct $name:ident { $($(#[$doc:meta])* pub $field:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name { $($(#[$doc])* pub $field: String,)* }

        impl $name {
            /// As one text.
            #[cfg(feature = "ssr")]
            pub fn packed(&self) -> String {
                [$(self.$field.as_str()),*].join("\u{1f}")
            }

            /// From that text; a field that is missing is empty.
            pub fn unpacked(text: &str) -> Self {
                let mut fields = text.split($crate::islands::packed::FIELD).map(str::to_owned);
                Self { $($field: fields.next().unwrap_or_default(),)* }
            }
        }
    };
}
pub(crate) use packed;

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    packed! {
        /// Two texts and a list.
        pub struct Sample {
            /// One.
            pub one,
            /// Several.
            pub several,
            /// Another.
            pub last,
        }
    }

    #[test]
    fn texts_come_out_as_they_went_in() {
        let sample = Sample {
            one: "剩余 {left}, \"quoted\"".to_owned(),
            several: list(&["a", "", "c"]),
            last: String::new(),
        };
        let back = Sample::unpacked(&sample.packed());
        assert_eq!(back, sample);
        assert_eq!(item(&back.several, 2), "c");
        assert_eq!(item(&back.several, 1), "");
        assert_eq!(item(&back.several, 3), "");
    }

    #[test]
    fn what_is_cut_short_is_empty_and_no_panic() {
        assert_eq!(Sample::unpacked("x").last, "");
    }
}
