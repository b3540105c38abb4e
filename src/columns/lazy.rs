//! A column that is there, or that is proven and made when it is first asked for.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow_array::ArrayRef;
use arrow_schema::DataType;

use crate::error::Result;

type Make = dyn Fn() -> Result<ArrayRef> + Send + Sync;

/// A column of a build. That of an unverified file is checked and made by its first user; clones share it.
#[derive(Clone)]
pub(crate) struct Column(Arc<Inner>);

struct Inner {
    array: OnceLock<ArrayRef>,
    make: Option<Box<Make>>,
}

impl Column {
    /// A column that `make` makes when it is first asked for.
    pub(crate) fn later(make: impl Fn() -> Result<ArrayRef> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { array: OnceLock::new(), make: Some(Box::new(make)) }))
    }

    /// The column.
    ///
    /// # Errors
    /// What making it fails with, for every asker.
    pub(crate) fn get(&self) -> Result<&ArrayRef> {
        if let Some(array) = self.0.array.get() {
            return Ok(array);
        }
        match &self.0.make {
            // Two first askers may both make it; one of the two equal columns stays.
            Some(make) => {
                let array = make()?;
                Ok(self.0.array.get_or_init(|| array))
            }
            None => crate::error::internal_err!("a column that is neither there nor can be made"),
        }
    }
}

impl From<ArrayRef> for Column {
    fn from(array: ArrayRef) -> Self {
        Self(Arc::new(Inner { array: array.into(), make: None }))
    }
}

impl fmt::Debug for Column {
    /// Never shows table contents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.array.get() {
            Some(array) => write!(f, "{} x {}", array.len(), array.data_type()),
            None => f.write_str("not made yet"),
        }
    }
}

/// True where `test` holds for `data_type` or for any type that it is made of.
pub(crate) fn any_part(data_type: &DataType, test: &impl Fn(&DataType) -> bool) -> bool {
    use DataType::*;
    test(data_type)
        || match data_type {
            Dictionary(_, values) => any_part(values, test),
            List(field) | LargeList(field) | ListView(field) | LargeListView(field) => {
                any_part(field.data_type(), test)
            }
            FixedSizeList(field, _) | Map(field, _) | RunEndEncoded(_, field) => any_part(field.data_type(), test),
            Struct(fields) => fields.iter().any(|field| any_part(field.data_type(), test)),
            Union(fields, _) => fields.iter().any(|(_, field)| any_part(field.data_type(), test)),
            _ => false,
        }
}
