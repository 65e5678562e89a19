"""Where a function can be made wrong, and how the wrong one is put in the right one's place."""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGES = ("kbtui/memory/edits", "kbtui/history", "kbtui/views", "kbtui/knowledge/format")
"""What is made wrong: what decides about the words that people wrote."""
_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_CALCULATED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, order=True)
class Mutant:
    """One fault: in which function, at which of its places, and of which kind."""

    file: str
    function: str
    """With the class it is in; a function inside another belongs to the outer one."""
    place: int
    """Which node of the function's tree, in the order of `ast.walk`."""
    kind: str
    line: int
    """That of the statement: what a test must have run to notice."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.function}, {self.kind} at {self.place}"


def mutants(file: str, source: str) -> list[Mutant]:
    """All faults that can be made in the functions of a source file."""
    return [
        Mutant(file, name, place, kind, line)
        for name, function in _functions(ast.parse(source))
        for place, kind, line in _places(function)
    ]


def is_same(mutant: Mutant, before: str, now: str) -> bool:
    """True if the mutant's function reads alike in both sources; comments don't count."""
    functions = [
        dict(_functions(ast.parse(source))).get(mutant.function) for source in (before, now)
    ]
    first, second = (function and ast.dump(function) for function in functions)
    return first is not None and first == second


def mutated(mutant: Mutant, source: str) -> ast.Module:
    """The source's tree with that fault in it.

    Raises:
        LookupError: The source has no such place.
    """
    tree = ast.parse(source)
    function = dict(_functions(tree))[mutant.function]
    node = list(ast.walk(function))[mutant.place]
    if mutant.kind not in _kinds(node):
        raise LookupError(f"no place for {mutant}")
    _Change(node, mutant.kind).visit(function)
    return ast.fix_missing_locations(tree)


def install(mutant: Mutant, file: Path, source: str) -> bool:
    """Let this process run the mutant; False if the fault can't be put in while it is running.

    Whoever has imported a function keeps it: it is given other code. So what runs when a module is
    imported, and default arguments, aren't touched.
    """
    import_module(mutant.file.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    new = dict(_codes(compile(mutated(mutant, source), str(file), "exec", dont_inherit=True)))
    gc.unfreeze()  # else they aren't listed
    functions = [
        function
        for function in gc.get_objects()
        if isinstance(function, FunctionType)
        and function.__code__.co_filename == str(file)
        and f"{function.__code__.co_qualname}.".startswith(f"{mutant.function}.")
    ]
    codes = [new.get(_key(function.__code__)) for function in functions]
    for function, code in zip(functions, codes, strict=True):
        if code is None or code.co_freevars != function.__code__.co_freevars:
            return False
    for function, code in zip(functions, codes, strict=True):
        if code is not None:
            function.__code__ = code
    return bool(functions)


def _key(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield _key(each), each
            yield from _codes(each)


def _functions(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, _Function]]:
    seen: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{inside}{node.name}.")
        elif isinstance(node, _Function) and node.name not in seen and not _is_overload(node):
            seen.add(node.name)  # a property's setter has its name, and would be taken for it
            yield inside + node.name, node


def _is_overload(function: _Function) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == "overload" for each in function.decorator_list
    )


def _places(function: _Function) -> Iterator[tuple[int, str, int]]:
    lines = dict(_statement_lines(function.body))
    for place, node in enumerate(ast.walk(function)):
        if id(node) in lines:
            for kind in _kinds(node):
                yield place, kind, lines[id(node)]


def _statement_lines(body: list[ast.stmt]) -> Iterator[tuple[int, int]]:
    """The line of the statement that each node is run by; what runs nothing has none."""
    for statement in body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        yield id(statement), statement.lineno
        for name, value in ast.iter_fields(statement):
            if isinstance(statement, _Function | ast.ClassDef) and name != "body":
                continue
            if name == "annotation":
                continue
            yield from _field_lines(value, statement.lineno)


def _field_lines(value: object, line: int) -> Iterator[tuple[int, int]]:
    if isinstance(value, list):
        if value and isinstance(value[0], ast.stmt):
            yield from _statement_lines(value)
        else:
            for each in value:
                yield from _field_lines(each, line)
    elif isinstance(value, ast.ExceptHandler | ast.match_case):
        yield from _statement_lines(value.body)
        if isinstance(value, ast.match_case):
            yield from _field_lines(value.guard, line)
    elif isinstance(value, ast.AST) and not isinstance(value, ast.JoinedStr | ast.arguments):
        yield id(value), line
        for _, inner in ast.iter_fields(value):
            yield from _field_lines(inner, line)


def _kinds(node: ast.AST) -> tuple[str, ...]:
    return tuple(kind for kind, wrong in _WRONG.items() if wrong(node) is not None)


class _Change(ast.NodeTransformer):
    """Puts the wrong node in the place of the right one."""

    def __init__(self, node: ast.AST, kind: str) -> None:
        self._node = node
        self._kind = kind

    def visit(self, node: ast.AST) -> ast.AST:
        wrong = _WRONG[self._kind](node) if node is self._node else None
        return self.generic_visit(node) if wrong is None else ast.copy_location(wrong, node)


def _comparison(node: ast.AST) -> ast.AST | None:
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=others):
            wrong = _COMPARED.get(type(operator))
            return ast.Compare(left, [wrong()], others) if wrong else None
    return None


def _arithmetic(node: ast.AST) -> ast.AST | None:
    match node:
        case ast.BinOp(left=left, op=operation, right=right):
            wrong = _CALCULATED.get(type(operation))
            return ast.BinOp(left, wrong(), right) if wrong else None
        case ast.AugAssign(target=target, op=operation, value=value):
            wrong = _CALCULATED.get(type(operation))
            return ast.AugAssign(target, wrong(), value) if wrong else None
    return None


def _junction(node: ast.AST) -> ast.AST | None:
    match node:
        case ast.BoolOp(op=ast.And(), values=values):
            return ast.BoolOp(ast.Or(), values)
        case ast.BoolOp(values=values):
            return ast.BoolOp(ast.And(), values)
    return None


def _negation(node: ast.AST) -> ast.AST | None:
    return node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else None


def _condition(node: ast.AST) -> ast.AST | None:
    match node:
        case ast.If(test=test, body=body, orelse=otherwise):
            return ast.If(ast.UnaryOp(ast.Not(), test), body, otherwise)
        case ast.While(test=test, body=body, orelse=otherwise):
            return ast.While(ast.UnaryOp(ast.Not(), test), body, otherwise)
        case ast.IfExp(test=test, body=value, orelse=otherwise):
            return ast.IfExp(ast.UnaryOp(ast.Not(), test), value, otherwise)
    return None


def _constant(node: ast.AST) -> ast.AST | None:
    match node:
        case ast.Constant(value=bool() as value):
            return ast.Constant(not value)
        case ast.Constant(value=int() as value):
            return ast.Constant(value + 1)
        case ast.Constant(value=str() as value):
            return ast.Constant("" if value else "wrong")
    return None


def _return(node: ast.AST) -> ast.AST | None:
    match node:
        case ast.Return(value=None | ast.Constant(value=None)):
            return None
        case ast.Return():
            return ast.Return(ast.Constant(None))
    return None


def _statement(node: ast.AST) -> ast.AST | None:
    return ast.Pass() if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None


def _loop(node: ast.AST) -> ast.AST | None:
    match node:
        case ast.Break():
            return ast.Continue()
        case ast.Continue():
            return ast.Break()
    return None


_WRONG: dict[str, Callable[[ast.AST], ast.AST | None]] = {
    "comparison": _comparison,
    "arithmetic": _arithmetic,
    "and or or": _junction,
    "not": _negation,
    "condition": _condition,
    "constant": _constant,
    "return": _return,
    "statement": _statement,
    "break or continue": _loop,
}
"""What is put in the place of a node; None where a kind of fault can't be."""
