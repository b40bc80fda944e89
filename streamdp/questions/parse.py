"""A question out of what somebody gives: texts of a query, or values of JSON. Every door refuses alike."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, get_type_hints

import msgspec
from msgspec import inspect

from streamdp.answers.listing import printable
from streamdp.questions.asking import QuestionError
from streamdp.questions.questions import Asked

Some = TypeVar("Some", bound=Asked)


def parse(takes: type[Some], given: Mapping[str, Any], *, texts: bool = False) -> Some:
    """The question that has these fields; ``texts`` says that numbers among them are written as texts.

    Raises QuestionError, which names the field and says what it takes.
    """
    fields = _fields(takes)  # type: ignore[arg-type]  # a class of structs can be hashed
    for name in given:
        if name not in fields:
            there = ", ".join(fields) or "none"
            raise QuestionError(f"{printable(str(name))[:40]}: there is no such field (there are: {there})")
    made = {}
    for name, (kind, field) in fields.items():
        if name in given:
            try:
                made[field.name] = msgspec.convert(_whole(given[name]), kind, strict=not texts)
            except (msgspec.ValidationError, ValueError, RecursionError):
                raise QuestionError(f"{name}: {wanted(field.type)}") from None
        elif field.required:
            raise QuestionError(f"{name}: {wanted(field.type)}")
    return takes(**made)


def _whole(value: Any) -> Any:
    """The same with whole numbers as such: JSON does not tell 5.0 from 5."""
    if isinstance(value, list):
        return [_whole(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


@cache
def _fields(takes: type[Asked]) -> dict[str, tuple[Any, inspect.Field]]:
    """Type and description of each field of a question."""
    kinds, described = get_type_hints(takes, include_extras=True), inspect.type_info(takes)
    assert isinstance(described, inspect.StructType)
    return {field.encode_name: (kinds[field.name], field) for field in described.fields}


def wanted(kind: inspect.Type) -> str:
    """What a field takes, in words."""
    said = ""
    while isinstance(kind, inspect.Metadata | inspect.UnionType):
        if isinstance(kind, inspect.Metadata):
            said, kind = (kind.extra_json_schema or {}).get("description", said), kind.type
        else:
            kind = next(each for each in kind.types if not isinstance(each, inspect.NoneType))
    match kind:
        case inspect.IntType(ge=least, le=most):
            return f"a whole number{_between(least, most)}"
        case inspect.BoolType():
            return "true or false"
        case inspect.LiteralType(values=values):
            return f"one of {', '.join(map(str, values))}"
        case inspect.StrType(min_length=least, max_length=most):
            if most is None:
                return f"a text: {said}"
            return f"a text of {f'{least} to' if least else 'at most'} {most:,} characters: {said}"
    return said or "a list"


def _between(least: int | None, most: int | None) -> str:
    if least is None:
        return ""
    return f" from {least}" if most is None else f" from {least} to {most}"
