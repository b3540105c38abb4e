"""Words of other libraries: kinds of joins, and arguments that are refused with what to write instead."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, get_args

import pyarrow as pa
import pytest

import prejoin
from prejoin.typing import HashJoinHow, How, LegHow

USERS = pa.table({"id": [1, 2, 4], "name": ["ada", "bob", "cy"]})
EVENTS = pa.table({"user": [2, 3, 2], "at": [10, 20, 30]})


def literals(alias: Any) -> list[str]:
    """The words of a Literal, or of a union of some."""
    return [word for part in get_args(alias) for word in ([part] if isinstance(part, str) else literals(part))]


def test_every_word_of_the_types_is_accepted() -> None:
    """And no other one; those of HashJoin give the rows that `join` gives for the same word."""
    build = prejoin.prepare(USERS, "id")
    for how in literals(How):
        rows = prejoin.join(EVENTS, build, {"user": "id"}, how)  # type: ignore[call-overload]
        if how not in literals(HashJoinHow):
            assert "left" in how or "right" in how
            with pytest.raises(prejoin.PlanError, match="may mean either side"):
                prejoin.HashJoin(USERS, EVENTS, [("id", "user")], how)  # type: ignore[arg-type]
            continue
        join = prejoin.HashJoin(USERS, EVENTS, [("id", "user")], how)  # type: ignore[arg-type]
        found = join.execute().read_all()
        names = [name for name in ("at", "name", "mark") if name in rows.column_names]
        assert found.select(names).to_pylist() == rows.select(names).to_pylist(), how
        # The word that it shows is one that it takes.
        assert join.replace(how=join.how).how == join.how in literals(HashJoinHow)
        assert pickle.loads(pickle.dumps(join)).how == join.how
    for how in literals(LegHow):
        assert prejoin.StarJoin([prejoin.Leg(build, {"user": "id"}, how)])(EVENTS).equals(  # type: ignore[arg-type]
            prejoin.join(EVENTS, build, {"user": "id"}, how)  # type: ignore[call-overload]
        )
    for how in set(literals(How)) - set(literals(LegHow)):
        with pytest.raises(prejoin.PlanError, match="after the last probe row"):
            prejoin.Leg(build, {"user": "id"}, how)  # type: ignore[arg-type]


def test_left_and_right_of_a_hash_join_are_refused_with_the_right_word() -> None:
    words = {
        "left": ("probe_outer", "build_outer"),
        "right outer": ("build_outer", "probe_outer"),
        "left_semi": ("probe_semi", "build_semi"),
        "right_anti": ("build_anti", "probe_anti"),
    }
    task = prejoin.HashJoin(USERS, EVENTS, [("id", "user")])
    for word, (same, other) in words.items():
        short = {"probe_semi": "semi", "probe_anti": "anti"}
        same, other = short.get(same, same), short.get(other, other)
        text = f'write how="{same}" for what prejoin.join calls "{word}", or how="{other}" for the other side'
        for call in (
            lambda word=word: prejoin.HashJoin(USERS, EVENTS, [("id", "user")], word),
            lambda word=word: task.replace(how=word),
            lambda word=word: setattr(task, "how", word),
        ):
            with pytest.raises(prejoin.PlanError, match=text):
                call()


Call = Callable[..., Any]
FUNCTIONS: dict[str, Call] = {
    "prepare": lambda **given: prejoin.prepare(USERS, **given),
    "join": lambda **given: prejoin.join(EVENTS, prejoin.prepare(USERS, "id"), **given),
    "Leg": lambda **given: prejoin.Leg(prejoin.prepare(USERS, "id"), **given),
    "StarJoin": lambda **given: prejoin.StarJoin([prejoin.prepare(USERS, "id")], **given),
}


@pytest.mark.parametrize(
    ("function", "given", "text"),
    [
        (
            "join",
            {"left_on": "user", "right_on": "id"},
            "write on={'user': 'id'}, that is {probe column: build column}",
        ),
        ("join", {"left_on": ["a", "b"], "right_on": ("c", "d")}, "write on={'a': 'c', 'b': 'd'}"),
        ("join", {"right_on": "id"}, "write on={probe column: build column}"),
        ("join", {"keys": "user", "right_keys": "id"}, "write on={'user': 'id'}"),
        ("join", {"by": {"user": "id"}}, "write on={'user': 'id'}"),
        ("join", {"by": "id"}, "write on='id'"),
        ("join", {"nulls_equal": True}, "write prejoin.prepare(rows, on, null_equal=True)"),
        ("join", {"null_equal": True}, "write prejoin.prepare(rows, on, null_equal=True)"),
        ("join", {"suffixes": ("_x", "_y")}, "write suffix='_y'"),
        ("join", {"lsuffix": "_x"}, "names of probe columns stay"),
        ("join", {"rsuffix": "_y"}, "write suffix='_y'"),
        ("join", {"indicator": True}, "write how='mark'"),
        ("join", {"join_type": "left outer"}, "write how='left outer'"),
        ("join", {"left_index": True}, "an index is not a column"),
        ("join", {"maintain_order": "left"}, "leave it out"),
        ("join", {"columns": ["name"]}, "write select=['name']"),
        ("join", {"colour": 1}, "it takes probe, build, on, how, where"),
        ("prepare", {"nulls_equal": True, "on": "id"}, "write null_equal=True"),
        ("prepare", {"by": "id"}, "write on='id', the key columns of the build"),
        ("prepare", {"left_on": "user", "right_on": "id"}, "write on='id', the key columns of the build"),
        ("prepare", {"on": "id", "colour": 1}, "it takes source, on, "),
        ("Leg", {"left_on": "user", "right_on": "id"}, "write on={'user': 'id'}"),
        ("Leg", {"nulls_equal": True}, "write prejoin.prepare(rows, on, null_equal=True)"),
        ("Leg", {"rsuffix": "_y"}, "write suffix='_y'"),
        ("Leg", {"colour": 1}, "it takes build, on, how, where, prefix"),
        ("StarJoin", {"left_on": "user", "right_on": "id"}, "prejoin.Leg(build, on={probe column: build column})"),
        ("StarJoin", {"how": "left"}, "write prejoin.Leg(build, how='left')"),
        ("StarJoin", {"nulls_equal": True}, "write prejoin.prepare(rows, on, null_equal=True)"),
        ("StarJoin", {"colour": 1}, "it takes legs, select, limit, batch_size"),
    ],
)
def test_arguments_of_other_libraries_show_what_to_write(function: str, given: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError) as caught:
        FUNCTIONS[function](**given)
    said = str(caught.value)
    name = next(name for name in given if name != "on")
    assert said.startswith(f"{function}() got an unexpected keyword argument '{name}'; "), said
    assert text in said, said


def test_arguments_that_are_missing_or_doubled() -> None:
    build = prejoin.prepare(USERS, "id")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'on'"):
        prejoin.prepare(USERS)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"join\(\) got an unexpected keyword argument 'left_on'; write on="):
        build.join(EVENTS, left_on="user", right_on="id")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="multiple values for argument 'on'"):
        build.join(EVENTS, "user", on="user")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"join\(\) got an unexpected keyword argument 'by'; write on="):
        prejoin.join_schema(EVENTS.schema, build, by="user")  # type: ignore[call-arg]
