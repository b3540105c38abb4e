//! The description of a build: schema, key columns, null equality, order of the rows of a key.

use arrow_schema::{Field, SchemaRef};

use crate::columns::{Positions, has_equality, key_type, names};
use crate::error::{Result, plan_err};
use crate::index::{OrderKind, order_kind};

/// Whether two nulls of a key column match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum NullEquality {
    /// Nulls match nothing, as SQL `=`.
    #[default]
    NullEqualsNothing,
    /// Null matches null, as SQL `IS NOT DISTINCT FROM`.
    NullEqualsNull,
}

impl NullEquality {
    /// True where null matches null.
    ///
    /// ```
    /// use prejoin::NullEquality;
    ///
    /// assert!(NullEquality::NullEqualsNull.nulls_equal());
    /// assert!(!NullEquality::default().nulls_equal());
    /// ```
    pub fn nulls_equal(self) -> bool {
        self == NullEquality::NullEqualsNull
    }
}

/// The validated description of a build: its schema, its key columns in key order, and the null equality of each key.
#[derive(Debug, Clone, PartialEq)]
pub struct BuildSpec {
    schema: SchemaRef,
    keys: Vec<usize>,
    null_equality: Vec<NullEquality>,
    order: Option<usize>,
}

impl BuildSpec {
    /// Checks that `keys` (column positions) exist and have an equality. Other columns may be of any type.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{BuildSpec, NullEquality};
    ///
    /// let users = record_batch!(("name", Utf8, ["ada"]), ("id", Int64, [1]))?;
    /// let spec = BuildSpec::try_new(users.schema(), vec![1], vec![NullEquality::NullEqualsNull])?;
    /// assert_eq!(spec.keys(), [1]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Plan`](crate::Error::Plan) for an empty key list, a position out of range, a number of `null_equality`
    /// entries other than one per key, or a key type without an equality (maps and unions).
    pub fn try_new(schema: SchemaRef, keys: Vec<usize>, null_equality: Vec<NullEquality>) -> Result<Self> {
        if keys.is_empty() {
            return plan_err!(
                "a hash join needs at least one key column, none was given; the build has {}",
                names(&schema)
            );
        }
        Self::with_any_keys(schema, keys, null_equality)
    }

    /// A build that keeps the rows of each key in the order of column `order`, in which as-of joins search; without keys all
    /// rows are of one. Rows of one value stay in build order; those without one, null or NaN, come first and are found by no
    /// search.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{BuildSpec, NullEquality};
    ///
    /// let quotes = record_batch!(("symbol", Utf8, ["A"]), ("ts", Int64, [5]))?;
    /// let spec = BuildSpec::ordered(quotes.schema(), vec![0], vec![NullEquality::default()], 1)?;
    /// assert_eq!((spec.keys(), spec.order()), (&[0][..], Some(1)));
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`try_new`](Self::try_new), and [`Error::Plan`](crate::Error::Plan) for a column that does not exist or has no order
    /// that prejoin searches in.
    pub fn ordered(
        schema: SchemaRef,
        keys: Vec<usize>,
        null_equality: Vec<NullEquality>,
        order: usize,
    ) -> Result<Self> {
        check_order(&schema, order)?;
        Ok(Self { order: Some(order), ..Self::with_any_keys(schema, keys, null_equality)? })
    }

    /// Like [`ordered`](Self::ordered) with columns by name.
    ///
    /// ```
    /// use arrow_array::record_batch;
    /// use prejoin::{AsOf, BuildSpec, Cancel, Collector, JoinOptions, JoinType, MemoryPool, NullEquality, Pool, PrepareOptions};
    /// use std::sync::Arc;
    ///
    /// let quotes = record_batch!(("symbol", Utf8, ["A", "A", "B"]), ("ts", Int64, [5, 1, 2]), ("bid", Int32, [105, 100, 70]))?;
    /// let pool: Arc<dyn Pool> = Arc::new(MemoryPool::unlimited());
    /// let spec = BuildSpec::ordered_by_name(quotes.schema(), &["symbol"], vec![NullEquality::default()], "ts")?;
    /// let mut collector = Collector::new(spec, &pool, PrepareOptions::default(), Cancel::default());
    /// collector.push(quotes)?;
    /// let quotes = collector.finish()?;
    ///
    /// let trades = record_batch!(("symbol", Utf8, ["A", "B"]), ("ts", Int64, [4, 1]))?;
    /// let last = JoinOptions { as_of: Some(AsOf::default()), join_type: JoinType::ProbeOuter, ..JoinOptions::default() };
    /// let joined = prejoin::join(&trades, &quotes, &last)?;
    /// let bids = record_batch!(("bid", Int32, [Some(100), None]))?;
    /// assert_eq!(joined["bid"].as_ref(), bids.column(0).as_ref());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ordered`](Self::ordered), and [`Error::Plan`](crate::Error::Plan) for a name that no column or more than one has.
    pub fn ordered_by_name<S: AsRef<str>>(
        schema: SchemaRef,
        keys: &[S],
        null_equality: Vec<NullEquality>,
        order: &str,
    ) -> Result<Self> {
        let (keys, order) = (positions(&schema, keys)?, Positions::new(&schema, "build").get(order)?);
        Self::ordered(schema, keys, null_equality, order)
    }

    fn with_any_keys(schema: SchemaRef, keys: Vec<usize>, null_equality: Vec<NullEquality>) -> Result<Self> {
        if keys.len() != null_equality.len() {
            return plan_err!("{} keys need as many null equalities, {} were given", keys.len(), null_equality.len());
        }
        for &key in &keys {
            if key >= schema.fields().len() {
                return plan_err!(
                    "key column {key} does not exist, the build has {} columns: {}",
                    schema.fields().len(),
                    names(&schema)
                );
            }
        }
        for &key in &keys {
            check_equality(schema.field(key))?;
        }
        Ok(Self { schema, keys, null_equality, order: None })
    }

    /// Like [`try_new`](Self::try_new) with key columns by name and one null equality for all.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{BuildSpec, NullEquality};
    ///
    /// let users = record_batch!(("name", Utf8, ["ada"]), ("id", Int64, [1]))?;
    /// let spec = BuildSpec::by_name(users.schema(), &["id", "name"], NullEquality::default())?;
    /// assert_eq!(spec.keys(), [1, 0]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`try_new`](Self::try_new), and [`Error::Plan`](crate::Error::Plan) for a name that no column or more than one has.
    pub fn by_name<S: AsRef<str>>(schema: SchemaRef, keys: &[S], null_equality: NullEquality) -> Result<Self> {
        let positions = positions(&schema, keys)?;
        let null_equality = vec![null_equality; positions.len()];
        Self::try_new(schema, positions, null_equality)
    }

    /// Like [`try_new`](Self::try_new) with key columns by name.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{BuildSpec, NullEquality};
    ///
    /// let users = record_batch!(("name", Utf8, ["ada"]), ("id", Int64, [1]))?;
    /// let nulls = vec![NullEquality::NullEqualsNothing, NullEquality::NullEqualsNull];
    /// let spec = BuildSpec::by_name_each(users.schema(), &["id", "name"], nulls.clone())?;
    /// assert_eq!(spec.null_equality(), nulls);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`by_name`](Self::by_name).
    pub fn by_name_each<S: AsRef<str>>(
        schema: SchemaRef,
        keys: &[S],
        null_equality: Vec<NullEquality>,
    ) -> Result<Self> {
        let positions = positions(&schema, keys)?;
        Self::try_new(schema, positions, null_equality)
    }

    /// Schema of the build.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{BuildSpec, NullEquality};
    ///
    /// let users = record_batch!(("id", Int64, [1]))?;
    /// let spec = BuildSpec::by_name(users.schema(), &["id"], NullEquality::default())?;
    /// assert_eq!(*spec.schema(), users.schema());
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Positions of the key columns, in key order.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{BuildSpec, NullEquality};
    ///
    /// let users = record_batch!(("name", Utf8, ["ada"]), ("id", Int64, [1]))?;
    /// assert_eq!(BuildSpec::by_name(users.schema(), &["id"], NullEquality::default())?.keys(), [1]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn keys(&self) -> &[usize] {
        &self.keys
    }

    /// The column that the rows of each key are ordered by; `None` for build order.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{BuildSpec, NullEquality};
    ///
    /// let users = record_batch!(("id", Int64, [1]))?;
    /// let spec = BuildSpec::by_name(users.schema(), &["id"], NullEquality::default())?;
    /// assert_eq!(spec.order(), None);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn order(&self) -> Option<usize> {
        self.order
    }

    /// Null equality of each key.
    ///
    /// ```
    /// # use arrow_array::record_batch;
    /// use prejoin::{BuildSpec, NullEquality};
    ///
    /// let users = record_batch!(("id", Int64, [1]))?;
    /// let spec = BuildSpec::by_name(users.schema(), &["id"], NullEquality::NullEqualsNull)?;
    /// assert_eq!(spec.null_equality(), [NullEquality::NullEqualsNull]);
    /// # Ok::<(), prejoin::Error>(())
    /// ```
    pub fn null_equality(&self) -> &[NullEquality] {
        &self.null_equality
    }
}

fn positions<S: AsRef<str>>(schema: &SchemaRef, keys: &[S]) -> Result<Vec<usize>> {
    let columns = Positions::new(schema, "build");
    keys.iter().map(|name| columns.get(name.as_ref())).collect()
}

/// Checks that a key column has a type with an equality.
///
/// # Errors
/// [`Error::Plan`](crate::Error::Plan) where it has none.
pub(crate) fn check_equality(field: &Field) -> Result<()> {
    match has_equality(field.data_type()) {
        true => Ok(()),
        false => plan_err!(
            "key column {:?} has type {}, for which no equality is defined; join on another column or on parts of it",
            field.name(),
            field.data_type()
        ),
    }
}

/// Checks that rows can be ordered by a column.
///
/// # Errors
/// [`Error::Plan`](crate::Error::Plan) where they cannot.
fn check_order(schema: &SchemaRef, order: usize) -> Result<()> {
    let Some(field) = schema.fields().get(order) else {
        return plan_err!(
            "order column {order} does not exist, the build has {} columns: {}",
            schema.fields().len(),
            names(schema)
        );
    };
    let data_type = field.data_type();
    match order_kind(data_type) {
        // Searches compare texts where they lie.
        Some(OrderKind::Bytes) if key_type(data_type) != *data_type => plan_err!(
            "the order column {:?} has type {data_type}; encoded texts are not searched, cast it to {}",
            field.name(),
            key_type(data_type)
        ),
        Some(_) => Ok(()),
        None => plan_err!(
            "the order column {:?} has type {data_type}; rows are ordered by integers, floats, decimals, dates, times, \
             timestamps, durations, texts and bytes",
            field.name()
        ),
    }
}
