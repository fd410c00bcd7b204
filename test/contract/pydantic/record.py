"""Records what FastAPI and pydantic 2 answer to the requests below, into fixtures/recorded.json.

    python -m venv venv && venv/bin/pip install fastapi==0.165.0 pydantic==2.14.3 httpx
    venv/bin/python record.py

pydantic.test.ts declares the same inputs with zod, sends the same requests, and compares the answers
byte for byte (as JSON values). Bodies are strict, as ours are; types that JSON has no form of its own
for (enum, UUID, URL, time) take strings.
"""

import json
import pathlib
from enum import Enum
from typing import Annotated, Any, Literal, Union
from uuid import UUID

import fastapi
import pydantic
from fastapi import FastAPI, Header, Query
from fastapi.testclient import TestClient
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

Lax = Field(strict=False)


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)


class Behavior(str, Enum):
    at_mentions_only = "at_mentions_only"
    all_messages = "all_messages"
    intelligent = "intelligent"


class Pair(str, Enum):
    chat = "chat"
    thread = "thread"


class Leaf(Strict):
    y: int


class Inner(Strict):
    x: str
    leaves: list[Leaf] = []


class Closed(Strict):
    model_config = ConfigDict(strict=True, extra="forbid")
    a: str


class User(Strict):
    type: Literal["user"]
    user_id: str


class Agent(Strict):
    type: Literal["agent"]
    agent_id: str
    leaf: Leaf | None = None


Participant = Annotated[Union[User, Agent], Field(discriminator="type")]


class TextUpdate(Strict):
    text: str


class ChecklistUpdate(Strict):
    items: list[str]


def no_good(value: str) -> str:
    if value != "good":
        raise ValueError("only good is good")
    return value


class Everything(Strict):
    name: Annotated[str, Field(min_length=2, max_length=5)] = "name"
    letter: Annotated[str, Field(min_length=1, max_length=1)] = "a"
    code: Annotated[str, Field(pattern="^[a-z]+$")] = "code"
    nick: str | None = None
    count: Annotated[int, Field(ge=1, le=10)] = 1
    inside: Annotated[int, Field(gt=0, lt=5)] = 1
    whole: Annotated[int, Lax] = 1
    even: Annotated[int, Field(multiple_of=2)] = 2
    ratio: Annotated[float, Field(ge=0, le=1)] = 0.5
    share: Annotated[float, Field(gt=0.5, lt=1.5)] = 1
    flag: bool = True
    part: Annotated[float, Lax] = 0.5
    lax: Annotated[bool, Lax] = True
    tags: Annotated[list[str], Field(min_length=1, max_length=2)] = ["a"]
    meta_data: dict[str, Any] | None = None
    labels: dict[str, str] = {}
    behavior: Annotated[Behavior | None, Lax] = None
    pair: Annotated[Pair, Lax] = Pair.chat
    only: Literal["only"] = "only"
    either: Literal["this", "that"] = "this"
    ident: Annotated[UUID | None, Lax] = None
    at: Annotated[AwareDatetime | None, Lax] = None
    inner: Inner | None = None
    closed: Closed | None = None
    participants: list[Participant] = []
    update: TextUpdate | ChecklistUpdate | None = None
    checked: Annotated[str, AfterValidator(no_good)] = "good"


class Needed(Strict):
    url: str
    amount: int
    inner: Inner
    behavior: Annotated[Behavior, Lax]
    participant: Participant
    tags: list[str]
    meta_data: dict[str, Any]


app = FastAPI()


@app.post("/everything")
def everything(body: Everything):
    return {}


@app.post("/needed")
def needed(body: Needed):
    return {}


@app.post("/participant")
def participant(body: Participant):
    return {}


@app.get("/query")
def query(
    needed: str,
    size: Annotated[int, Query(ge=1, le=100)] = 50,
    is_active: bool | None = None,
    kind: Pair | None = None,
    name: Annotated[str | None, Query(min_length=2, max_length=3)] = None,
    ident: UUID | None = None,
):
    return {}


@app.post("/combined/{ident}")
def combined(
    ident: UUID,
    body: Needed,
    size: int,
    x_count: Annotated[int, Header()],
):
    return {}


UUID_OK = "0190a5b2-7d1c-7e8a-9c3b-2f4d6e8a0b1c"


def posts(path, cases):
    return [{"method": "POST", "path": path, "body": body} for body in cases]


def values(field, *bodies):
    """The bodies are JSON texts, so that what is no JSON value of Python's can be sent too."""
    return posts("/everything", ['{"%s": %s}' % (field, body) for body in bodies])


participant_ok = {"type": "user", "user_id": "u"}
needed_ok = {
    "url": "u",
    "amount": 1,
    "inner": {"x": "x"},
    "behavior": "all_messages",
    "participant": participant_ok,
    "tags": [],
    "meta_data": {},
}


def needed_with(**changes):
    body = {**needed_ok, **changes}
    return json.dumps({name: value for name, value in body.items() if value is not ...})


CASES = [
    # good ones: that both sides take them keeps the others honest
    *posts("/everything", ["{}", '{"unknown": 1}', '{"inner": {"x": "x", "leaves": [{"y": 1}]}}']),
    *posts("/needed", [needed_with()]),
    *values("participants", '[{"type": "user", "user_id": "u"}, {"type": "agent", "agent_id": "a"}]'),
    *values("update", '{"text": "t"}', '{"items": []}', "null"),
    *values("ident", f'"{UUID_OK}"'),
    *values("at", '"2026-01-31T12:00:00Z"', '"2026-01-31T12:00:00.123+02:00"'),
    {"method": "GET", "path": "/query?needed=a&size=1&is_active=true&kind=chat"},
    {"method": "GET", "path": f"/query?needed=a&size=100&is_active=0&ident={UUID_OK}"},
    # strings
    *values("name", "12", "null", "true", "[]", "{}", '"a"', '"abcdef"', '""', '"\U0001f600"'),
    *values("name", '"\U0001f600\U0001f600\U0001f600\U0001f600\U0001f600"'),
    *values("letter", '""', '"ab"'),
    *values("code", '"A1"', '""', "1"),
    *values("nick", "1", "[1]", "false"),
    *values("checked", '"bad"', "1"),
    # numbers
    *values("count", "0", "11", '"5"', "true", "null", "[]", "-3"),
    # strings that are no numbers or booleans: FastAPI is lax, so that it tries to parse them
    *values("whole", '"abc"', '""', '"4.5"', '"1e3"', '"0x1"'),
    *values("part", '"abc"', '"1,5"', '""'),
    *values("lax", '"maybe"', '""', '"2"'),
    # JSON has one kind of number: 4.0 is 4 here, so fractions are judged as pydantic does when it is lax
    *values("whole", "4.0", "4.5", "-0.25"),
    *values("inside", "0", "5", "9"),
    *values("even", "3"),
    *values("ratio", "-0.5", "1.5", '"0.5"', "true", "null", "2"),
    *values("share", "0.5", "1.5", "3"),
    *values("flag", '"true"', "1", "0", "null", '"yes"'),
    # lists and maps
    *values("tags", "[]", '["a", "b", "c"]', '"a"', "{}", "null", "[1]", '["a", 2]', "[null, 1]"),
    *values("meta_data", "[]", '"a"', "1", "true"),
    *values("labels", '{"a": 1}', '{"a": "x", "b": null, "c": []}', "[]", "null", '"x"'),
    # enums and literals
    *values("behavior", '"sometimes"', "1", '""', "{}", '"All_Messages"'),
    *values("pair", '"chats"', "null"),
    *values("only", '"other"', "1", "null"),
    *values("either", '"other"', "[]"),
    # formats
    *values("ident", '"x"', '""', '"0190a5b2"', '"0190a5b2-7d1c-7e8a-9c3b"', "1", '"0190a5b2-7d1c-7e8a-9c3b-2f4d6e8a0b1c0"'),
    *values("ident", '"0190a5b2-7d1c-7e8a-9c3b-2f4d6e8a0b1g"', '"0190a5b27-d1c-7e8a-9c3b-2f4d6e8a0b1c"'),
    *values("ident", '"0190a5b27d1c7e8a9c3b2f4d6e8a0b1"', '"0190A5B27D1C7E8A9C3B2F4D6E8A0B1C"', '"0190a5b2-7d1c-7e8a-9c3b-2f4d-6e8a0b1c"', '"zz90a5b2-7d1c"'),
    *values("at", '"x"', '""', '"2026-01-31T12:00:00"', '"2026-13-31T12:00:00Z"', '"2026-01-32T12:00:00Z"'),
    *values("at", '"2026-02-29T12:00:00Z"', '"2026-01-31T24:00:00Z"', '"2026-01-31T12:60:00Z"', '"2026-01-31T12:00:60Z"'),
    *values("at", '"yesterday at noon"', "[]", "null", '"2026/01/31 12:00:00Z"', '"2026-01-31X12:00:00Z"'),
    *values("at", '"2026-01-31T12:00:00Zjunk"', '"2026-1-31T12:00:00Z"'),
    # nesting
    *values("inner", "1", "[]", "{}", '{"x": 1}', '{"x": "x", "leaves": {}}', '{"x": "x", "leaves": [1, {}, {"y": "1"}]}'),
    *values("inner", '{"leaves": [{"y": null}]}', '"x"'),
    *values("closed", '{"a": "a", "b": 1, "c": {"d": 2}}', '{"b": 1}'),
    *values("participants", '[{"type": "nobody"}]', "[{}]", "[1]", '[{"type": "user"}]', '[{"type": null}]', '[{"type": 1}]'),
    *values("participants", '[{"type": "agent", "agent_id": 1, "leaf": {"y": true}}, {"type": "user", "user_id": "u"}, {}]'),
    *values("participants", "{}", "[[]]", '["user"]'),
    *values("update", "{}", "1", '{"text": 1}', '{"items": [1]}', '{"text": 1, "items": 2}'),
    # several at once, and everything missing
    *posts("/everything", ['{"name": 1, "count": true, "flag": 2, "tags": [1, 2], "inner": {}}']),
    *posts("/needed", ["{}", needed_with(url=...), needed_with(inner=...), needed_with(inner=None), needed_with(participant={})]),
    *posts("/needed", [needed_with(behavior=...), needed_with(tags=..., meta_data=...), needed_with(participant=...)]),
    *posts("/needed", [needed_with(participant={"type": "user"}, amount=None, behavior="x")]),
    *posts("/participant", ["{}", "1", "[]", '{"type": "user"}', '{"type": "x"}', "null"]),
    # bodies that are no objects, no JSON, nothing
    *posts("/everything", ["[]", '"text"', "1", "true", "null", ""]),
    *posts("/needed", ["", "null", "[1]"]),
    *posts("/everything", ["{", "}", "[", "{]", '{"a"', '{"a":', '{"a":}', '{"a" 1}', '{"a":1', '{"a":1,', '{"a":1,}', "{,}", "{1:2}"]),
    *posts("/everything", ["[1", "[1,", "[1,]", "[,]", "[1 2]", "[1}", "tru", "nul", "nope", "01", "-", "1.", ".5", "1e", "+1", "'a'"]),
    *posts("/everything", ['"a', '"a\nb"', '"\\x"', '"\\u12"', '"\\uZZZZ"', '"\\', "{} {}", "{}x", "1 2", '{"a": "b" "c"}', '{"a": [1, {"b": }]}']),
    *posts("/everything", ['{"\U0001f600": tru}', "  ", '{"a": 1 "b": 2}', "[[], {}, x]", '{"a": {}, }', "\t{\n\"a\"\n:\n}"]),
    # query strings
    *[
        {"method": "GET", "path": "/query?" + query}
        for query in [
            "",
            "needed=a&size=5abc",
            "needed=a&size=",
            "needed=a&size=0",
            "needed=a&size=101",
            "needed=a&size=abc&is_active=maybe&kind=x",
            "needed=a&is_active=",
            "needed=a&is_active=2",
            "needed=a&kind=",
            "needed=a&name=a",
            "needed=a&name=abcd",
            "needed=a&ident=x",
            "size=x",
        ]
    ],
    # several parts of one request: path, query, header, body, in this order
    {"method": "POST", "path": "/combined/x?size=y", "headers": {"x-count": "z"}, "body": "{}"},
    {"method": "POST", "path": "/combined/x", "body": "[]"},
    {"method": "POST", "path": f"/combined/{UUID_OK}", "body": needed_with(amount="1")},
    {"method": "POST", "path": f"/combined/{UUID_OK}?size=1", "headers": {"x-count": "1"}, "body": ""},
    {"method": "POST", "path": f"/combined/{UUID_OK}?size=1", "headers": {"x-count": "1"}, "body": needed_with()},
]


def record():
    client = TestClient(app)
    for case in CASES:
        headers = dict(case.get("headers", {}))
        if case["method"] == "POST":
            headers["content-type"] = "application/json"
        body = case.get("body", "").encode("utf-8", "surrogatepass")
        response = client.request(case["method"], case["path"], content=body, headers=headers)
        yield {**case, "status": response.status_code, "response": response.json()}


output = {"fastapi": fastapi.__version__, "pydantic": pydantic.VERSION, "cases": list(record())}
target = pathlib.Path(__file__).with_name("fixtures") / "recorded.json"
lines = ",\n".join("    " + json.dumps(case, ensure_ascii=True) for case in output["cases"])
target.write_text(
    '{\n  "fastapi": "%s",\n  "pydantic": "%s",\n  "cases": [\n%s\n  ]\n}\n' % (output["fastapi"], output["pydantic"], lines)
)
print(len(output["cases"]), "cases")
