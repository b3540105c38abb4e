//! Probe keys in the terms of the build's keys, exactly: what the build's type cannot hold is a miss, never another value.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type};
use arrow_array::{Array, ArrayRef, FixedSizeListArray, GenericListArray, OffsetSizeTrait, PrimitiveArray, StructArray};
use arrow_buffer::{BooleanBuffer, NullBuffer, i256};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, TimeUnit};

use crate::error::Result;
