//! Pages of a list: a cursor and a limit in, items and the next cursor out.

use serde::Serialize;

use crate::Error;

/// Items of a page when the caller names no limit.
pub const DEFAULT_LIMIT: u32 = 50;
/// The most items of a page.
pub const MAX_LIMIT: u32 = 200;

/// Which page is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The cursor that the page before ended with; none for the first.
    pub after: Option<String>,
    /// How many items at the most, 1 to [`MAX_LIMIT`].
    pub limit: u32,
}

impl Page {
    /// Reads a page as it was asked for; an empty text is as good as none.
    ///
    /// # Errors
    /// `Invalid` when the limit is no number from 1 to [`MAX_LIMIT`], or the cursor is overlong.
    pub fn parse(after: Option<&str>, limit: Option<&str>) -> Result<Self, Error> {
        let after = after.filter(|text| !text.is_empty());
        if after.is_some_and(|text| text.len() > 64) {
            return Err(Error::Invalid("after: not a cursor of this list".into()));
        }
        let limit = match limit.filter(|text| !text.is_empty()) {
            None => DEFAULT_LIMIT,
            Some(text) => text
                .parse()
                .ok()
                .filter(|n| (1..=MAX_LIMIT).contains(n))
                .ok_or_else(|| {
                    Error::Invalid(format!("limit: a whole number from 1 to {MAX_LIMIT}"))
                })?,
        };
        Ok(Self {
            after: after.map(str::to_owned),
            limit,
        })
    }

    /// The first page, of the default size.
    pub fn first() -> Self {
        Self {
            after: None,
            limit: DEFAULT_LIMIT,
        }
    }

    /// The cursor, read as the type this list is ordered by.
    pub(crate) fn cursor<T: std::str::FromStr>(&self) -> Result<Option<T>, Error> {
        let wrong = |_| Error::Invalid("after: not a cursor of this list".into());
        self.after
            .as_deref()
            .map(|text| text.parse().map_err(wrong))
            .transpose()
    }

    /// The cursor of a list that is ordered by a row's id.
    pub(crate) fn row_cursor(&self) -> Result<Option<i64>, Error> {
        let wrong = || Error::Invalid("after: not a cursor of this list".into());
        let id = self.cursor::<i64>()?;
        id.map(|id| (id > 0).then_some(id).ok_or_else(wrong))
            .transpose()
    }

    /// `limit`, as a size.
    pub(crate) fn size(&self) -> usize {
        self.limit as usize
    }
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Paged<T> {
    /// The items, in the list's order.
    pub items: Vec<T>,
    /// The cursor of the next page; none when this is the last.
    pub next: Option<String>,
}

impl<T> Paged<T> {
    /// Cuts a page out of at most `limit + 1` items: the one too many says that there is a next page.
    pub(crate) fn cut(mut items: Vec<T>, page: &Page, cursor: impl Fn(&T) -> String) -> Self {
        let more = items.len() > page.size();
        items.truncate(page.size());
        let next = if more { items.last().map(cursor) } else { None };
        Self { items, next }
    }

    /// The same page of other items.
    pub fn map<U>(self, f: impl FnMut(T) -> U) -> Paged<U> {
        Paged {
            items: self.items.into_iter().map(f).collect(),
            next: self.next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_outside_its_range_is_refused() {
        for wrong in ["0", "201", "-1", "x", "1e9"] {
            assert!(
                matches!(Page::parse(None, Some(wrong)), Err(Error::Invalid(_))),
                "{wrong}"
            );
        }
        assert_eq!(
            Page::parse(Some(""), Some("")).map(|p| p.limit).ok(),
            Some(DEFAULT_LIMIT)
        );
    }

    #[test]
    fn the_item_too_many_becomes_the_next_cursor() {
        let page = Page {
            after: None,
            limit: 2,
        };
        let cut = Paged::cut(vec![9, 8, 7], &page, ToString::to_string);
        assert_eq!(
            cut,
            Paged {
                items: vec![9, 8],
                next: Some("8".into())
            }
        );
        assert_eq!(
            Paged::cut(vec![9, 8], &page, ToString::to_string).next,
            None
        );
    }
}
