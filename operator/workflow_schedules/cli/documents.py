"""Manifests from files: YAML or JSON, several documents and Lists, with the line of each field."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from workflow_schedules.cli.problems import Problem, ProblemsError

if TYPE_CHECKING:
    from collections.abc import Iterator

FieldPath = tuple[str | int, ...]

_SIZE_LIMIT_BYTES = 10 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One object of a file.

    Attributes:
        body: parsed; of any type.
        file: name of the file as given.
        lines: line of each field, counted from 1, by its path from the object's root.
    """

    body: Any
    file: str
    lines: dict[FieldPath, int]

    def place(self, path: FieldPath) -> str:
        """Return file and line of a field, or of the nearest field around it that is written."""
        while path and path not in self.lines:
            path = path[:-1]
        return f"{self.file}:{self.lines.get(path, 1)}"


def read_documents(file: str) -> list[Document]:
    """Read a file of manifests; ``-`` is standard input.

    Raises:
        ProblemsError: it can't be read, or is no YAML.
    """
    text = _read(file)
    documents = []
    try:
        for node in yaml.compose_all(text, Loader=_Loader):
            documents += _unfold(Document(body=_construct(node), file=file, lines=dict(_lines(node, ()))))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or str(error)
        place = f"{file}:{mark.line + 1}" if mark else file
        raise ProblemsError(Problem(error="invalid_yaml", message=f"no YAML: {why}", place=place)) from error
    return documents


class _Loader(yaml.SafeLoader):
    """Reads as the API server's tools do: times stay text, and a key written twice is an error."""


def _construct_mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[str] = set()
    for key, _ in node.value:
        if key.value in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key.value!r} is written twice", key.start_mark
            )
        seen.add(key.value)
    loader.flatten_mapping(node)
    return yaml.constructor.SafeConstructor.construct_mapping(loader, node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _read(file: str) -> str:
    try:
        data = sys.stdin.buffer.read(_SIZE_LIMIT_BYTES + 1) if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise ProblemsError(
            Problem(error="unreadable_file", message=f"can't be read: {error.strerror}", place=file)
        ) from error
    if len(data) > _SIZE_LIMIT_BYTES:
        raise ProblemsError(Problem(error="unreadable_file", message="is larger than 10 MiB", place=file))
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ProblemsError(Problem(error="unreadable_file", message="is not UTF-8 text", place=file)) from error


def _construct(node: yaml.Node | None) -> Any:  # noqa: ANN401 - any YAML value
    loader = _Loader("")
    try:
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def _lines(node: yaml.Node | None, path: FieldPath) -> Iterator[tuple[FieldPath, int]]:
    if node is None:
        return
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
    if not isinstance(body, dict) or body.get("kind") != "List" or not isinstance(body.get("items"), list):
        return [document]
    return [
        Document(
            body=item,
            file=document.file,
            lines={path[2:]: line for path, line in document.lines.items() if path[:2] == ("items", index)},
        )
        for index, item in enumerate(body["items"])
    ]
