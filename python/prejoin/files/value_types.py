"""What the values of a column are, whether they lie in it plainly, by a dictionary or by runs."""

from __future__ import annotations

import pyarrow as pa


def value_type(data_type: pa.DataType) -> pa.DataType:
    """The type of the values of a dictionary or run-end encoded type; any other type itself."""
    while pa.types.is_dictionary(data_type) or pa.types.is_run_end_encoded(data_type):
        data_type = data_type.value_type
    return data_type


def is_string(data_type: pa.DataType) -> bool:
    """Whether values are text."""
    values = value_type(data_type)
    return bool(pa.types.is_string(values) or pa.types.is_large_string(values) or pa.types.is_string_view(values))


def is_binary(data_type: pa.DataType) -> bool:
    """Whether values are bytes."""
    values = value_type(data_type)
    return bool(
        pa.types.is_binary(values)
        or pa.types.is_large_binary(values)
        or pa.types.is_binary_view(values)
        or pa.types.is_fixed_size_binary(values)
    )
