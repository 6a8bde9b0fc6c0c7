"""Which changes of a module are tried: mutmut's, but for those that can't matter, and a few more that rules are about."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m
from mutmut.mutation import mutators
from mutmut.mutation.file_mutation import MutationVisitor
from mutmut.mutation.pragma_handling import IgnoredCode

_REASON = re.compile(
    r"[\"'][A-Z][A-Za-z]+[\"']"
)  # CamelCase is read by programs; what else stands in quotes is wording
_WORDING = m.FormattedString() | m.ConcatenatedString()
_LEFT_OUT = {
    mutators.operator_string,
    mutators.operator_match,
    mutators.operator_arg_removal,
    mutators.operator_swap_op,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of a module.

    Attributes:
        code: the whole module with the change.
        name: where and what, without the line, so that it stays the same when something else is edited.
        lines: of the statement that is changed; None where that runs at import, as the default of an argument does.
    """

    code: str
    name: str
    line: int
    lines: frozenset[int] | None


def mutants_of(source: str) -> Iterator[Mutant]:
    """Yield every change of a module that compiles, each once."""
    wrapper = cst.MetadataWrapper(cst.parse_module(source))
    visitor = _Visitor(_OPERATORS, IgnoredCode(set(), set(), set()))
    wrapper.visit(visitor)
    parts, seen, statements = _parts(wrapper.module), {source}, _statements(source)
    for mutation in visitor.mutations:
        part = parts[mutation.original_node]
        changed = wrapper.module.code_for_node(part.node.deep_replace(mutation.original_node, mutation.mutated_node))
        code = "".join((part.before, changed, part.after))
        if code in seen or not _compiles(code):
            continue
        seen.add(code)
        offset, change = _change(part.text, changed)
        function, lines = statements.get(part.before.count("\n") + offset, ("", None))
        yield Mutant(code, f"{function or 'module'}: {change}".rstrip(), part.before.count("\n") + offset, lines)


@dataclass(frozen=True, slots=True)
class _Part:
    """A statement of a module and what stands around it: to render it alone is ten times quicker than the whole."""

    node: cst.CSTNode
    before: str
    text: str
    after: str


def _parts(module: cst.Module) -> dict[cst.CSTNode, _Part]:
    """Return the part of a module that each node belongs to."""
    texts = [module.code_for_node(node) for node in module.body]
    start = module.code.index(texts[0])
    found: dict[cst.CSTNode, _Part] = {}
    for node, text in zip(module.body, texts, strict=True):
        part = _Part(node, module.code[:start], text, module.code[start + len(text) :])
        found.update(dict.fromkeys(_below(node), part))
        start += len(text)
    return found


def _below(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in node.children:
        yield from _below(child)


class _Visitor(MutationVisitor):
    """Leaves out wording and what only the type checker reads."""

    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        if m.matches(node, _WORDING | m.Call(func=m.Name("assert_never")) | m.Call(func=m.Name("TypeVar"))):
            return True
        if m.matches(node, m.FunctionDef()):
            return False  # mutmut leaves out decorated ones, which it can't copy
        return super()._skip_node_and_children(node)


def _another_reason(node: cst.SimpleString) -> Iterator[cst.SimpleString]:
    if _REASON.fullmatch(node.value):
        yield node.with_changes(value=f'"XX{node.value[1:-1]}"')


def _other_operator(node: cst.CSTNode) -> Iterable[cst.CSTNode]:
    """Leave `and` and `or` alone: who notices each side missing (see `_one_side`) notices that, too."""
    return () if isinstance(node, cst.BooleanOperation) else mutators.operator_swap_op(node)


def _arguments(node: cst.Call) -> Iterator[cst.Call]:
    """Give None for each argument that isn't wording."""
    for index, argument in enumerate(node.args):
        is_wording = m.matches(argument.value, _WORDING) or (argument.keyword and argument.keyword.value == "message")
        if not (argument.star or is_wording or m.matches(argument.value, m.Name("None") | m.SimpleString())):
            nothing = argument.with_changes(value=cst.Name("None"))
            yield node.with_changes(args=[*node.args[:index], nothing, *node.args[index + 1 :]])


def _other_end(node: cst.Call) -> Iterator[cst.Call]:
    swapped = {"min": "max", "max": "min", "any": "all", "all": "any"}
    if isinstance(node.func, cst.Name) and node.func.value in swapped:
        yield node.with_changes(func=cst.Name(swapped[node.func.value]))


def _without_case(node: cst.Match) -> Iterator[cst.Match]:
    for index, case in enumerate(node.cases):
        if len(node.cases) > 1 and not m.matches(case.pattern, m.MatchAs(pattern=None, name=None)):
            yield node.with_changes(cases=[*node.cases[:index], *node.cases[index + 1 :]])


def _negated(node: cst.If | cst.CompIf) -> Iterator[cst.If | cst.CompIf]:
    """Turn a condition round, unless other changes of it say as much."""
    if not m.matches(node.test, m.Name("TYPE_CHECKING") | m.Comparison() | m.BooleanOperation() | m.UnaryOperation()):
        negated = cst.UnaryOperation(cst.Not(), _in_parentheses(node.test))
        yield node.with_changes(test=negated, whitespace_before_test=cst.SimpleWhitespace(" "))


def _one_side(node: cst.BooleanOperation) -> Iterator[cst.BaseExpression]:
    yield _in_parentheses(node.left)
    yield _in_parentheses(node.right)


def _in_parentheses(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _compiles(code: str) -> bool:
    try:
        compile(code, "mutant", "exec")
    except SyntaxError:
        return False
    return True


def _change(source: str, code: str) -> tuple[int, str]:
    """Return the first changed line, and what became of it."""
    old, new = source.splitlines(), code.splitlines()
    spans = [
        span for span in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if span[0] != "equal"
    ]
    first, last = spans[0], spans[-1]
    was, becomes = (" ".join(" ".join(part).split()) for part in (old[first[1] : last[2]], new[first[3] : last[4]]))
    return first[1] + 1, f"{was}  ->  {becomes}"


def _statements(source: str) -> dict[int, tuple[str, frozenset[int] | None]]:
    """Return, for each line inside a function, that function's name and the lines of the statement it belongs to."""
    found: dict[int, tuple[str, frozenset[int] | None]] = {}

    def visit(node: ast.AST, function: str, lines: frozenset[int] | None) -> None:
        for child in ast.iter_child_nodes(node):
            name, body = function, lines
            if isinstance(child, ast.FunctionDef):
                name = f"{function}.{child.name}" if function else child.name
                body = frozenset(range(child.body[0].lineno, child.end_lineno + 1))
                found.update(dict.fromkeys(range(child.lineno, child.body[0].lineno), (name, None)))
                found.update(dict.fromkeys(body, (name, body)))
            elif isinstance(child, ast.ClassDef):
                name = child.name
            elif isinstance(child, ast.stmt | ast.match_case) and lines is not None:
                start = child.pattern.lineno if isinstance(child, ast.match_case) else child.lineno
                end = child.body[0].lineno - 1 if getattr(child, "body", None) else getattr(child, "end_lineno", start)
                own = frozenset(range(start, max(start, end) + 1))
                found.update(dict.fromkeys(own, (function, own)))
            visit(child, name, body)

    visit(ast.parse(source), "", None)
    return found


_OPERATORS: list[tuple[type, Callable[..., Iterable[cst.CSTNode]]]] = [
    *(each for each in mutators.mutation_operators if each[1] not in _LEFT_OUT),
    (cst.CSTNode, _other_operator),
    (cst.SimpleString, _another_reason),
    (cst.Call, _arguments),
    (cst.Call, _other_end),
    (cst.Match, _without_case),
    (cst.If, _negated),
    (cst.CompIf, _negated),
    (cst.BooleanOperation, _one_side),
]
