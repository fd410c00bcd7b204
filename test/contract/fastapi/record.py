"""The contract as a FastAPI application, and what FastAPI makes of it.

    python -m venv venv && venv/bin/pip install fastapi==0.165.0 pydantic==2.14.3 httpx
    venv/bin/python record.py

Writes fixtures/openapi.json, the schema of the contract's fourteen operations, and fixtures/answers.json, the parts of
interactions as FastAPI answers them when a client gives only their required members, and when it gives all of them.
The tests beside this file compare both with Parley. The contract is written here once, section by section; descriptions
and titles are left out of the fixtures.
"""

import json
import pathlib
from enum import Enum
from typing import Annotated, Any, Literal, Union
from uuid import UUID

import fastapi
import pydantic
from fastapi import Body, FastAPI, Query, Security
from fastapi.security import APIKeyHeader
from fastapi.testclient import TestClient
from pydantic import BaseModel, Field

StringMap = dict[str, str]
JsonMap = dict[str, Any]


def enum(name: str, *values: str) -> type[Enum]:
    return Enum(name, {value: value for value in values}, type=str)


def tagged(*members: type[BaseModel]) -> Any:
    return Annotated[Union[members], Field(discriminator="type")]


# 2.3 Organization summary and user summary
OrganizationApplication = enum(
    "OrganizationApplication", "app_main", "app_two", "app_three", "app_four", "health", "app_five"
)


class UserSummary(BaseModel):
    display_name: str = ""
    # The contract names no URL: "a fixed default-avatar image URL".
    image_url: str = "<default avatar>"


class OrganizationSummary(BaseModel):
    id: str
    name: str
    owner: UserSummary | None = None
    application: OrganizationApplication | None = None


# 2.2 Channel participant
class AuthenticatedUserParticipant(BaseModel):
    type: Literal["authenticated_user"]
    user_id: str
    id: str
    display_name: str
    image_url: str | None
    is_owner: bool


class NonAuthenticatedUserParticipant(BaseModel):
    type: Literal["non_authenticated_user"]
    user_metadata: StringMap | None = None


class AgentParticipant(BaseModel):
    id: str
    chat_user_id: str
    type: Literal["agent"]
    name: str = ""
    description: str = ""
    is_active: bool = True
    organization: OrganizationSummary | None = None
    # Of a "wrapper type" that the contract does not show: here and below a string or null.
    image_url: str | None = None
    personality: str = ""
    website: str | None = None
    agent_capabilities: str | None = None
    agent_url: str | None = None
    agent_address: str | None = None
    agent_handle: str | None = None
    is_verified: bool = False
    allow_html_responses: bool = False


class ExternalAgentParticipant(BaseModel):
    type: Literal["external_agent"]
    agent_metadata: StringMap | None = None


ChannelParticipant = tagged(
    AuthenticatedUserParticipant, NonAuthenticatedUserParticipant, AgentParticipant, ExternalAgentParticipant
)

# 2.1 Channel
CommunicationType = enum("CommunicationType", "websocket", "messenger_a", "messenger_b", "messenger_c", "sms")
ChannelType = enum("ChannelType", "chat", "collaboration", "multi_org_chat", "thread")
ChannelSource = enum("ChannelSource", "app_main", "app_two", "app_three", "health")
AgentInvocationBehavior = enum(
    "AgentInvocationBehavior", "at_mentions_only", "all_messages", "all_messages_personal_agent", "intelligent"
)


class Channel(BaseModel):
    id: str
    type: CommunicationType
    channel_type: ChannelType
    name: str
    participants: list[ChannelParticipant]
    created_at: str
    modified: str
    meta_data: JsonMap | None = None
    source: ChannelSource | None = None
    agent_invocation_behavior: AgentInvocationBehavior | None = None
    parent_channel_id: str | None = None
    origin_message_id: str | None = None


# 2.4 Agent
FEATURES = """discover_activity location_learning enable_proactive_message general_web_search general_agent_search
planner_mode enable_media_capability messenger_a messenger_b calendar_enabled messenger_c sms alliance app_five
widget_enabled""".split()
AgentFeatures = pydantic.create_model("AgentFeatures", **{name: (bool, ...) for name in FEATURES})
AgentCategory = enum(
    "AgentCategory",
    *"""business_owner co_founder marketing sales operations research freelancer influencers gig_economy companies
    brands community_leader developer education personal alliance solo_preneur content_creator consultant tech_startup
    agent_creator""".split(),
)


class AgentImages(BaseModel):
    image_url: str | None = None
    banner_url: str | None = None


class AgentKnowledgeGraph(BaseModel):
    id: str
    name: str


class Point(BaseModel):
    type: str = "Point"
    coordinates: list[float] | None = None


class PointOfInterest(BaseModel):
    # Optional without a default that the contract states: absent where it was not given.
    id: str = None
    name: str
    display_name: str
    description: str = ""
    provider_type: str
    external_id: str | None = None
    location: Point | None = None
    street: str
    city: str
    state: str
    postal_code: str
    country: str
    url: str = ""
    image_url: str = ""
    metadata: JsonMap = {}


class Agent(BaseModel):
    id: str
    name: str
    description: str
    organization: OrganizationSummary | None
    images: AgentImages
    features: AgentFeatures
    personality: str = ""
    personal: bool | None = False
    knowledge_graph: AgentKnowledgeGraph | None = None
    website: str | None = None
    agent_capabilities: str | None = None
    logic_model_temperature: float = 0.1
    agent_address: str | None = None
    agent_handle: str | None = None
    voice_id: str = "jqcCZkN6Knx8BJ5TBdYR"
    point_of_interest: PointOfInterest | None = None
    category: AgentCategory | None = None
    interest_tags: list[str] = []
    meta_data: JsonMap = {}


# 2.5 Website crawl
class Crawl(BaseModel):
    id: str
    created: str
    modified: str
    url: str
    scan_depth: int
    last_scan_date: str
    status: str | None
    crawl_stats: JsonMap = {}
    crawled_urls: list[Any] = []
    website_metadata: JsonMap = {}
    error_details: str | None = None
    is_active: bool = True


# 2.6 Media item
class MediaItem(BaseModel):
    id: str
    created: str
    modified: str
    name: str | None
    url: str | None
    source_url: str | None
    description: str | None
    status: str | None
    format: str = ""
    resource_type: str = ""
    width: int = 0
    height: int = 0


# 2.7 Report
class Report(BaseModel):
    id: str
    created: str
    modified: str
    results: str
    status: str | None
    query: str = "What's going on in Grand Rapids, Michigan?"


# 2.8 Knowledge document
class Document(BaseModel):
    id: str
    created: str
    modified: str
    status: str | None
    name: str = ""
    external_id: str | None = None
    data: JsonMap | None = None


# 2.9 Knowledge-graph search result records, and 4.13
class KnowledgeNode(BaseModel):
    uuid: str
    name: str
    summary: str | None = None
    labels: list[str] | None = None
    created_at: str | None = None


class KnowledgeEdge(BaseModel):
    uuid: str
    fact: str
    source_node_uuid: str
    target_node_uuid: str
    name: str | None = None
    created_at: str | None = None
    valid_at: str | None = None


class KnowledgeSearch(BaseModel):
    total_nodes: int
    total_edges: int
    nodes: list[KnowledgeNode]
    edges: list[KnowledgeEdge]


# 2.10 Page metadata
class PageMeta(BaseModel):
    total: int
    has_next: bool
    has_previous: bool
    page: int
    next_cursor: str | None = None


class CrawlPage(BaseModel):
    items: list[Crawl]
    meta: PageMeta


class MediaPage(BaseModel):
    items: list[MediaItem]
    meta: PageMeta


class ReportPage(BaseModel):
    items: list[Report]
    meta: PageMeta


# 2.11 Websocket ticket
class WebsocketTicket(BaseModel):
    value: str
    expires_at: str
    channel_id: str


# 2.13 Interaction participant
class InteractionAuthenticatedUser(BaseModel):
    type: Literal["authenticated_user"]
    user_id: str


class InteractionNonAuthenticatedUser(BaseModel):
    type: Literal["non_authenticated_user"]
    user_metadata: StringMap | None = None


class InteractionMaybeUser(BaseModel):
    type: Literal["maybe_user"]
    email: str


class ForwardedForAgent(BaseModel):
    agent_address: str
    agent_name: str
    image_url: str | None = None
    agent_avatar_href: Annotated[str | None, Field(deprecated=True)] = None


class InteractionAgent(BaseModel):
    type: Literal["agent"]
    agent_id: str
    agent_metadata: StringMap | None = None
    forwarded_for_agent: ForwardedForAgent | None = None


class InteractionExternalAgent(BaseModel):
    type: Literal["external_agent"]
    agent_metadata: StringMap | None = None


class InteractionSystem(BaseModel):
    type: Literal["system"]


InteractionParticipant = tagged(
    InteractionAuthenticatedUser,
    InteractionNonAuthenticatedUser,
    InteractionMaybeUser,
    InteractionAgent,
    InteractionExternalAgent,
    InteractionSystem,
)


# 2.14 Interaction content items
class TextContent(BaseModel):
    type: Literal["text"]
    text: str


class AudioTagContent(BaseModel):
    type: Literal["audio_tag"]
    tag: str


class MediaMetadata(BaseModel):
    media_id: str
    mime_type: str
    width: int
    height: int
    description: str
    source_url: str | None = None
    name: str | None = None
    resource_type: str | None = None
    format: str | None = None
    preview: str | None = None


class MediaContent(BaseModel):
    type: Literal["media"]
    meta_data: MediaMetadata
    media_url: str | None = None


class CustomContent(BaseModel):
    type: Literal["custom_content"]
    name: str
    version: str
    data: JsonMap
    alt_text: str | None = None


class ToolCallContent(BaseModel):
    type: Literal["tool_call"]
    tool_name: str
    tool_args: JsonMap
    tool_call_id: str | None = None
    display_text: str | None = None


ToolCallStatus = enum("ToolCallStatus", "success", "failure", "rate_limited", "action_required")


class ToolCallResultContent(BaseModel):
    type: Literal["tool_call_result"]
    tool_name: str
    tool_result: JsonMap
    tool_call_id: str | None = None
    status: ToolCallStatus | None = None
    display_text: str | None = None


ChecklistState = enum("ChecklistState", "pending", "active", "done")


class ChecklistItem(BaseModel):
    label: str
    state: ChecklistState = ChecklistState("pending")


class TextUpdate(BaseModel):
    text: str
    kind: Literal["string"] = "string"


class ChecklistUpdate(BaseModel):
    items: list[ChecklistItem]
    kind: Literal["checklist"] = "checklist"


class ToolCallUpdateContent(BaseModel):
    type: Literal["tool_call_update"]
    tool_name: str
    tool_call_id: str
    sequence: int
    update: TextUpdate | ChecklistUpdate


class Funds(BaseModel):
    amount: str
    currency: str
    payment_method: str = "payment_provider_a"


class RequestPaymentContent(BaseModel):
    type: Literal["request_payment"]
    accepted_funds: list[Funds]
    recipient: str
    deadline_seconds: int
    reference: str | None = None
    description: str | None = None
    metadata: JsonMap | None = None


class CommitPaymentContent(BaseModel):
    type: Literal["commit_payment"]
    funds: Funds
    recipient: str
    transaction_id: str
    reference: str | None = None
    description: str | None = None
    metadata: JsonMap | None = None


class RejectPaymentContent(BaseModel):
    type: Literal["reject_payment"]
    reason: str | None = None


class CompletePaymentContent(BaseModel):
    type: Literal["complete_payment"]
    transaction_id: str | None = None


class CancelPaymentContent(BaseModel):
    type: Literal["cancel_payment"]
    transaction_id: str | None = None
    reason: str | None = None


InteractionContent = tagged(
    TextContent,
    AudioTagContent,
    MediaContent,
    CustomContent,
    ToolCallContent,
    ToolCallResultContent,
    ToolCallUpdateContent,
    RequestPaymentContent,
    CommitPaymentContent,
    RejectPaymentContent,
    CompletePaymentContent,
    CancelPaymentContent,
)

# 2.15 Invocation config
MentionType = enum("MentionType", "agent", "user")
IdentifierType = enum("IdentifierType", "handle", "address", "uuid")
MentionOutcome = enum("MentionOutcome", "private_friend_request", "private_already_requested")
ReasoningEffort = enum("ReasoningEffort", "low", "medium", "high")


class StructuredMention(BaseModel):
    type: MentionType
    id: str
    identifier: str
    identifier_type: IdentifierType
    offset: int | None = None
    length: int | None = None


class PrivateMentionRequest(BaseModel):
    twin_id: str
    outcome: MentionOutcome
    friendship_id: str
    channel_id: str
    owner_display_name: str | None = None


class InvocationConfig(BaseModel):
    planner_mode: bool | None = None
    athena_mode: bool | None = None
    voice_mode: bool | None = None
    enable_avatar: bool | None = None
    force_collaboration: bool | None = None
    use_reasoning_history: bool | None = None
    thinking: bool | None = None
    enable_web_search: bool | None = None
    enable_study_mode: bool | None = None
    enable_scheduled_prompt_tools: bool | None = None
    avoid_repetition: bool | None = None
    enable_threads: bool | None = None
    slash_only: bool | None = None
    supports_tool_call_upsert: bool | None = None
    model_name: str | None = None
    voice_id: str | None = None
    character_id: str | None = None
    activity_id: str | None = None
    feed_activity_id: str | None = None
    thinking_budget: int | None = None
    reasoning_effort: ReasoningEffort | None = None
    collaboration_participant_ids: list[str] | None = None
    slash_skills: list[str] | None = None
    mentions: list[StructuredMention] | None = None
    withheld_mentions: list[StructuredMention] | None = None
    private_mention_requests: list[PrivateMentionRequest] | None = None


# 2.12 Interaction
ContentRole = enum(
    "ContentRole",
    *"""user_message agent_response agent_reasoning tool_call tool_call_result tool_call_update internal_error
    channel_notification""".split(),
)
TargetRole = enum("TargetRole", "user", "assistant")


class ReactionSummary(BaseModel):
    interaction_id: str
    emoji: str
    count: int
    reacted_by_me: bool
    target_role: TargetRole
    reacted_by_agent: bool = False
    reactor_names: list[str] = []
    target_sender_id: str | None = None


class AgentReadReceipt(BaseModel):
    id: str
    message_event_id: str
    interaction_id: str
    agent_id: str
    read_at: str


class Interaction(BaseModel):
    id: str
    created_at: str
    channel_id: str
    participant: InteractionParticipant
    content: list[InteractionContent]
    content_role: ContentRole
    complete: bool
    metadata: JsonMap | None = None
    invocation_config: InvocationConfig | None = None
    nested_interactions: list["Interaction"] | None = None
    interaction_id: str | None = None
    sequence: int | None = None
    span_id: str | None = None
    parent_span_id: str | None = None
    organization_id: str | None = None
    organization_application: str | None = None
    reactions: list[ReactionSummary] | None = None
    mention_invite_prompt_dismissed: bool = False
    agent_read_receipts: list[AgentReadReceipt] | None = None


# 4 Endpoints
class ChannelUpdate(BaseModel):
    name: str = ""
    meta_data: JsonMap | None = None
    agent_invocation_behavior: AgentInvocationBehavior | None = None


class AgentPrompt(BaseModel):
    # Optional without a default that the contract states.
    prompt: str = None


class AgentPromptReply(BaseModel):
    message: str


class CrawlCreate(BaseModel):
    url: str
    knowledge_graph: str | None = None
    scan_depth: int = 1
    max_pages: int = 50


class MediaCreate(BaseModel):
    name: str = ""
    source_url: str | None = None
    knowledge_graph: str | None = None
    description: str | None = None
    channel: str | None = None
    message: str | None = None


app = FastAPI(dependencies=[Security(APIKeyHeader(name="Authorization"))])
Deprecated = Query(deprecated=True)


def not_run() -> Any:
    raise NotImplementedError


@app.patch("/api/v1/channels/{id}")
def update_channel(id: str, body: ChannelUpdate) -> Channel:
    return not_run()


@app.post("/api/v1/channels/{id}/websocket_ticket")
def create_websocket_ticket(id: str) -> WebsocketTicket:
    return not_run()


@app.get("/api/v1/agents/{id}")
def get_agent(id: str) -> Agent:
    return not_run()


@app.post("/api/v1/agents/{id}/prompt")
def prompt_agent(id: UUID, body: AgentPrompt) -> AgentPromptReply:
    return not_run()


@app.post("/api/v1/crawls")
def create_crawl(body: CrawlCreate) -> Crawl:
    return not_run()


@app.get("/api/v1/crawls")
def list_crawls(
    size: int = 50,
    page: int = 1,
    status: str | None = None,
    url: str | None = None,
    is_active: bool | None = True,
    knowledge_graph: str | None = None,
) -> CrawlPage:
    return not_run()


@app.get("/api/v1/crawls/{id}")
def get_crawl(id: str) -> Crawl:
    return not_run()


@app.post("/api/v1/media")
def create_media(body: MediaCreate) -> MediaItem:
    return not_run()


@app.get("/api/v1/media")
def list_media(
    size: int = 50,
    page: int = 1,
    twin: str | None = None,
    twin_id: Annotated[str | None, Deprecated] = None,
    community: str | None = None,
    community_id: Annotated[str | None, Deprecated] = None,
    organization: str | None = None,
    organization_id: Annotated[str | None, Deprecated] = None,
    resource_type: str | None = None,
    format: str | None = None,
    knowledge_graph: str | None = None,
) -> MediaPage:
    return not_run()


@app.get("/api/v1/reports")
def list_reports(
    size: int = 50, page: int = 1, status: str | None = None, knowledge_graph: str | None = None
) -> ReportPage:
    return not_run()


@app.get("/api/v1/reports/{id}")
def get_report(id: str) -> Report:
    return not_run()


@app.get("/api/v1/documents/{id}")
def get_document(id: str) -> Document:
    return not_run()


@app.get("/api/v1/knowledge/{id}/search")
def search_knowledge(id: str, query: str = "*", limit: int = 10) -> KnowledgeSearch:
    return not_run()


@app.get("/api/v1/interactions/{interaction_id}")
def get_interaction(interaction_id: str) -> Interaction:
    return not_run()


def without_prose(part: Any, is_map: bool = False) -> Any:
    """Without titles, descriptions and ids of operations; `is_map`: the keys of `part` are names, not keywords."""
    if isinstance(part, list):
        return [without_prose(one) for one in part]
    if not isinstance(part, dict):
        return part
    prose = () if is_map else ("title", "description", "summary", "operationId")
    maps = ("properties", "schemas", "paths", "responses", "mapping")
    return {key: without_prose(value, key in maps) for key, value in part.items() if is_map or key not in prose}


# Parts of interactions as clients give them: with the required members alone, and with all.
MENTION = {"type": "agent", "id": "a", "identifier": "b", "identifier_type": "handle"}
REQUEST = {"twin_id": "t", "outcome": "private_friend_request", "friendship_id": "f", "channel_id": "c"}
METADATA = {"media_id": "m", "mime_type": "image/png", "width": 1, "height": 2, "description": "a.png"}
FUNDS = {"amount": "1", "currency": "EUR"}
FORWARDED = {"agent_address": "a", "agent_name": "b"}
URL = "https://example.com/a.png"

PARTS = {
    "participant": [
        {"type": "non_authenticated_user"},
        {"type": "non_authenticated_user", "user_metadata": None},
        {"type": "non_authenticated_user", "user_metadata": {"ip": "::1"}},
        {"type": "maybe_user", "email": "a@example.com"},
        {"type": "agent", "agent_id": "a"},
        {"type": "agent", "agent_id": "a", "agent_metadata": {"a": "b"}, "forwarded_for_agent": FORWARDED},
        {
            "type": "agent",
            "agent_id": "a",
            "forwarded_for_agent": {**FORWARDED, "image_url": URL, "agent_avatar_href": URL},
        },
        {"type": "external_agent"},
        {"type": "external_agent", "agent_metadata": {"name": "n"}},
        {"type": "system"},
    ],
    "content": [
        [],
        [{"type": "text", "text": "a"}, {"type": "audio_tag", "tag": "t"}],
        [{"type": "media", "meta_data": METADATA}],
        [
            {
                "type": "media",
                "meta_data": {
                    **METADATA,
                    "source_url": URL,
                    "name": "n",
                    "resource_type": "image",
                    "format": "png",
                    "preview": URL,
                },
                "media_url": URL,
            }
        ],
        [{"type": "custom_content", "name": "n", "version": "1", "data": {"type": "media", "meta_data": {}}}],
        [{"type": "custom_content", "name": "n", "version": "1", "data": {}, "alt_text": "a"}],
        [
            {"type": "tool_call", "tool_name": "t", "tool_args": {"x": 1}},
            {"type": "tool_call", "tool_name": "t", "tool_args": {}, "tool_call_id": "i", "display_text": "d"},
        ],
        [
            {"type": "tool_call_result", "tool_name": "t", "tool_result": {"type": "tool_call"}},
            {
                "type": "tool_call_result",
                "tool_name": "t",
                "tool_result": {},
                "tool_call_id": "i",
                "status": "failure",
                "display_text": "d",
            },
        ],
        [{"type": "tool_call_update", "tool_name": "t", "tool_call_id": "1", "sequence": 1, "update": {"text": "a"}}],
        [
            {
                "type": "tool_call_update",
                "tool_name": "t",
                "tool_call_id": "2",
                "sequence": 1,
                "update": {"items": [{"label": "l"}, {"label": "m", "state": "done"}]},
            }
        ],
        [
            {
                "type": "tool_call_update",
                "tool_name": "t",
                "tool_call_id": "3",
                "sequence": 1,
                "update": {"items": [], "kind": "checklist"},
            }
        ],
        [
            {"type": "request_payment", "accepted_funds": [FUNDS], "recipient": "r", "deadline_seconds": 1},
            {
                "type": "request_payment",
                "accepted_funds": [{**FUNDS, "payment_method": "p"}],
                "recipient": "r",
                "deadline_seconds": 1,
                "reference": "a",
                "description": "d",
                "metadata": {"a": None},
            },
            {"type": "commit_payment", "funds": FUNDS, "recipient": "r", "transaction_id": "t"},
            {
                "type": "commit_payment",
                "funds": {**FUNDS, "payment_method": "p"},
                "recipient": "r",
                "transaction_id": "t",
                "reference": "a",
                "description": "d",
                "metadata": {},
            },
            {"type": "reject_payment"},
            {"type": "reject_payment", "reason": "r"},
            {"type": "complete_payment"},
            {"type": "complete_payment", "transaction_id": "t"},
            {"type": "cancel_payment"},
            {"type": "cancel_payment", "transaction_id": "t", "reason": "r"},
        ],
    ],
    "invocation_config": [
        None,
        {},
        {"thinking": True, "mentions": []},
        {"mentions": [MENTION, {**MENTION, "offset": 0, "length": 2}], "withheld_mentions": [MENTION]},
        {"private_mention_requests": [REQUEST, {**REQUEST, "owner_display_name": "o"}]},
        {
            "enable_scheduled_prompt_tools": False,
            "model_name": "m",
            "thinking_budget": 1,
            "reasoning_effort": "high",
            "collaboration_participant_ids": ["a"],
            "slash_skills": [],
        },
    ],
}

answers = FastAPI()
Embedded = Body(embed=True)


@answers.post("/participant")
def answer_participant(value: Annotated[InteractionParticipant, Embedded]) -> InteractionParticipant:
    return value


@answers.post("/content")
def answer_content(value: Annotated[list[InteractionContent], Embedded]) -> list[InteractionContent]:
    return value


@answers.post("/invocation_config")
def answer_invocation_config(value: Annotated[InvocationConfig | None, Embedded]) -> InvocationConfig | None:
    return value


def answered() -> list[dict[str, Any]]:
    client = TestClient(answers)
    cases = []
    for member, values in PARTS.items():
        for given in values:
            response = client.post(f"/{member}", json={"value": given})
            assert response.status_code == 200, response.text
            cases.append({"member": member, "given": given, "answered": response.json()})
    return cases


fixtures = pathlib.Path(__file__).with_name("fixtures")
openapi = without_prose(app.openapi())
openapi["info"] = {"title": "The contract", "version": f"fastapi {fastapi.__version__}, pydantic {pydantic.VERSION}"}
(fixtures / "openapi.json").write_text(json.dumps(openapi, indent=2) + "\n")
(fixtures / "answers.json").write_text(json.dumps(answered(), indent=2) + "\n")
