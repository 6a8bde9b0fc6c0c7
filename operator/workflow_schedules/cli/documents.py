"""Manifests from files: YAML or JSON, several documents and Lists, with the line of each field.

Whatever a file holds, the answer is documents made of what JSON knows, or a problem that says where; never a traceback.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import BaseResolver, Resolver

from workflow_schedules.cli.problems import Problem, ProblemsError

if TYPE_CHECKING:
    from collections.abc import Iterator

FieldPath = tuple[str | int, ...]

_SIZE_LIMIT_BYTES = 2 * 1024 * 1024  # an object of the API server has at most 1.5 MiB
_ALIASED_NODES_LIMIT = 10_000
# what PyYAML raises, on purpose or not, about values that their own tags don't fit
_YAML_ERRORS = (yaml.YAMLError, RecursionError, ValueError, TypeError, LookupError, AttributeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One object of a file.

    Attributes:
        body: parsed; of any type that JSON has.
        file: name of the file as given.
        lines: line of each field, counted from 1, by its path from the object's root.
    """

    body: Any
    file: str
    lines: dict[FieldPath, int]

    def line(self, path: FieldPath) -> int:
        """Return the line of a field, or of the nearest field around it that is written."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def place(self, path: FieldPath) -> str:
        """Return file and line of a field."""
        return f"{self.file}:{self.line(path)}"


def given(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that are given: null is what is left out, as the API server has it."""
    return {key: value for key, value in fields.items() if value is not None}


def read_documents(file: str) -> list[Document]:
    """Read a file of manifests; ``-`` is standard input.

    Raises:
        ProblemsError: it can't be read, or is no YAML.
    """
    text = _read(file)
    documents = []
    try:
        for node in yaml.compose_all(_json_as_yaml(text) if _is_json(text) else text, Loader=_Loader):
            documents += _unfold(Document(body=_plain(node), file=file, lines=dict(_lines(node, ()))))
    except _YAML_ERRORS as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{file}:{mark.line + 1}" if mark else file
        message = f"no YAML: {_why(error)}{_hint(text, mark.line) if mark else ''}"
        raise ProblemsError(Problem(error="invalid_yaml", message=message, place=place)) from error
    return documents


class _Loader(Composer, yaml.CSafeLoader):
    """Reads as the API server's tools do: times stay text, and a key written twice is an error.

    Text is parsed in C; nodes are put together in Python, where too deep a nesting is an error and no crash.
    """

    def __init__(self, stream: str) -> None:
        yaml.CSafeLoader.__init__(self, stream)
        Composer.__init__(self)


def _construct_mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(None, None, "a key has to be text", key.start_mark)
        if key.value in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key.value!r} is written twice", key.start_mark
            )
        seen.add(key.value)
    loader.flatten_mapping(node)
    return SafeConstructor.construct_mapping(loader, node, deep=True)


_Loader.add_constructor(BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in Resolver.yaml_implicit_resolvers.items()
}


def _read(file: str) -> str:
    if not file:
        message = "'' is no name of a file; write a path, or - for standard input"
        raise ProblemsError(Problem(error="unreadable_file", message=message))
    try:
        if file == "-":
            data = sys.stdin.buffer.read(_SIZE_LIMIT_BYTES + 1)
        else:
            with Path(file).open("rb") as opened:
                data = opened.read(_SIZE_LIMIT_BYTES + 1)
    except OSError as error:
        raise ProblemsError(
            Problem(error="unreadable_file", message=f"can't be read: {error.strerror}", place=file)
        ) from error
    if len(data) > _SIZE_LIMIT_BYTES:
        raise ProblemsError(
            Problem(error="unreadable_file", message="is larger than 2 MiB: split it into several files", place=file)
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ProblemsError(
            Problem(error="unreadable_file", message="is not UTF-8 text: write YAML or JSON", place=file)
        ) from error


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _json_as_yaml(text: str) -> str:
    """Rewrite, line by line, what only JSON may do: indent with tabs (none are in its strings) and pair surrogates."""
    pair = r"u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    return re.sub(rf"\\({pair}|.)", lambda found: _char(found[0]), text.replace("\t", " "))


def _char(escape: str) -> str:
    return str(json.loads(f'"{escape}"')) if len(escape) > 2 else escape


def _why(error: Exception) -> str:
    match error:
        case RecursionError():
            return "it is nested too deeply"
        case yaml.YAMLError():
            return str(getattr(error, "problem", None) or error)
        case ValueError():
            return str(error)
        case _:
            return "a value does not fit its !!tag, or JSON has none like it"


def _hint(text: str, line: int) -> str:
    written = text.splitlines()[line] if line < text.count("\n") + 1 else ""
    return "; write a value that begins with * in quotes" if re.search(r"[:-]\s+\*", written) else ""


def _plain(node: yaml.Node) -> Any:  # noqa: ANN401 - any JSON value
    """Return the value of a node, as the API server would see it: what JSON knows, keys as text."""
    _refuse_bombs(node)
    loader = _Loader("")
    try:
        value = loader.construct_document(node)
    finally:
        loader.dispose()
    return json.loads(json.dumps(value, allow_nan=False, ensure_ascii=False).encode())


def _refuse_bombs(root: yaml.Node) -> None:
    """Refuse aliases that stand for far more than is written.

    Raises:
        ValueError: there are too many, or one is inside of what it stands for.
    """
    sizes: dict[int, int] = {}  # 0 while it is being counted

    def size(node: yaml.Node) -> int:
        if id(node) in sizes:
            if not sizes[id(node)]:
                raise ValueError("an alias is inside of what it stands for")
            return sizes[id(node)]
        sizes[id(node)] = 0
        children: list[yaml.Node] = []
        if isinstance(node, yaml.MappingNode):
            children = [child for pair in node.value for child in pair]
        elif isinstance(node, yaml.SequenceNode):
            children = node.value
        sizes[id(node)] = 1 + sum(map(size, children))
        return sizes[id(node)]

    if size(root) > len(sizes) + _ALIASED_NODES_LIMIT:
        raise ValueError(f"its aliases stand for more than {_ALIASED_NODES_LIMIT} values: write them out")


def _lines(node: yaml.Node, path: FieldPath) -> Iterator[tuple[FieldPath, int]]:
    if not path:
        yield path, node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, key.value), key.start_mark.line + 1
            yield from _lines(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*path, index), value.start_mark.line + 1
            yield from _lines(value, (*path, index))


def _unfold(document: Document) -> list[Document]:
    """Return the items of a List, each with the lines of its own fields."""
    body = document.body
    if body is None:
        return []
    if not isinstance(body, dict) or body.get("kind") != "List" or not isinstance(body.get("items"), list | None):
        return [document]
    return [
        Document(
            body=item,
            file=document.file,
            lines={path[2:]: line for path, line in document.lines.items() if path[:2] == ("items", index)},
        )
        for index, item in enumerate(body.get("items") or [])
    ]
