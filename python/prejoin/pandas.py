"""Joins and lookups as methods of pandas objects, under `prejoin`; importing this module adds them.

import prejoin.pandas

flights.prejoin.join(planes, on="tailnum")
flights["tailnum"].prejoin.map(planes, "seats", default=0)
"""

from __future__ import annotations

from typing import Any

try:
    import pandas as pd
except ImportError as _error:
    raise ImportError("prejoin.pandas needs pandas, which cannot be imported: pip install pandas") from _error

import prejoin

__all__ = ["FrameMethods", "SeriesMethods"]


@pd.api.extensions.register_dataframe_accessor("prejoin")
class FrameMethods:
    """`frame.prejoin`: joins of a pandas.DataFrame."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def join(self, build: Any, on: Any = None, how: Any = "inner", **options: Any) -> pd.DataFrame:
        """Joins this frame, as the probe side, to `build`.

        Args:
            build: A PreparedBuild, rows together with `on`, or several legs.
            on: Names of key columns, as of `prejoin.join`.
            how: Which rows come out, as of `prejoin.join`.
            **options: Other arguments of `prejoin.join`, `dtype_backend` among them.

        Returns:
            A pandas.DataFrame with a new index.

        Raises:
            PlanError: As `prejoin.join` does.

        Example:
            >>> import pandas as pd, prejoin.pandas
            >>> users = prejoin.prepare(pd.DataFrame({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
            >>> pd.DataFrame({"id": [2, 3]}).prejoin.join(users, how="left")["name"].tolist()
            ['bob', nan]

        """
        return prejoin.join(self._frame, build, on, how, **options)


@pd.api.extensions.register_index_accessor("prejoin")
@pd.api.extensions.register_series_accessor("prejoin")
class SeriesMethods:
    """`series.prejoin` and `index.prejoin`: lookups of the values of a pandas.Series or Index."""

    def __init__(self, keys: Any) -> None:
        self._keys = keys

    def map(self, build: prejoin.PreparedBuild, column: str, default: Any = None, *, keep: Any = "all") -> Any:
        """The value of one column of `build` for each key.

        Args:
            build: The prepared build.
            column: Name of a build column.
            default: A value of the column's type for keys that are absent.
            keep: "first" or "last" row of a key, where some key has several.

        Returns:
            A series with the name and index of this one; an index for an index.

        Raises:
            PlanError: As `PreparedBuild.map` does.

        Example:
            >>> import pandas as pd, prejoin.pandas
            >>> users = prejoin.prepare(pd.DataFrame({"id": [1, 2], "name": ["ada", "bob"]}), on="id")
            >>> pd.Series([2, 3]).prejoin.map(users, "name", default="-").tolist()
            ['bob', '-']

        """
        return build.map(self._keys, column, default, keep=keep)

    def contains(self, build: prejoin.PreparedBuild) -> Any:
        """Whether each key is in `build`, as `isin` says whether it is in a list.

        Args:
            build: The prepared build.

        Returns:
            Booleans with the name and index of this series; an index for an index.

        Raises:
            PlanError: As `PreparedBuild.contains` does.

        Example:
            >>> import pandas as pd, prejoin.pandas
            >>> users = prejoin.prepare(pd.DataFrame({"id": [1, 2]}), on="id")
            >>> pd.Series([2, 3]).prejoin.contains(users).tolist()
            [True, False]

        """
        return build.contains(self._keys)
