"""Values out of replies: every oddity a server was seen to produce, and the schema it is given."""

from __future__ import annotations

import json
from enum import Enum
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel

from docmemo.models.structured import UnreadableReplyError, json_schema, read_reply, response_format, schema_prompt
from tests.models.asking import Verdict

GOOD = '{"pages": [1, 2], "why": "seen"}'
VALUE = Verdict(pages=[1, 2], why="seen")


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        f"\n\n {GOOD}\n",
        f"<think>Perhaps {{this}}? {{}}</think>{GOOD}",
        f"Pages first.</think>\n{GOOD}",
        f"<THINK>a</THINK><think>b</think>{GOOD}",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}```\nDone.",
        f"Here {{as asked}} is it: {GOOD} Anything else?",
        f'A first draft was {{"pages": []}}, the answer is {GOOD}',
        f'[{{"note": 1}}] then {GOOD}',
        GOOD.replace('"', "'"),
        GOOD[:-1] + ",",
        GOOD[:-1] + ",}",
        '{pages: [1, 2], why: "seen"}',
    ],
)
def test_the_value_is_found_in(content: str) -> None:
    assert read_reply(Verdict, content)[0] == VALUE


def test_raw_control_characters_inside_strings_are_text() -> None:
    value, text = read_reply(Verdict, '{"pages": [], "why": "a\n\tb\x01"}')
    assert value.why == "a\n\tb\x01"
    assert read_reply(Verdict, text)[0] == value


def test_the_answer_may_stand_among_the_thoughts_when_nothing_else_was_said() -> None:
    assert read_reply(Verdict, None, GOOD)[0] == VALUE
    assert read_reply(Verdict, "", f"<think>{GOOD}")[0] == VALUE
    assert read_reply(Verdict, f"<think>{GOOD}", None)[0] == VALUE
    with pytest.raises(UnreadableReplyError):
        read_reply(Verdict, '{"pages": "x"}', GOOD)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "empty"),
        (None, "empty"),
        ("   ", "empty"),
        ("I cannot say.", "not a JSON object"),
        ("[1, 2]", "not a JSON object"),
        ('{"pages": [1]}', "why: Field required"),
        ('{"pages": ["x"], "why": "y"}', r"pages\.0: Input should be a valid integer"),
        ('{"pages": [NaN], "why": "y"}', "does not fit|not a JSON object"),
        ('{"a":' * 5000, "not a JSON object|does not fit"),
    ],
)
def test_what_cannot_be_read_says_why(content: str | None, problem: str) -> None:
    with pytest.raises(UnreadableReplyError, match=problem):
        read_reply(Verdict, content)


def test_half_a_surrogate_becomes_text_that_can_be_written() -> None:
    value, text = read_reply(Verdict, '{"pages": [], "why": "a\\ud83d b \\ud83d\\ude00"}')
    assert value.why == "a\ufffd b \U0001f600"
    text.encode()


@given(st.lists(st.integers()), st.text())
def test_any_value_survives_being_read_from_its_own_text(pages: list[int], why: str) -> None:
    value = Verdict(pages=pages, why=why)
    read, text = read_reply(Verdict, value.model_dump_json())
    assert read == value
    assert read_reply(Verdict, text) == (read, text)


@given(st.text(max_size=200))
def test_no_reply_breaks_the_reader(content: str) -> None:
    try:
        read_reply(Verdict, content, content)
    except UnreadableReplyError as error:
        assert str(error)


class Kind(Enum):
    TABLE = "table"
    CHART = "chart"


class Answer(BaseModel):
    """Given as an answer."""

    kind: Literal["answer"]
    text: str = Field(min_length=1, max_length=50, description="The answer.")


class Update(BaseModel):
    kind: Literal["query_update"]
    queries: list[str] = Field(max_length=3)


class Round(BaseModel):
    decision: Annotated[Answer | Update, Field(discriminator="kind")]
    carries: Kind = Kind.TABLE
    box: tuple[float, float] | None = None
    share: float = Field(0.5, ge=0, le=1)


def _objects(node: object) -> list[dict[str, object]]:
    found = []
    if isinstance(node, dict):
        found = [node] if node.get("type") == "object" else []
        node = list(node.values())
    if isinstance(node, list):
        for item in node:
            found += _objects(item)
    return found


def test_the_schema_for_servers_is_closed_complete_and_in_the_common_subset() -> None:
    schema = json_schema(Round)
    objects = _objects(schema)
    assert len(objects) == 3
    for each in objects:
        assert each["additionalProperties"] is False
        assert each["required"] == list(each["properties"])  # type: ignore[call-overload]
    text = json.dumps(schema)
    for keyword in ("default", "title", "oneOf", "discriminator", "const", "minLength", "maxLength", "prefixItems"):
        assert f'"{keyword}"' not in text
    assert schema["$defs"]["Answer"]["properties"]["kind"]["enum"] == ["answer"]
    assert schema["$defs"]["Answer"]["properties"]["text"]["description"] == "The answer."
    assert schema["properties"]["decision"]["anyOf"] == [{"$ref": "#/$defs/Answer"}, {"$ref": "#/$defs/Update"}]
    assert schema["$defs"]["Update"]["properties"]["queries"]["maxItems"] == 3


def test_a_field_that_is_named_like_a_keyword_stays() -> None:
    class Titled(BaseModel):
        title: str
        default: int

    assert list(json_schema(Titled)["properties"]) == ["title", "default"]


def test_a_schema_that_is_no_object_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(TypeError, match="not an object"):
        json_schema(RootModel[list[int]])


def test_the_form_of_json_asked_for_follows_the_parameter() -> None:
    named = response_format(Verdict, "json_schema")
    assert named is not None
    assert (named["json_schema"]["name"], named["json_schema"]["strict"]) == ("Verdict", True)
    assert response_format(Verdict, "json_object") == {"type": "json_object"}
    assert response_format(Verdict, "text") is None
    assert json.dumps(json_schema(Verdict)) in schema_prompt(Verdict)
