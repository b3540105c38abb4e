"""Docstrings of the module and of its stub are the same, and their examples run."""

from __future__ import annotations

import ast
import doctest
import inspect
import pathlib
from collections.abc import Iterator

import prejoin
from prejoin import _core

STUB = pathlib.Path(prejoin.__file__).with_name("_core.pyi")


def documented(body: list[ast.stmt], owner: object, prefix: str = "") -> Iterator[tuple[str, str, object]]:
    """Name, docstring in the stub, and the object."""
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef):
            continue
        value = inspect.getattr_static(owner, node.name)
        text = ast.get_docstring(node)
        if text and not node.name.startswith("__"):
            yield prefix + node.name, text, value
        if isinstance(node, ast.ClassDef):
            yield from documented(node.body, value, f"{node.name}.")


def test_stub_and_module_have_the_same_docstrings() -> None:
    pairs = list(documented(ast.parse(STUB.read_text()).body, _core))
    assert len(pairs) > 70
    for name, text, value in pairs:
        own = value.__func__ if isinstance(value, staticmethod) else value
        assert inspect.cleandoc(own.__doc__ or "") == text, name


def test_everything_public_is_documented() -> None:
    for name in prejoin.__all__:
        value = getattr(prejoin, name)
        assert isinstance(value, str) or value.__doc__, name


def test_examples_run() -> None:
    """S49, for the Python documentation."""
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(verbose=False)
    for name in prejoin.__all__:
        for test in finder.find(getattr(prejoin, name), name):
            runner.run(test)
    results = runner.summarize(verbose=False)
    assert results.attempted > 25
    assert results.failed == 0
