/* Made from the API's OpenAPI document by `npm run client:generate`: changes in here are lost. A test compares. */

/** An object without the other members of `Names`. */
type Only<Names extends string, T> = T & { [Name in Exclude<Names, keyof T>]?: never };
type Parameters<T> = Only<"query" | "header" | "path" | "cookie", T>;
type Path<T> = { parameters: Parameters<{}> } &
    Only<"get" | "put" | "post" | "delete" | "options" | "head" | "patch" | "trace", T>;
type Operation<T> = Only<"requestBody", T>;

export interface paths {
    "/api/v1/agents": Path<{
        /** List agents, newest first; without personal ones, unless they are asked for */
        get: operations["listAgents"];
        /** Create an agent */
        post: operations["createAgent"];
    }>;
    "/api/v1/agents/{id}": Path<{
        /** Read an agent */
        get: operations["getAgent"];
        /** Change an agent: absent fields stay as they are, null gives a field its default */
        patch: operations["updateAgent"];
    }>;
    "/api/v1/agents/{id}/activate": Path<{ /** Activate a deactivated agent */ post: operations["activateAgent"]; }>;
    "/api/v1/agents/{id}/deactivate": Path<{ /** Deactivate an agent: it joins no channels and answers nothing until it is activated */ post: operations["deactivateAgent"]; }>;
    "/api/v1/agents/{id}/events": Path<{ /** Follow the changes of an agent */ get: operations["streamAgentEvents"]; }>;
    "/api/v1/agents/{id}/invocations/events": Path<{ /** Follow the invocations of an external agent, with a key of its own */ get: operations["streamAgentInvocations"]; }>;
    "/api/v1/agents/{id}/prompt": Path<{
        /**
         * Send a prompt to an agent, and wait for its reply
         * @description The prompt is a message in the caller's direct channel with the agent, and the reply a run there. A request that waited for too long is 504, and one that is disconnected cancels nothing: repeated with the same `Idempotency-Key`, it gets the answer of the same run.
         */
        post: operations["promptAgent"];
    }>;
    "/api/v1/agents/{id}/public_prompt": Path<{
        /**
         * Send a prompt to an agent with `widget_enabled`, without an API key
         * @description Limited per address and minute, and per agent and day. All other agents, and unknown ids, are 401. There is no `Idempotency-Key` without an account.
         */
        post: operations["promptPublicAgent"];
    }>;
    "/api/v1/agents/{id}/runs": Path<{ /** List the runs of an external agent, newest first, with a key of its own */ get: operations["listAgentRuns"]; }>;
    "/api/v1/agents/{id}/stream_prompt": Path<{
        /**
         * Send a prompt to an agent, and stream its run as server-sent events
         * @description Posts the prompt as `promptAgent` does. The frames are those of the channel, of the turn of the prompt alone (see `/asyncapi.json`), between the events `prompt`, with the ids, and `answer`, with the outcome. With `Last-Event-ID`, the stream of the prompt that it names is resumed, and nothing is posted.
         */
        post: operations["streamPrompt"];
    }>;
    "/api/v1/agents/{id}/tools": Path<{ /** Ask the tool servers of an agent which tools it has, and which are left out */ get: operations["listAgentTools"]; }>;
    "/api/v1/agents/{id}/webhook": Path<{ /** Set the webhook of an external agent, with a new secret, or remove it */ post: operations["setAgentWebhook"]; }>;
    "/api/v1/channels": Path<{
        /** List channels, newest first */
        get: operations["listChannels"];
        /** Create a channel or a thread */
        post: operations["createChannel"];
    }>;
    "/api/v1/channels/{id}": Path<{
        /** Read a channel in its current state, or at a point in its history */
        get: operations["getChannel"];
        /** Update a channel of the organization */
        patch: operations["updateChannel"];
    }>;
    "/api/v1/channels/{id}/archive": Path<{
        /**
         * Archive a channel, which makes it read-only
         * @description Fails its incomplete interactions. New threads are refused; existing ones stay open.
         */
        post: operations["archiveChannel"];
    }>;
    "/api/v1/channels/{id}/events": Path<{
        /**
         * Stream the events of a channel as server-sent events
         * @description The `data` of each is the `event` frame of the websocket protocol (see `/asyncapi.json`); its `id` is the sequence. A client that reconnects with `Last-Event-ID` misses no events.
         */
        get: operations["streamChannelEvents"];
    }>;
    "/api/v1/channels/{id}/interactions": Path<{
        /** List a channel's interactions, by sequence */
        get: operations["listInteractions"];
        /** Post an interaction, complete or to be completed later */
        post: operations["postInteraction"];
    }>;
    "/api/v1/channels/{id}/invocations": Path<{ /** List which agents were asked to answer which messages of a channel, and why; newest first */ get: operations["listInvocations"]; }>;
    "/api/v1/channels/{id}/participants": Path<{
        /** List the participants of a channel, with the ids of their records */
        get: operations["listChannelParticipants"];
        /** Add a participant, with the details it has now; has no effect if the user or agent already participates */
        post: operations["addChannelParticipant"];
    }>;
    "/api/v1/channels/{id}/participants/{participant_id}": Path<{ /** Remove a participant */ delete: operations["removeChannelParticipant"]; }>;
    "/api/v1/channels/{id}/read_marker": Path<{
        /** Read how far a participant has read in a channel, and the number of messages after that */
        get: operations["getReadMarker"];
        /**
         * Move the read marker of a participant forward; has no effect if it is further already
         * @description All devices of the user share the marker, and those that follow the channel receive it.
         */
        put: operations["moveReadMarker"];
    }>;
    "/api/v1/channels/{id}/read_markers": Path<{ /** List how far each user that takes part in a channel has read */ get: operations["listReadMarkers"]; }>;
    "/api/v1/channels/{id}/websocket_ticket": Path<{
        /**
         * Create a ticket for opening a websocket on a channel within one minute
         * @description The frames of the websocket are described in `/asyncapi.json`.
         */
        post: operations["createWebsocketTicket"];
    }>;
    "/api/v1/channels/{id}/websocket_tickets": Path<{ /** Alias of `createWebsocketTicket` */ post: operations["createWebsocketTicketAlias"]; }>;
    "/api/v1/crawls": Path<{
        /** List crawls, newest first */
        get: operations["listCrawls"];
        /** Crawl a website: its pages become documents, from which the knowledge graph learns */
        post: operations["createCrawl"];
    }>;
    "/api/v1/crawls/{id}": Path<{
        /** Read a crawl */
        get: operations["getCrawl"];
        /** Deactivate a crawl permanently: a scan under way is cancelled, and documents stay */
        delete: operations["deactivateCrawl"];
    }>;
    "/api/v1/crawls/{id}/cancel": Path<{ /** Cancel the scan under way; its pages stay */ post: operations["cancelCrawl"]; }>;
    "/api/v1/crawls/{id}/events": Path<{ /** Follow a crawl: its events as server-sent events, until the scan has ended */ get: operations["streamCrawlEvents"]; }>;
    "/api/v1/crawls/{id}/rescan": Path<{ /** Crawl again: documents change where pages have changed, and are deleted where pages are gone */ post: operations["rescanCrawl"]; }>;
    "/api/v1/documents": Path<{
        /** List documents, newest first */
        get: operations["listDocuments"];
        /**
         * Create a document, or change the one with the same `external_id`
         * @description Exactly one of `text`, `data` and `media` is the content. Files are uploaded: see `uploadDocument`.
         */
        post: operations["createDocument"];
    }>;
    "/api/v1/documents/{id}": Path<{
        /** Read a document */
        get: operations["getDocument"];
        /** Delete a document; its facts are withdrawn from the graph */
        delete: operations["deleteDocument"];
    }>;
    "/api/v1/documents/{id}/content": Path<{
        /**
         * Read what a document says: its text, or the file that was uploaded
         * @description As a download of its content type. Of pages of crawls it is the readable text, as Markdown.
         */
        get: operations["getDocumentContent"];
    }>;
    "/api/v1/documents/{id}/events": Path<{
        /**
         * Follow the progress of a document
         * @description Server-sent events: `document.queued`, `document.processing`, `document.ready`, `document.failed` and `document.deleted`, with the document as data.
         */
        get: operations["streamDocumentEvents"];
    }>;
    "/api/v1/documents/uploads": Path<{
        /**
         * Create a document from a file, or change the one with the same `external_id`
         * @description The body is the file. Its type is found by the ending of `name` and the content, unless `Content-Type` is one of text/plain, text/markdown, text/html, application/json, application/pdf.
         */
        post: operations["uploadDocument"];
    }>;
    "/api/v1/interactions/{interaction_id}": Path<{
        /** Read an interaction */
        get: operations["getInteraction"];
        /**
         * Delete the content of one's own complete message
         * @description What remains is its place, sender and time, with `deleted_at`. Reads of the past, event streams and websockets no longer show the content; the log keeps it.
         */
        delete: operations["deleteInteraction"];
        /**
         * Replace the content of one's own complete message
         * @description The message keeps its place, and `edited_at` says when. No agent is asked again.
         */
        patch: operations["editInteraction"];
    }>;
    "/api/v1/interactions/{interaction_id}/complete": Path<{ /** Complete an incomplete interaction */ post: operations["completeInteraction"]; }>;
    "/api/v1/interactions/{interaction_id}/content": Path<{ /** Add content to an incomplete interaction */ post: operations["appendInteractionContent"]; }>;
    "/api/v1/interactions/{interaction_id}/deltas": Path<{
        /**
         * Append to the draft of an incomplete interaction, or replace it
         * @description Publishes the text to subscribers of the channel. Drafts are ephemeral: reads do not return them, and they are deleted five minutes after the last delta, or when the interaction completes or fails.
         */
        post: operations["writeInteractionDelta"];
    }>;
    "/api/v1/interactions/{interaction_id}/fail": Path<{ /** Fail an incomplete interaction */ post: operations["failInteraction"]; }>;
    "/api/v1/interactions/{interaction_id}/mention_invite_prompt/dismiss": Path<{ /** Dismiss the mention-invite prompt of a message that the calling user sent */ post: operations["dismissMentionInvitePrompt"]; }>;
    "/api/v1/interactions/{interaction_id}/pin": Path<{
        /** Pin an interaction to its channel */
        put: operations["pinInteraction"];
        /** Unpin an interaction */
        delete: operations["unpinInteraction"];
    }>;
    "/api/v1/interactions/{interaction_id}/reactions/{emoji}": Path<{
        /** React to an interaction, as the calling user or as an agent */
        put: operations["addReaction"];
        /** Remove a reaction of the calling user or of an agent */
        delete: operations["removeReaction"];
    }>;
    "/api/v1/interactions/{interaction_id}/read_receipts": Path<{ /** Record that an agent has read a user's message; repetitions have no effect */ post: operations["recordReadReceipt"]; }>;
    "/api/v1/interactions/search": Path<{
        /**
         * Search the messages of the channels that the caller may read
         * @description Finds complete messages of users and agents as they are now, also in archived channels: by their texts, the alternative texts of custom content, and the names and descriptions of media; of longer messages by the first 32768 characters. Further pages, by `next_cursor`, leave out messages that were posted after the first one.
         */
        get: operations["searchInteractions"];
    }>;
    "/api/v1/keys": Path<{
        /** List API keys, newest first */
        get: operations["listKeys"];
        /**
         * Create an API key
         * @description Only this response contains the secret. Repeating the request with its `Idempotency-Key` returns the same key with `"key": null`.
         */
        post: operations["createKey"];
    }>;
    "/api/v1/keys/{id}": Path<{ /** Read an API key, without its secret */ get: operations["getKey"]; }>;
    "/api/v1/keys/{id}/revoke": Path<{
        /**
         * Revoke an API key permanently; it stops working immediately
         * @description The calling key must have all scopes of the revoked key.
         */
        post: operations["revokeKey"];
    }>;
    "/api/v1/keys/{id}/rotate": Path<{
        /**
         * Rotate an API key: create a key with the same name, principal and scopes
         * @description The calling key must have all scopes of the old key, and must not expire before the new one. The old key works until it is revoked, or for `grace_seconds`; at most two keys of a chain are valid at a time. The response is that of `createKey`.
         */
        post: operations["rotateKey"];
    }>;
    "/api/v1/knowledge": Path<{
        /** List knowledge graphs, newest first */
        get: operations["listKnowledgeGraphs"];
        /** Create an empty knowledge graph */
        post: operations["createKnowledgeGraph"];
    }>;
    "/api/v1/knowledge/{id}": Path<{
        /** Read a knowledge graph in its current state, or at a point in its history */
        get: operations["getKnowledgeGraph"];
        /** Delete a knowledge graph permanently, with its documents */
        delete: operations["deleteKnowledgeGraph"];
        /** Rename or describe a knowledge graph */
        patch: operations["updateKnowledgeGraph"];
    }>;
    "/api/v1/knowledge/{id}/edges/{edge_id}/end": Path<{
        /**
         * End an edge: its fact is no longer true from a time on
         * @description The edge stays in the graph, for times at which it was true. An edge that has been ended can be ended at another time.
         */
        post: operations["endKnowledgeEdge"];
    }>;
    "/api/v1/knowledge/{id}/facts": Path<{
        /**
         * Add facts to a knowledge graph
         * @description All are added, or none. Facts that the graph has already stay as they are; `source` and `target` name nodes, which are created if there are none of these names.
         */
        post: operations["addKnowledgeFacts"];
    }>;
    "/api/v1/knowledge/{id}/search": Path<{
        /**
         * Search the nodes and edges of a knowledge graph
         * @description The best matches first; equal ones in the order of their ids.
         */
        get: operations["searchKnowledge"];
    }>;
    "/api/v1/media": Path<{
        /** List media items, newest first */
        get: operations["listMedia"];
        /** Create a media item: its file is fetched and processed */
        post: operations["createMedia"];
    }>;
    "/api/v1/media/{id}": Path<{
        /** Read a media item */
        get: operations["getMedia"];
        /** Delete a media item: the addresses of its files answer 404 from then on */
        delete: operations["deleteMedia"];
    }>;
    "/api/v1/media/deletions/{id}": Path<{ /** Read who deleted a media item, when, and the SHA-256 of its file */ get: operations["getMediaDeletion"]; }>;
    "/api/v1/media/files/{token}": Path<{ /** Read a file by its signed address, which expires; with ranges */ get: operations["getMediaFile"]; }>;
    "/api/v1/media/uploads": Path<{
        /**
         * Create a media item from a file, or begin a resumable upload
         * @description The body is the file, of any `Content-Type`: the type is found out from the content. With `Upload-Length` and without a body, it begins a resumable upload (tus 1.0.0), whose `Location` is in the reply.
         */
        post: operations["uploadMedia"];
    }>;
    "/api/v1/media/uploads/{id}": Path<{
        /**
         * Read how much of a resumable upload has arrived
         * @description Clients call HEAD before they continue: it ends a request that is still sending, and stores the bytes that have arrived.
         */
        get: operations["getMediaUpload"];
        /** Cancel a resumable upload; the media item of a complete one stays */
        delete: operations["cancelMediaUpload"];
        /** Continue a resumable upload at its offset; the last part creates the media item with the same id */
        patch: operations["continueMediaUpload"];
    }>;
    "/api/v1/organizations": Path<{
        /** List all organizations, newest first */
        get: operations["listOrganizations"];
        /** Create an organization */
        post: operations["createOrganization"];
    }>;
    "/api/v1/organizations/{id}": Path<{
        /** Read your organization, or with the scope `platform` any organization */
        get: operations["getOrganization"];
        /** Update your organization, or with the scope `platform` any organization */
        patch: operations["updateOrganization"];
    }>;
    "/api/v1/reports": Path<{
        /** List reports, newest first */
        get: operations["listReports"];
        /** Research a question in a knowledge graph, and write a report on it */
        post: operations["createReport"];
    }>;
    "/api/v1/reports/{id}": Path<{ /** Read a report */ get: operations["getReport"]; }>;
    "/api/v1/reports/{id}/cancel": Path<{ /** Cancel a report that is not written yet */ post: operations["cancelReport"]; }>;
    "/api/v1/reports/{id}/events": Path<{ /** Follow the research of a report */ get: operations["streamReportEvents"]; }>;
    "/api/v1/runs/{id}": Path<{ /** Read a run of an agent, with its steps */ get: operations["getRun"]; }>;
    "/api/v1/runs/{id}/cancel": Path<{ /** Cancel a run; the text that was written so far is kept */ post: operations["cancelRun"]; }>;
    "/api/v1/runs/{id}/conversation": Path<{ /** Read what an external agent is to answer */ get: operations["getRunConversation"]; }>;
    "/api/v1/runs/{id}/deltas": Path<{
        /**
         * Append to the draft of the answer of a run, or replace it
         * @description Subscribers of the channel read it. The first one posts the response, incomplete.
         */
        post: operations["writeRunDelta"];
    }>;
    "/api/v1/runs/{id}/failure": Path<{ /** Fail a run; its draft is kept as the response. Repeating it has no effect */ post: operations["failRun"]; }>;
    "/api/v1/runs/{id}/interactions": Path<{
        /**
         * Show a tool call, its updates and its result, a payment request or other content below the message
         * @description A call and its result are posted once, by their `tool_call_id`; the id of the run is put before it.
         */
        post: operations["postRunInteraction"];
    }>;
    "/api/v1/runs/{id}/response": Path<{ /** Answer a run; the response replaces its draft. Repeating it has no effect */ post: operations["answerRun"]; }>;
    "/api/v1/token-issuers": Path<{
        /** List token issuers, newest first */
        get: operations["listTokenIssuers"];
        /**
         * Register a party that signs tokens for users of the organization
         * @description A token is a JWT with `iss`, `aud`, `sub` (the id of the user with this issuer), `iat` and `exp`, at most a day later. Its user is a member: it sees the channels in which it takes part.
         */
        post: operations["createTokenIssuer"];
    }>;
    "/api/v1/token-issuers/{id}": Path<{
        /** Read a token issuer */
        get: operations["getTokenIssuer"];
        /** Delete a token issuer; all of its tokens are refused from then on */
        delete: operations["deleteTokenIssuer"];
        /** Update a token issuer; tokens that a removed key signed are refused from then on */
        patch: operations["updateTokenIssuer"];
    }>;
    "/api/v1/users": Path<{
        /** List users, newest first */
        get: operations["listUsers"];
        /** Create a user */
        post: operations["createUser"];
    }>;
    "/api/v1/users/{id}": Path<{
        /** Read a user */
        get: operations["getUser"];
        /** Deactivate a user permanently; its API keys stop working immediately */
        delete: operations["deactivateUser"];
        /** Update a user */
        patch: operations["updateUser"];
    }>;
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Agent: {
            agent_address: string | null;
            agent_capabilities: string | null;
            agent_handle: string | null;
            allow_html_responses: boolean;
            category: components["schemas"]["AgentCategory"] | null;
            /** Format: date-time */
            created: string;
            description: string;
            features: components["schemas"]["AgentFeatures"];
            id: string;
            images: {
                banner_url: string | null;
                image_url: string | null;
            };
            instructions: string | null;
            /** @default [] */
            interest_tags: string[];
            /** @description A deactivated agent joins no channels and answers nothing */
            is_active: boolean;
            /** @description Null also after the graph was deleted */
            knowledge_graph: {
                id: string;
                name: string;
            } | null;
            /** @default 0.1 */
            logic_model_temperature: number;
            mcp_servers: components["schemas"]["McpServer"][];
            /** @default {} */
            meta_data: { [key: string]: unknown; };
            model_name: string | null;
            /** Format: date-time */
            modified: string;
            name: string;
            /** @description Null in frames */
            organization: components["schemas"]["OrganizationSummary"] | null;
            /**
             * @description Lists omit the agent unless they ask for personal ones
             * @default false
             */
            personal: boolean | null;
            /** @default */
            personality: string;
            point_of_interest: components["schemas"]["PointOfInterest"] | null;
            runtime: components["schemas"]["AgentRuntime"];
            tools: string[] | null;
            use_default_temperature: boolean;
            /** @default jqcCZkN6Knx8BJ5TBdYR */
            voice_id: string;
            /** @description Shown to keys with the scope `admin`, as it may hold a token; null for all others, and in frames */
            webhook_url: string | null;
            website: string | null;
        };
        AgentCategory: "business_owner" | "co_founder" | "marketing" | "sales" | "operations" | "research" | "freelancer" | "influencers" | "gig_economy" | "companies" | "brands" | "community_leader" | "developer" | "education" | "personal" | "alliance" | "solo_preneur" | "content_creator" | "consultant" | "tech_startup" | "agent_creator";
        /** @example {"name":"Guide","description":"Answers questions about orders","instructions":"Answer in one sentence."} */
        AgentCreateInput: {
            agent_address?: string | null;
            agent_capabilities?: string | null;
            agent_handle?: string | null;
            /** @description Whether clients may render the HTML of its answers; otherwise they escape it */
            allow_html_responses?: boolean | null;
            category?: components["schemas"]["AgentCategory"] | null;
            description?: string | null;
            features?: components["schemas"]["AgentFeatureChangesInput"] | null;
            images?: {
                banner_url?: string | null;
                image_url?: string | null;
            } | null;
            instructions?: string | null;
            interest_tags?: string[] | null;
            knowledge_graph?: string | null;
            /** @description Default: 0.1 */
            logic_model_temperature?: number | null;
            /** @description Servers whose tools the agent may use, by the Model Context Protocol. Replaces all of them */
            mcp_servers?: components["schemas"]["McpServerAddInput"][] | null;
            meta_data?: { [key: string]: unknown; } | null;
            model_name?: string | null;
            /** @description Name of the agent */
            name: string;
            personal?: boolean | null;
            personality?: string | null;
            point_of_interest?: components["schemas"]["PointOfInterestAddInput"] | null;
            /** @description What answers for the agent: `parley` (default), or, with `external`, its team over the API */
            runtime?: components["schemas"]["AgentRuntime"] | null;
            /** @description The only tools that the agent may use; default: all that its features allow */
            tools?: string[] | null;
            /** @description Whether the model endpoint's own default is used, and `logic_model_temperature` is not sent */
            use_default_temperature?: boolean | null;
            voice_id?: string | null;
            website?: string | null;
        };
        /** @description Absent ones stay as they are; of a new agent, they are false */
        AgentFeatureChangesInput: {
            alliance?: boolean;
            app_five?: boolean;
            calendar_enabled?: boolean;
            discover_activity?: boolean;
            enable_media_capability?: boolean;
            enable_proactive_message?: boolean;
            general_agent_search?: boolean;
            general_web_search?: boolean;
            location_learning?: boolean;
            messenger_a?: boolean;
            messenger_b?: boolean;
            messenger_c?: boolean;
            planner_mode?: boolean;
            sms?: boolean;
            widget_enabled?: boolean;
        };
        AgentFeatures: {
            alliance: boolean;
            app_five: boolean;
            calendar_enabled: boolean;
            discover_activity: boolean;
            enable_media_capability: boolean;
            enable_proactive_message: boolean;
            general_agent_search: boolean;
            general_web_search: boolean;
            location_learning: boolean;
            messenger_a: boolean;
            messenger_b: boolean;
            messenger_c: boolean;
            planner_mode: boolean;
            sms: boolean;
            widget_enabled: boolean;
        };
        AgentInvocationBehavior: "at_mentions_only" | "all_messages" | "all_messages_personal_agent" | "intelligent";
        AgentPage: {
            items: components["schemas"]["Agent"][];
            meta: components["schemas"]["PageMeta"];
        };
        AgentParticipant: {
            agent_address: string | null;
            agent_capabilities: string | null;
            agent_handle: string | null;
            agent_url: string | null;
            /** @default false */
            allow_html_responses: boolean;
            /** @description Id of the participant record, used to remove the participant */
            chat_user_id: string;
            /** @default */
            description: string;
            id: string;
            image_url: string | null;
            /** @default true */
            is_active: boolean;
            /** @default false */
            is_verified: boolean;
            /** @default */
            name: string;
            organization: components["schemas"]["OrganizationSummary"] | null;
            /** @default */
            personality: string;
            type: "agent";
            website: string | null;
        };
        AgentParticipantAddInput: {
            /** @description An active agent of the organization */
            id: string;
            type: "agent";
        };
        AgentReadReceipt: {
            agent_id: string;
            id: string;
            interaction_id: string;
            message_event_id: string;
            /** Format: date-time */
            read_at: string;
        };
        AgentRuntime: "parley" | "external";
        AgentTool: {
            description: string;
            /** @description Whether Parley makes a call again whose outcome it does not know */
            is_repeatable: boolean;
            name: string;
            /** @description The name by which the model calls it */
            offered_as: string;
        };
        AgentTools: { tool_servers: components["schemas"]["AgentToolServer"][]; };
        AgentToolServer: {
            /** @description Tools that the agent does not have; the name may be unknown */
            left_out: components["schemas"]["LeftOutTool"][];
            name: string;
            /** @description Why the server is not `ready`. Words of the server are in quotes */
            reason: string | null;
            /** @description `pending`: the server has not answered yet */
            state: "ready" | "failed" | "pending";
            /** @description The tools that the agent has */
            tools: components["schemas"]["AgentTool"][];
            url: string;
        };
        /** @example {"instructions":"Answer in two sentences."} */
        AgentUpdateInput: {
            agent_address?: string | null;
            agent_capabilities?: string | null;
            agent_handle?: string | null;
            /** @description Whether clients may render the HTML of its answers; otherwise they escape it */
            allow_html_responses?: boolean | null;
            category?: components["schemas"]["AgentCategory"] | null;
            description?: string | null;
            features?: components["schemas"]["AgentFeatureChangesInput"] | null;
            images?: {
                banner_url?: string | null;
                image_url?: string | null;
            } | null;
            instructions?: string | null;
            interest_tags?: string[] | null;
            knowledge_graph?: string | null;
            /** @description Default: 0.1 */
            logic_model_temperature?: number | null;
            /** @description Servers whose tools the agent may use, by the Model Context Protocol. Replaces all of them */
            mcp_servers?: components["schemas"]["McpServerAddInput"][] | null;
            meta_data?: { [key: string]: unknown; } | null;
            model_name?: string | null;
            /** @description Name of the agent */
            name?: string;
            personal?: boolean | null;
            personality?: string | null;
            point_of_interest?: components["schemas"]["PointOfInterestAddInput"] | null;
            /** @description What answers for the agent: `parley` (default), or, with `external`, its team over the API */
            runtime?: components["schemas"]["AgentRuntime"] | null;
            /** @description The only tools that the agent may use; default: all that its features allow */
            tools?: string[] | null;
            /** @description Whether the model endpoint's own default is used, and `logic_model_temperature` is not sent */
            use_default_temperature?: boolean | null;
            voice_id?: string | null;
            website?: string | null;
        };
        AgentWebhook: {
            /** @description Signs the requests. Only this response has it: null if an `Idempotency-Key` replays it */
            secret: string | null;
            url: string | null;
        };
        /** @example {"url":"https://agents.example.org/parley"} */
        AgentWebhookChangeInput: { /** @description Gets the invocations of the agent; null removes the webhook */ url: string | null; };
        ApiKey: {
            access: components["schemas"]["KeyAccess"];
            /** Format: date-time */
            created_at: string;
            /** @description Expiry of the key, or the end of its grace period */
            expires_at: string | null;
            id: string;
            /** @description Last four characters of the secret */
            last_four: string;
            name: string;
            organization_id: string;
            principal: {
                id: string;
                type: components["schemas"]["PrincipalType"];
            };
            revoked_at: string | null;
            rotated_from: string | null;
            rotated_to: string | null;
            scopes: components["schemas"]["KeyScope"][];
        };
        /** @example {"name":"backend","scopes":["read","write"]} */
        ApiKeyCreateInput: {
            /** @description `participation`: only the channels in which its user takes part, with the scopes `read` and `write` alone; the default for a key of a user. `organization`: everything in the organization; the default for a key of a service, which takes part in no channel */
            access?: components["schemas"]["KeyAccess"];
            /** @description Expiry of the key; must be in the future, and no later than that of the calling key, which is the default. Null: the key does not expire */
            expires_at?: string | null;
            /** @description Purpose of the key */
            name: string;
            /** @description An organization other than that of the API key; requires the scope `platform` */
            organization_id?: string;
            /** @description The user of the organization, or the service, that the key authenticates. Default: the caller */
            principal?: {
                id: string;
                type: components["schemas"]["PrincipalType"];
            };
            /** @description Must be scopes of the calling key. `impersonate` allows acting as other users and agents, `agent` answering as the external agent whose id is that of the service */
            scopes: components["schemas"]["KeyScope"][];
        };
        ApiKeyPage: {
            items: components["schemas"]["ApiKey"][];
            meta: components["schemas"]["PageMeta"];
        };
        /** @example {} */
        ApiKeyRotateInput: {
            /** @description Expiry of the new key. Default: that of the old key. Null: none */
            expires_at?: string | null;
            /** @description Seconds until the old key stops working. Default: it works until it is revoked */
            grace_seconds?: number | null;
        } | null;
        AudioTagContent: {
            tag: string;
            type: "audio_tag";
        };
        AudioTagContentInput: {
            tag: string;
            type: "audio_tag";
        };
        AuthenticatedUserParticipant: {
            display_name: string;
            /** @description Id of the participant record, used to remove the participant */
            id: string;
            image_url: string | null;
            /** @description Whether the user belongs to the organization that owns the channel */
            is_owner: boolean;
            type: "authenticated_user";
            user_id: string;
        };
        AuthenticatedUserParticipantAddInput: {
            type: "authenticated_user";
            user_id: string;
        };
        CancelPaymentContent: {
            /** @default null */
            reason: string | null;
            /** @default null */
            transaction_id: string | null;
            type: "cancel_payment";
        };
        CancelPaymentContentInput: {
            /** @default null */
            reason?: string | null;
            /** @default null */
            transaction_id?: string | null;
            type: "cancel_payment";
        };
        ChangedAgent: {
            agent_address: string | null;
            agent_capabilities: string | null;
            agent_handle: string | null;
            allow_html_responses: boolean;
            category: components["schemas"]["AgentCategory"] | null;
            /** Format: date-time */
            created: string;
            description: string;
            features: components["schemas"]["AgentFeatures"];
            id: string;
            images: {
                banner_url: string | null;
                image_url: string | null;
            };
            instructions: string | null;
            /** @default [] */
            interest_tags: string[];
            /** @description A deactivated agent joins no channels and answers nothing */
            is_active: boolean;
            /** @description Null also after the graph was deleted */
            knowledge_graph: {
                id: string;
                name: string;
            } | null;
            /** @default 0.1 */
            logic_model_temperature: number;
            mcp_servers: components["schemas"]["McpServer"][];
            /** @default {} */
            meta_data: { [key: string]: unknown; };
            model_name: string | null;
            /** Format: date-time */
            modified: string;
            name: string;
            /** @description Null in frames */
            organization: components["schemas"]["OrganizationSummary"] | null;
            /**
             * @description Lists omit the agent unless they ask for personal ones
             * @default false
             */
            personal: boolean | null;
            /** @default */
            personality: string;
            point_of_interest: components["schemas"]["PointOfInterest"] | null;
            runtime: components["schemas"]["AgentRuntime"];
            /** @description What was found at the `mcp_servers` that the request sets */
            tool_servers?: components["schemas"]["AgentToolServer"][];
            tools: string[] | null;
            use_default_temperature: boolean;
            /** @default jqcCZkN6Knx8BJ5TBdYR */
            voice_id: string;
            /** @description Shown to keys with the scope `admin`, as it may hold a token; null for all others, and in frames */
            webhook_url: string | null;
            website: string | null;
        };
        Channel: {
            agent_invocation_behavior: components["schemas"]["AgentInvocationBehavior"] | null;
            channel_type: components["schemas"]["ChannelType"];
            /** Format: date-time */
            created_at: string;
            id: string;
            meta_data: { [key: string]: unknown; } | null;
            /** Format: date-time */
            modified: string;
            name: string;
            origin_message_id: string | null;
            /** @description The user that administers the channel */
            owner_id: string | null;
            parent_channel_id: string | null;
            participants: components["schemas"]["ChannelParticipant"][];
            /** @description In the order in which they were pinned. Absent if nothing ever was */
            pinned_interactions?: components["schemas"]["PinnedInteraction"][];
            /** @description In lists with `include_unread` */
            read_marker?: components["schemas"]["ReadMarker"];
            /** @description What a message of a user does to runs that answer earlier ones: with `queue`, and null, it is answered after them; `restart` cancels them */
            run_concurrency: components["schemas"]["RunConcurrency"] | null;
            source: components["schemas"]["ChannelSource"] | null;
            type: components["schemas"]["CommunicationType"];
        };
        /** @example {"name":"Order 4711"} */
        ChannelCreateInput: {
            agent_invocation_behavior?: components["schemas"]["AgentInvocationBehavior"] | null;
            /** @description Default: `thread` with a `parent_channel_id`, otherwise `chat` */
            channel_type?: components["schemas"]["ChannelType"];
            meta_data?: { [key: string]: unknown; } | null;
            /** @description Channel name */
            name: string;
            origin_message_id?: string | null;
            owner_id?: string | null;
            parent_channel_id?: string | null;
            /** @description Default: the calling user */
            participants?: components["schemas"]["ChannelParticipantAddInput"][];
            /** @description What a message of a user does to runs that answer earlier ones: with `queue`, and null, it is answered after them; `restart` cancels them */
            run_concurrency?: components["schemas"]["RunConcurrency"] | null;
            source?: components["schemas"]["ChannelSource"] | null;
            /** @default websocket */
            type?: components["schemas"]["CommunicationType"];
        };
        ChannelPage: {
            items: components["schemas"]["Channel"][];
            meta: components["schemas"]["PageMeta"];
        };
        ChannelParticipant: components["schemas"]["AuthenticatedUserParticipant"] | components["schemas"]["NonAuthenticatedUserParticipant"] | components["schemas"]["AgentParticipant"] | components["schemas"]["ExternalAgentParticipant"];
        /** @example {"type":"agent","id":"01a1ff85-0000-7000-8000-000000000000"} */
        ChannelParticipantAddInput: components["schemas"]["AuthenticatedUserParticipantAddInput"] | components["schemas"]["NonAuthenticatedUserParticipantAddInput"] | components["schemas"]["AgentParticipantAddInput"] | components["schemas"]["ExternalAgentParticipantAddInput"];
        ChannelParticipantList: {
            items: {
                participant: components["schemas"]["ChannelParticipant"];
                participant_id: string;
            }[];
        };
        ChannelSource: "app_main" | "app_two" | "app_three" | "health";
        ChannelType: "chat" | "collaboration" | "multi_org_chat" | "thread";
        /** @example {"name":"Order 4711, delivered"} */
        ChannelUpdateInput: {
            agent_invocation_behavior?: components["schemas"]["AgentInvocationBehavior"] | null;
            meta_data?: { [key: string]: unknown; } | null;
            /** @description Channel name */
            name?: string;
            /** @description What a message of a user does to runs that answer earlier ones: with `queue`, and null, it is answered after them; `restart` cancels them */
            run_concurrency?: components["schemas"]["RunConcurrency"] | null;
        };
        ChecklistItem: {
            label: string;
            /** @default pending */
            state: components["schemas"]["ChecklistItemState"];
        };
        ChecklistItemInput: {
            label: string;
            /** @default pending */
            state?: components["schemas"]["ChecklistItemState"];
        };
        ChecklistItemState: "pending" | "active" | "done";
        CommitPaymentContent: {
            /** @default null */
            description: string | null;
            funds: components["schemas"]["Funds"];
            /** @default null */
            metadata: { [key: string]: unknown; } | null;
            recipient: string;
            /** @default null */
            reference: string | null;
            transaction_id: string;
            type: "commit_payment";
        };
        CommitPaymentContentInput: {
            /** @default null */
            description?: string | null;
            funds: components["schemas"]["FundsInput"];
            /** @default null */
            metadata?: { [key: string]: unknown; } | null;
            recipient: string;
            /** @default null */
            reference?: string | null;
            transaction_id: string;
            type: "commit_payment";
        };
        CommunicationType: "websocket" | "messenger_a" | "messenger_b" | "messenger_c" | "sms";
        CompletePaymentContent: {
            /** @default null */
            transaction_id: string | null;
            type: "complete_payment";
        };
        CompletePaymentContentInput: {
            /** @default null */
            transaction_id?: string | null;
            type: "complete_payment";
        };
        ContentRole: "user_message" | "agent_response" | "agent_reasoning" | "tool_call" | "tool_call_result" | "tool_call_update" | "internal_error" | "channel_notification";
        ConversationRole: "user" | "assistant";
        Crawl: {
            crawl_stats: {
                /** @description Of all responses, decoded */
                bytes: number;
                /** @description Of the texts that were found */
                characters: number;
                /** @description Pages that have a document of their own */
                documents: number;
                duplicates: number;
                /** @description Null while the scan runs */
                duration_ms: number | null;
                /** @description `all_pages`, `max_pages` (also after three requests for each of them), `max_bytes` or `max_time` */
                ended_by: string | null;
                /** @description Pages that could not be read, by reason */
                failures: { [key: string]: number; };
                /** @description Pages that were not learnt, by reason, such as `no_text` */
                left_out: { [key: string]: number; };
                /** @description Pages that were requested */
                pages: number;
                /** @description URLs that were discovered and not visited */
                pending: number;
                /** @description Number of the scan, from 1 */
                scan: number;
                skipped: number;
                unchanged: number;
            };
            /** @default [] */
            crawled_urls: {
                /** @description Of the text that was found; null for a PDF: its document says it */
                characters: number | null;
                document_id: string | null;
                /** @description Why there is no document, or why it is that of an earlier scan */
                error: string | null;
                outcome: "read" | "unchanged" | "duplicate" | "gone" | "skipped" | "failed";
                /** @description HTTP status of the last response; null without one */
                status: number | null;
                title: string | null;
                url: string;
            }[];
            /** Format: date-time */
            created: string;
            error_details: string | null;
            id: string;
            /** @default true */
            is_active: boolean;
            knowledge_graph: string | null;
            /** @description When the last scan ended; while it has not, when it was requested */
            last_scan_date: string;
            /** @description Applies when `scan_depth` is above 1 */
            max_pages: number;
            /** Format: date-time */
            modified: string;
            scan_depth: number;
            /** @description `Queued`, `Crawling: 3 of 50 pages`, `Completed`, `Completed: <why early>`, `Cancelled` or `Failed: <why>` */
            status: string | null;
            url: string;
            /**
             * @description Of the start page; empty until it is read
             * @default {}
             */
            website_metadata: {
                description?: string | null;
                icon?: string | null;
                language?: string | null;
                title?: string | null;
            };
        };
        /** @example {"url":"https://www.example.org/help","knowledge_graph":"01a1ff85-0000-7000-8000-000000000000","scan_depth":2,"max_pages":50} */
        CrawlCreateInput: {
            knowledge_graph?: string | null;
            /**
             * @description Pages to read, with a document each; applies when `scan_depth` is above 1
             * @default 50
             */
            max_pages?: number;
            /**
             * @description 1: the page alone; 2: the pages it links to, too; …
             * @default 1
             */
            scan_depth?: number;
            /** @description Page to start from */
            url: string;
        };
        CrawlPage: {
            items: components["schemas"]["Crawl"][];
            meta: components["schemas"]["PageMeta"];
        };
        CreatedApiKey: {
            access: components["schemas"]["KeyAccess"];
            /** Format: date-time */
            created_at: string;
            /** @description Expiry of the key, or the end of its grace period */
            expires_at: string | null;
            id: string;
            /** @description The secret, which is not stored: null if an `Idempotency-Key` replays the response */
            key: string | null;
            /** @description Last four characters of the secret */
            last_four: string;
            name: string;
            organization_id: string;
            principal: {
                id: string;
                type: components["schemas"]["PrincipalType"];
            };
            revoked_at: string | null;
            rotated_from: string | null;
            rotated_to: string | null;
            scopes: components["schemas"]["KeyScope"][];
        };
        CustomContent: {
            /** @default null */
            alt_text: string | null;
            data: { [key: string]: unknown; };
            name: string;
            type: "custom_content";
            version: string;
        };
        CustomContentInput: {
            /** @default null */
            alt_text?: string | null;
            data: { [key: string]: unknown; };
            name: string;
            type: "custom_content";
            version: string;
        };
        Document: {
            /**
             * @description Characters of text that were found; null until it is `Ready`
             * @default null
             */
            characters: number | null;
            /** Format: date-time */
            created: string;
            /** @description The object that the document was created with as `data` */
            data: { [key: string]: unknown; } | null;
            external_id: string | null;
            id: string;
            /**
             * @description What the knowledge graph did not learn: `no_text`, `pages_without_text` (pages of a PDF that hold only images), `pages_over_limit`, `text_over_limit`, `facts_over_limit`
             * @default []
             */
            left_out: {
                /** @description Of pages */
                count: number | null;
                what: "no_text" | "pages_without_text" | "pages_over_limit" | "text_over_limit" | "facts_over_limit";
            }[];
            /** Format: date-time */
            modified: string;
            /** @default */
            name: string;
            /** @description `Queued`, `Processing`, `Ready`, or `Failed: <why>` */
            status: string | null;
        };
        /** @example {"knowledge_graph":"01a1ff85-0000-7000-8000-000000000000","name":"Opening hours","text":"We open at nine."} */
        DocumentCreateInput: {
            /** @description Default: `text/plain`, or `application/json` for `data` */
            content_type?: ("text/plain" | "text/markdown" | "text/html" | "application/json" | "application/pdf") | null;
            data?: { [key: string]: unknown; } | null;
            external_id?: string | null;
            /** @description Id of the knowledge graph that learns from the document */
            knowledge_graph: string;
            media?: string | null;
            /**
             * @description Name of the document; default: the title of the content
             * @default
             */
            name?: string;
            text?: string | null;
        };
        DocumentPage: {
            items: components["schemas"]["Document"][];
            meta: components["schemas"]["PageMeta"];
        };
        /** @description Every error but 422 */
        Error: {
            /** @description For programs */
            code?: string;
            /** @description For people */
            detail: string;
            request_id?: string;
        };
        ExternalAgentParticipant: {
            agent_metadata: { [key: string]: string; } | null;
            type: "external_agent";
        };
        ExternalAgentParticipantAddInput: {
            agent_metadata?: { [key: string]: string; } | null;
            type: "external_agent";
        };
        FoundInteraction: {
            /** @description At most three excerpts with words that match */
            highlights: components["schemas"]["Highlight"][];
            interaction: components["schemas"]["Interaction"];
            /** @description How well the message matches; null in a list of the newest */
            score: number | null;
        };
        FoundInteractionPage: {
            items: components["schemas"]["FoundInteraction"][];
            meta: components["schemas"]["PageMeta"];
        };
        Funds: {
            amount: string;
            currency: string;
            /** @default payment_provider_a */
            payment_method: string;
        };
        FundsInput: {
            amount: string;
            currency: string;
            /** @default payment_provider_a */
            payment_method?: string;
        };
        Highlight: {
            /** @description Index of the item in `content` */
            content_index: number;
            /** @description Member of the item: `text`, `alt_text`, `meta_data.name` or `meta_data.description` */
            member: string;
            /** @description Of the excerpt in the member, in UTF-16 code units */
            offset: number;
            /** @description The excerpt: plain text, not HTML */
            parts: components["schemas"]["HighlightPart"][];
        };
        HighlightPart: {
            is_match: boolean;
            text: string;
        };
        HTTPValidationError: { detail?: components["schemas"]["ValidationError"][]; };
        Interaction: {
            agent_read_receipts: components["schemas"]["AgentReadReceipt"][] | null;
            channel_id: string;
            complete: boolean;
            content: components["schemas"]["InteractionContent"][];
            content_role: components["schemas"]["ContentRole"];
            /** Format: date-time */
            created_at: string;
            /**
             * Format: date-time
             * @description Absent if it was not deleted; otherwise the content is empty
             */
            deleted_at?: string;
            /**
             * Format: date-time
             * @description Absent if the content was not edited
             */
            edited_at?: string;
            id: string;
            /** @description Id of the user turn */
            interaction_id: string | null;
            invocation_config: components["schemas"]["InvocationConfig"] | null;
            /** @default false */
            mention_invite_prompt_dismissed: boolean;
            metadata: { [key: string]: unknown; } | null;
            /** @description Present on request: all descendants, ordered by sequence. Null in each of them */
            nested_interactions?: components["schemas"]["Interaction"][] | null;
            organization_application: string | null;
            organization_id: string | null;
            parent_span_id: string | null;
            participant: components["schemas"]["InteractionParticipant"];
            reactions: components["schemas"]["ReactionSummary"][] | null;
            /** @description Position among all events of the channel, from 1 */
            sequence: number | null;
            span_id: string | null;
        };
        InteractionAgent: {
            agent_id: string;
            /** @default null */
            agent_metadata: { [key: string]: string; } | null;
            /** @default null */
            forwarded_for_agent: {
                agent_address: string;
                /** @default null */
                agent_avatar_href: string | null;
                agent_name: string;
                /** @default null */
                image_url: string | null;
            } | null;
            type: "agent";
        };
        InteractionAgentInput: {
            agent_id: string;
            /** @default null */
            agent_metadata?: { [key: string]: string; } | null;
            /** @default null */
            forwarded_for_agent?: {
                agent_address: string;
                /** @default null */
                agent_avatar_href?: string | null;
                agent_name: string;
                /** @default null */
                image_url?: string | null;
            } | null;
            type: "agent";
        };
        InteractionAuthenticatedUser: {
            type: "authenticated_user";
            user_id: string;
        };
        InteractionAuthenticatedUserInput: {
            type: "authenticated_user";
            user_id: string;
        };
        /** @example {"content":[{"type":"text","text":"It arrives tomorrow."}]} */
        InteractionCompletionInput: { /** @description Replaces the content */ content?: components["schemas"]["InteractionContentInput"][] | null; };
        InteractionContent: components["schemas"]["TextContent"] | components["schemas"]["AudioTagContent"] | components["schemas"]["MediaContent"] | components["schemas"]["CustomContent"] | components["schemas"]["ToolCallContent"] | components["schemas"]["ToolCallResultContent"] | components["schemas"]["ToolCallUpdateContent"] | components["schemas"]["RequestPaymentContent"] | components["schemas"]["CommitPaymentContent"] | components["schemas"]["RejectPaymentContent"] | components["schemas"]["CompletePaymentContent"] | components["schemas"]["CancelPaymentContent"];
        /** @example {"content":[{"type":"text","text":"It has left the warehouse."}]} */
        InteractionContentAppendInput: { content: components["schemas"]["InteractionContentInput"][]; };
        InteractionContentInput: components["schemas"]["TextContentInput"] | components["schemas"]["AudioTagContentInput"] | components["schemas"]["MediaContentInput"] | components["schemas"]["CustomContentInput"] | components["schemas"]["ToolCallContentInput"] | components["schemas"]["ToolCallResultContentInput"] | components["schemas"]["ToolCallUpdateContentInput"] | components["schemas"]["RequestPaymentContentInput"] | components["schemas"]["CommitPaymentContentInput"] | components["schemas"]["RejectPaymentContentInput"] | components["schemas"]["CompletePaymentContentInput"] | components["schemas"]["CancelPaymentContentInput"];
        /** @example {"offset":0,"text":"It arrives"} */
        InteractionDeltaInput: {
            /** @description Expected length of the draft in UTF-16 code units, else 409. Without it, `text` replaces the draft */
            offset?: number | null;
            /** @description Text to append */
            text: string;
        };
        InteractionDraft: {
            interaction_id: string;
            /** @description UTF-16 code units of the draft: the next offset */
            length: number;
        };
        /** @example {"content":[{"type":"text","text":"Where is my order 4711?"}]} */
        InteractionEditInput: { /** @description Replaces the content */ content: components["schemas"]["InteractionContentInput"][]; };
        InteractionExternalAgent: {
            /** @default null */
            agent_metadata: { [key: string]: string; } | null;
            type: "external_agent";
        };
        InteractionExternalAgentInput: {
            /** @default null */
            agent_metadata?: { [key: string]: string; } | null;
            type: "external_agent";
        };
        /** @example {"reason":"The model does not answer"} */
        InteractionFailureInput: { /** @default */ reason?: string; };
        InteractionMaybeUser: {
            email: string;
            type: "maybe_user";
        };
        InteractionMaybeUserInput: {
            email: string;
            type: "maybe_user";
        };
        InteractionNonAuthenticatedUser: {
            type: "non_authenticated_user";
            /** @default null */
            user_metadata: { [key: string]: string; } | null;
        };
        InteractionNonAuthenticatedUserInput: {
            type: "non_authenticated_user";
            /** @default null */
            user_metadata?: { [key: string]: string; } | null;
        };
        InteractionPage: {
            items: components["schemas"]["Interaction"][];
            meta: components["schemas"]["InteractionPageMeta"];
        };
        InteractionPageMeta: {
            has_next: boolean;
            has_previous: boolean;
            next_cursor: string | null;
            /** @description Id of the incomplete interaction that the list ends before; absent if there is none */
            oldest_incomplete?: string;
            page: number;
            /** @description Sequence of the channel that the page reflects: it includes every event up to it and none after it, so a subscription after it misses nothing and repeats nothing */
            sequence: number;
            total: number;
        };
        InteractionParticipant: components["schemas"]["InteractionAuthenticatedUser"] | components["schemas"]["InteractionNonAuthenticatedUser"] | components["schemas"]["InteractionMaybeUser"] | components["schemas"]["InteractionAgent"] | components["schemas"]["InteractionExternalAgent"] | components["schemas"]["InteractionSystem"];
        InteractionParticipantInput: components["schemas"]["InteractionAuthenticatedUserInput"] | components["schemas"]["InteractionNonAuthenticatedUserInput"] | components["schemas"]["InteractionMaybeUserInput"] | components["schemas"]["InteractionAgentInput"] | components["schemas"]["InteractionExternalAgentInput"] | components["schemas"]["InteractionSystemInput"];
        /** @example {"content":[{"type":"text","text":"Where is my order?"}]} */
        InteractionPostInput: {
            /** @default true */
            complete?: boolean;
            content: components["schemas"]["InteractionContentInput"][];
            /** @description Default: depends on the type of the sender */
            content_role?: components["schemas"]["ContentRole"];
            interaction_id?: string | null;
            invocation_config?: components["schemas"]["InvocationConfigInput"] | null;
            metadata?: { [key: string]: unknown; } | null;
            parent_span_id?: string | null;
            /** @description The sender. Default: the caller, where a service is an `external_agent`. Another user or `system`, and with a user's key also an agent, requires the scope `impersonate` */
            participant?: components["schemas"]["InteractionParticipantInput"];
            span_id?: string | null;
        };
        InteractionSystem: { type: "system"; };
        InteractionSystemInput: { type: "system"; };
        Invocation: {
            agent_id: string;
            /** Format: date-time */
            at: string;
            /** @description Hops between agents in the turn before this agent */
            depth: number;
            /** @description Id of the user turn */
            interaction_id: string;
            invoked: boolean;
            message_id: string;
            reason: "mentioned" | "all_messages" | "personal_agent" | "relevant" | "own_message" | "inactive" | "withheld" | "not_mentioned" | "not_personal" | "irrelevant" | "depth_cap" | "not_participant" | "channel_archived" | "failed";
            /** @description What judged whether the message concerns the agent; null where the decision did not depend on it */
            relevance: {
                cost: number | null;
                /** @description `words` without a model, and where it gave no answer */
                decided_by: "model" | "words";
                /** @description Why the model gave no answer */
                failure: string | null;
                input_tokens: number | null;
                /** @description The model that was asked */
                model: string | null;
                output_tokens: number | null;
            } | null;
            /** @description The run that answers; null for an agent that was not invoked */
            run_id: string | null;
            /** @description Of the message, in the channel */
            sequence: number;
        };
        InvocationConfig: {
            /** @default null */
            activity_id: string | null;
            /** @default null */
            athena_mode: boolean | null;
            /** @default null */
            avoid_repetition: boolean | null;
            /** @default null */
            character_id: string | null;
            /** @default null */
            collaboration_participant_ids: string[] | null;
            /** @default null */
            enable_avatar: boolean | null;
            /** @default null */
            enable_scheduled_prompt_tools: boolean | null;
            /** @default null */
            enable_study_mode: boolean | null;
            /** @default null */
            enable_threads: boolean | null;
            /** @default null */
            enable_web_search: boolean | null;
            /** @default null */
            feed_activity_id: string | null;
            /** @default null */
            force_collaboration: boolean | null;
            /** @default null */
            mentions: components["schemas"]["StructuredMention"][] | null;
            /** @default null */
            model_name: string | null;
            /** @default null */
            planner_mode: boolean | null;
            /** @default null */
            private_mention_requests: components["schemas"]["PrivateMentionRequest"][] | null;
            /** @default null */
            reasoning_effort: components["schemas"]["ReasoningEffort"] | null;
            /** @default null */
            slash_only: boolean | null;
            /** @default null */
            slash_skills: string[] | null;
            /** @default null */
            supports_tool_call_upsert: boolean | null;
            /** @default null */
            thinking: boolean | null;
            /** @default null */
            thinking_budget: number | null;
            /** @default null */
            use_reasoning_history: boolean | null;
            /** @default null */
            voice_id: string | null;
            /** @default null */
            voice_mode: boolean | null;
            /** @default null */
            withheld_mentions: components["schemas"]["StructuredMention"][] | null;
        };
        InvocationConfigInput: {
            /** @default null */
            activity_id?: string | null;
            /** @default null */
            athena_mode?: boolean | null;
            /** @default null */
            avoid_repetition?: boolean | null;
            /** @default null */
            character_id?: string | null;
            /** @default null */
            collaboration_participant_ids?: string[] | null;
            /** @default null */
            enable_avatar?: boolean | null;
            /** @default null */
            enable_scheduled_prompt_tools?: boolean | null;
            /** @default null */
            enable_study_mode?: boolean | null;
            /** @default null */
            enable_threads?: boolean | null;
            /** @default null */
            enable_web_search?: boolean | null;
            /** @default null */
            feed_activity_id?: string | null;
            /** @default null */
            force_collaboration?: boolean | null;
            /** @default null */
            mentions?: components["schemas"]["StructuredMentionInput"][] | null;
            /** @default null */
            model_name?: string | null;
            /** @default null */
            planner_mode?: boolean | null;
            /** @default null */
            private_mention_requests?: components["schemas"]["PrivateMentionRequestInput"][] | null;
            /** @default null */
            reasoning_effort?: components["schemas"]["ReasoningEffort"] | null;
            /** @default null */
            slash_only?: boolean | null;
            /** @default null */
            slash_skills?: string[] | null;
            /** @default null */
            supports_tool_call_upsert?: boolean | null;
            /** @default null */
            thinking?: boolean | null;
            /** @default null */
            thinking_budget?: number | null;
            /** @default null */
            use_reasoning_history?: boolean | null;
            /** @default null */
            voice_id?: string | null;
            /** @default null */
            voice_mode?: boolean | null;
            /** @default null */
            withheld_mentions?: components["schemas"]["StructuredMentionInput"][] | null;
        };
        InvocationPage: {
            items: components["schemas"]["Invocation"][];
            meta: components["schemas"]["PageMeta"];
        };
        JsonWebKeyInput: { [key: string]: unknown; };
        KeyAccess: "organization" | "participation";
        KeyScope: "read" | "write" | "impersonate" | "agent" | "admin" | "platform";
        KnowledgeEdge: {
            created_at: string | null;
            fact: string;
            invalid_at: string | null;
            name: string | null;
            source_node_uuid: string;
            sources: components["schemas"]["KnowledgeSource"][];
            target_node_uuid: string;
            uuid: string;
            valid_at: string | null;
        };
        KnowledgeEdgeCreateInput: {
            /** @description A sentence that states the fact */
            fact: string;
            invalid_at?: string | null;
            name?: string | null;
            /** @description The source has one target by this relation at a time: a later edge with another target ends this one */
            single_valued?: boolean | null;
            /** @description Source of the edge: the name of a node, which may be new, or its uuid */
            source: string;
            /** @description Target of the edge: the name of a node, which may be new, or its uuid */
            target: string;
            valid_at?: string | null;
        };
        /** @example {"invalid_at":"2026-01-31T12:00:00Z"} */
        KnowledgeEdgeEndInput: { invalid_at?: string | null; };
        KnowledgeFacts: {
            edges: components["schemas"]["KnowledgeEdge"][];
            nodes: components["schemas"]["KnowledgeNode"][];
        };
        /** @example {"nodes":[{"name":"Van 7","labels":["Vehicle"]}]} */
        KnowledgeFactsCreateInput: {
            edges?: components["schemas"]["KnowledgeEdgeCreateInput"][] | null;
            nodes?: components["schemas"]["KnowledgeNodeCreateInput"][] | null;
        };
        KnowledgeGraph: {
            /** Format: date-time */
            created: string;
            description: string | null;
            /** @description Documents that facts come from */
            document_count: number;
            /** @description Edges that are no longer true included */
            edge_count: number;
            id: string;
            /**
             * Format: date-time
             * @description Time of the last change, of its facts too
             */
            modified: string;
            name: string;
            node_count: number;
        };
        /** @example {"name":"Help","description":"What customers ask"} */
        KnowledgeGraphCreateInput: {
            description?: string | null;
            /** @description Name of the graph */
            name: string;
        };
        KnowledgeGraphPage: {
            items: components["schemas"]["KnowledgeGraph"][];
            meta: components["schemas"]["PageMeta"];
        };
        /** @example {"description":null} */
        KnowledgeGraphUpdateInput: {
            description?: string | null;
            /** @description Name of the graph */
            name?: string;
        };
        KnowledgeNode: {
            created_at: string | null;
            labels: string[] | null;
            name: string;
            sources: components["schemas"]["KnowledgeSource"][];
            summary: string | null;
            uuid: string;
        };
        KnowledgeNodeCreateInput: {
            labels?: string[] | null;
            /** @description Identifies the node in its graph; case and white space do not matter */
            name: string;
            summary?: string | null;
        };
        KnowledgeSearch: {
            edges: components["schemas"]["KnowledgeEdge"][];
            nodes: components["schemas"]["KnowledgeNode"][];
            /** @description `words` alone, or meanings as well: see `EMBEDDING_BASE_URL`; `newest` without words to search for */
            ranking: "newest" | "words" | "words_and_vectors";
            /** @description Edges that match, whatever the limit is */
            total_edges: number;
            /** @description Nodes that match, whatever the limit is */
            total_nodes: number;
        };
        KnowledgeSource: {
            document_id: string;
            name: string;
            /** @description Text of the document around the fact */
            passage: string | null;
            url: string | null;
        };
        LeftOutTool: {
            name: string | null;
            reason: string;
        };
        McpServer: {
            /** @description The token itself is never answered */
            has_token: boolean;
            name: string;
            tools: string[] | null;
            url: string;
        };
        McpServerAddInput: {
            /** @description Begins the names of its tools. Lower-case letters, digits and single dashes */
            name: string;
            /** @description Bearer token. Write-only: absent, it stays as long as the name and the URL do; null removes it */
            token?: string | null;
            /** @description The only tools of the server that the agent may use, by the names that the server has for them. Default: all */
            tools?: string[] | null;
            /** @description Its endpoint for streamable HTTP. Everybody who may read the agent sees it: put a secret into `token` */
            url: string;
        };
        Media: {
            /** @description Size of the stored file; 0 without one */
            bytes: number;
            /** @description The channel that the item was created for */
            channel: string | null;
            /** Format: date-time */
            created: string;
            description: string | null;
            /** @description The document that the knowledge graph learns from */
            document_id: string | null;
            /** @description Of audio and video */
            duration_ms: number | null;
            /** @description Address of the stored file; null without one. It expires */
            file_url: string | null;
            /**
             * @description Usual extension of such files; empty until it is known
             * @default
             */
            format: string;
            /** @default 0 */
            height: number;
            id: string;
            /** @description The interaction that shows the file in the channel */
            interaction_id: string | null;
            /** @description The message that the item was created for */
            message: string | null;
            /** @description Found out from the content; empty until it is known */
            mime_type: string;
            /** Format: date-time */
            modified: string;
            name: string | null;
            /** @description Of a PDF */
            pages: number | null;
            /**
             * @description `image`, `video`, `audio`, `document`, `text`, `archive` or `other`; empty until it is known
             * @default
             */
            resource_type: string;
            /** @description Of the stored file, in hex; null without one */
            sha256: string | null;
            /** @description The URL that the item was created with */
            source_url: string | null;
            /** @description `Queued`, `Processing`, `Ready`, or `Failed: <why>` */
            status: string | null;
            /** @description Address of the preview: an image, or the start of a text; null without one. It expires */
            url: string | null;
            /**
             * @description As it is shown: of an image or a video in pixels, of a PDF in points; 0 if not measured
             * @default 0
             */
            width: number;
        };
        MediaContent: {
            /** @default null */
            media_url: string | null;
            meta_data: components["schemas"]["MediaMetadata"];
            type: "media";
        };
        MediaContentInput: {
            /** @default null */
            media_url?: string | null;
            meta_data: components["schemas"]["MediaMetadataInput"];
            type: "media";
        };
        /** @example {"source_url":"https://www.example.org/plan.pdf","name":"Plan"} */
        MediaCreateInput: {
            channel?: string | null;
            description?: string | null;
            knowledge_graph?: string | null;
            message?: string | null;
            /**
             * @description Name of the file
             * @default
             */
            name?: string;
            source_url?: string | null;
        };
        MediaDeletion: {
            bytes: number;
            channel: string | null;
            /** Format: date-time */
            deleted_at: string;
            deleted_by: {
                id: string;
                /** @description As in frames */
                key_id: string | null;
                type: "user" | "service" | "system";
            };
            id: string;
            interaction_id: string | null;
            name: string | null;
            /** @description Of the file, in hex; null for an item without one */
            sha256: string | null;
        };
        MediaMetadata: {
            description: string;
            /** @default null */
            format: string | null;
            height: number;
            media_id: string;
            mime_type: string;
            /** @default null */
            name: string | null;
            /** @default null */
            preview: string | null;
            /** @default null */
            resource_type: string | null;
            /** @default null */
            source_url: string | null;
            width: number;
        };
        MediaMetadataInput: {
            description: string;
            /** @default null */
            format?: string | null;
            height: number;
            media_id: string;
            mime_type: string;
            /** @default null */
            name?: string | null;
            /** @default null */
            preview?: string | null;
            /** @default null */
            resource_type?: string | null;
            /** @default null */
            source_url?: string | null;
            width: number;
        };
        MediaPage: {
            items: components["schemas"]["Media"][];
            meta: components["schemas"]["PageMeta"];
        };
        MediaUpload: {
            /**
             * Format: date-time
             * @description Time until which the upload can be continued; also in `Upload-Expires`
             */
            expires_at: string;
            /** @description Id of the upload, and of the media item that it becomes */
            id: string;
            /** @description Bytes of the whole file; also in `Upload-Length` */
            length: number;
            /** @description Bytes that have arrived; also in `Upload-Offset` */
            offset: number;
        };
        MentionedType: "agent" | "user";
        MentionIdentifierType: "handle" | "address" | "uuid";
        NonAuthenticatedUserParticipant: {
            type: "non_authenticated_user";
            user_metadata: { [key: string]: string; } | null;
        };
        NonAuthenticatedUserParticipantAddInput: {
            type: "non_authenticated_user";
            user_metadata?: { [key: string]: string; } | null;
        };
        Organization: {
            application: components["schemas"]["OrganizationApplication"] | null;
            /** Format: date-time */
            created_at: string;
            id: string;
            /** Format: date-time */
            modified: string;
            name: string;
            owner: {
                display_name: string;
                image_url: string;
            } | null;
            /** @description Id of the user who owns the organization */
            owner_id: string | null;
        };
        OrganizationApplication: "app_main" | "app_two" | "app_three" | "app_four" | "health" | "app_five";
        /** @example {"name":"Example Ltd"} */
        OrganizationCreateInput: {
            application?: components["schemas"]["OrganizationApplication"] | null;
            /** @description Name of the organization */
            name: string;
        };
        OrganizationPage: {
            items: components["schemas"]["Organization"][];
            meta: components["schemas"]["PageMeta"];
        };
        OrganizationSummary: {
            application: components["schemas"]["OrganizationApplication"] | null;
            id: string;
            name: string;
            owner: components["schemas"]["UserSummary"] | null;
        };
        /** @example {"name":"Example Inc"} */
        OrganizationUpdateInput: {
            application?: components["schemas"]["OrganizationApplication"] | null;
            /** @description Name of the organization */
            name?: string;
            owner_id?: string | null;
        };
        PageMeta: {
            has_next: boolean;
            has_previous: boolean;
            next_cursor: string | null;
            page: number;
            total: number;
        };
        ParticipantReadMarker: {
            /** @description When the marker was last moved; null if it never was */
            moved_at: string | null;
            /** @description Sequence of the channel up to which the user has read: that of its marker or of its last message, whichever is higher. Where `unread_count` is shown, also that of its joining */
            sequence: number;
            user_id: string;
        };
        PinnedInteraction: {
            interaction_id: string;
            /** Format: date-time */
            pinned_at: string;
            pinned_by: {
                id: string;
                type: string;
            };
        };
        /** @description GeoJSON point: longitude, latitude and optionally altitude */
        Point: {
            coordinates: number[] | null;
            /** @default Point */
            type: string;
        };
        PointOfInterest: {
            city: string;
            country: string;
            /** @default */
            description: string;
            display_name: string;
            external_id: string | null;
            id?: string;
            /** @default */
            image_url: string;
            location: components["schemas"]["Point"] | null;
            /** @default {} */
            metadata: { [key: string]: unknown; };
            name: string;
            postal_code: string;
            provider_type: string;
            state: string;
            street: string;
            /** @default */
            url: string;
        };
        PointOfInterestAddInput: {
            city: string;
            country: string;
            /** @default */
            description?: string;
            display_name: string;
            /** @default null */
            external_id?: string | null;
            id?: string;
            /** @default */
            image_url?: string;
            /** @default null */
            location?: {
                /** @default null */
                coordinates?: number[] | null;
                /** @default Point */
                type?: string;
            } | null;
            /** @default {} */
            metadata?: { [key: string]: unknown; };
            name: string;
            postal_code: string;
            provider_type: string;
            state: string;
            street: string;
            /** @default */
            url?: string;
        };
        PostedByRun: { /** @description As the channel shows it; null for the answer to another agent, which the channel does not show */ interaction: components["schemas"]["Interaction"] | null; };
        PrincipalType: "user" | "service";
        PrivateMentionOutcome: "private_friend_request" | "private_already_requested";
        PrivateMentionRequest: {
            channel_id: string;
            friendship_id: string;
            outcome: components["schemas"]["PrivateMentionOutcome"];
            /** @default null */
            owner_display_name: string | null;
            twin_id: string;
        };
        PrivateMentionRequestInput: {
            channel_id: string;
            friendship_id: string;
            outcome: components["schemas"]["PrivateMentionOutcome"];
            /** @default null */
            owner_display_name?: string | null;
            twin_id: string;
        };
        PromptAnswer: {
            /** @description The direct channel of the caller and the agent */
            channel_id: string;
            /** @description The agent's reply; empty if it has said nothing */
            message: string;
            /** @description The run that answered */
            run_id: string;
        };
        PromptError: {
            channel_id?: string;
            code: string;
            detail: string;
            /** @description Why the run failed */
            reason?: string;
            request_id: string;
            run_id?: string;
        };
        /** @example {"prompt":"Where is my order?"} */
        PromptInput: {
            /**
             * @description Text for the agent
             * @default
             */
            prompt?: string;
        };
        PublicPromptAnswer: {
            /** @description Continues the conversation; a secret of the caller */
            conversation_id: string;
            /** @description The agent's reply; empty if it has said nothing */
            message: string;
        };
        /** @example {"prompt":"When do you open?","conversation_id":null} */
        PublicPromptInput: {
            conversation_id?: string | null;
            /**
             * @description Text for the agent
             * @default
             */
            prompt?: string;
        };
        /** @example {"agent_id":"01a1ff85-0000-7000-8000-000000000000","agent_name":"Guide"} */
        ReactionAddInput: {
            agent_id?: string | null;
            agent_name?: string | null;
        } | null;
        ReactionSummary: {
            count: number;
            emoji: string;
            interaction_id: string;
            /** @default false */
            reacted_by_agent: boolean;
            reacted_by_me: boolean;
            /** @default [] */
            reactor_names: string[];
            /** @description Present on request: what the other members are computed from */
            reactors?: components["schemas"]["Reactor"][];
            target_role: components["schemas"]["ReactionTargetRole"];
            target_sender_id: string | null;
        };
        ReactionTargetRole: "user" | "assistant";
        Reactor: {
            id: string;
            name: string | null;
            /** @description Of the event that added the reaction, which orders them */
            sequence: number;
            type: "user" | "agent";
        };
        ReadMarker: {
            channel_id: string;
            /** @description When the marker was last moved; null if it never was */
            moved_at: string | null;
            /** @description Sequence of the channel up to which the user has read: that of its marker or of its last message, whichever is higher. Where `unread_count` is shown, also that of its joining */
            sequence: number;
            /** @description Messages of other users and of agents that were complete after the sequence, without deleted ones */
            unread_count: number;
            user_id: string;
        };
        ReadMarkerList: { items: components["schemas"]["ParticipantReadMarker"][]; };
        /** @example {"sequence":42} */
        ReadMarkerMoveInput: {
            /** @description Of the last event of the channel that the user has seen, such as `sequence` of an interaction */
            sequence: number;
            user_id?: string | null;
        };
        /** @example {"agent_id":"01a1ff85-0000-7000-8000-000000000000"} */
        ReadReceiptRecordInput: { /** @description The agent that has read the message */ agent_id: string; };
        ReasoningEffort: "low" | "medium" | "high";
        RejectPaymentContent: {
            /** @default null */
            reason: string | null;
            type: "reject_payment";
        };
        RejectPaymentContentInput: {
            /** @default null */
            reason?: string | null;
            type: "reject_payment";
        };
        Report: {
            /** @description In the currency of the configured prices; null without them */
            cost: number | null;
            /** Format: date-time */
            created: string;
            id: string;
            /** @description Null: the newest graphs of the organization */
            knowledge_graph: string | null;
            /** Format: date-time */
            modified: string;
            /** @description Questions that the query was divided into, those that were searched for, and relevant facts so far */
            progress: {
                findings: number;
                questions: number;
                searched: number;
            };
            /** @default What's going on in Grand Rapids, Michigan? */
            query: string;
            /** @description Markdown with numbered citations; empty until the report is `Ready` */
            results: string;
            /** @description `Queued`, `Researching`, `Writing` (a model), `Ready`, `Cancelled` or `Failed: <why>` */
            status: string | null;
            /** @description Of the model; null if it was not asked */
            usage: components["schemas"]["TokenUsage"] | null;
            /** @description Null until the report is `Ready` */
            written_by: {
                method: "model" | "extractive";
                /** @description That has written it, or was to write it; null without a model */
                model: string | null;
                /** @description Why the model has not written it; null if it has, or was not asked */
                reason: string | null;
            } | null;
        };
        /** @example {"query":"What do customers ask most?","knowledge_graph":"01a1ff85-0000-7000-8000-000000000000"} */
        ReportCreateInput: {
            knowledge_graph?: string | null;
            /**
             * @description Focus of the research
             * @default What's going on in Grand Rapids, Michigan?
             */
            query?: string;
        };
        ReportPage: {
            items: components["schemas"]["Report"][];
            meta: components["schemas"]["PageMeta"];
        };
        RequestPaymentContent: {
            accepted_funds: components["schemas"]["Funds"][];
            deadline_seconds: number;
            /** @default null */
            description: string | null;
            /** @default null */
            metadata: { [key: string]: unknown; } | null;
            recipient: string;
            /** @default null */
            reference: string | null;
            type: "request_payment";
        };
        RequestPaymentContentInput: {
            accepted_funds: components["schemas"]["FundsInput"][];
            deadline_seconds: number;
            /** @default null */
            description?: string | null;
            /** @default null */
            metadata?: { [key: string]: unknown; } | null;
            recipient: string;
            /** @default null */
            reference?: string | null;
            type: "request_payment";
        };
        Run: {
            agent_id: string;
            /** @description Id of the run that waits for this one; null for the answer to a message */
            asked_by: string | null;
            channel_id: string;
            /** @description In the currency of the configured prices; null without them */
            cost: number | null;
            /** Format: date-time */
            created: string;
            /** @description Hops between agents in this turn before this run */
            depth: number;
            /** @description From the request to the end; null until then */
            duration_ms: number | null;
            error: {
                /** @description What the model endpoint said; null for keys without the scope `admin`, and if it said nothing */
                detail: string | null;
                message: string;
                reason: string;
            } | null;
            /** @description Why the model ended its last message: `stop`, `length`, `tool_calls`, `content_filter` or a word of its own */
            finish_reason: string | null;
            id: string;
            /** @description Id of the user turn */
            interaction_id: string;
            /** @description Id of the interaction that is answered */
            message_id: string;
            /** @description What answers; the name is the one that the endpoint gave with its last answer */
            model: {
                kind: string;
                name: string;
            } | null;
            /** Format: date-time */
            modified: string;
            /** @description Id of the interaction with the answer */
            response_id: string | null;
            status: components["schemas"]["RunStatus"];
            steps: components["schemas"]["RunStep"][];
            usage: components["schemas"]["TokenUsage"];
        };
        RunConcurrency: "queue" | "restart";
        /** @description Oldest first; the last message is the one to answer */
        RunConversation: {
            messages: {
                /** @description All that was said; what other agents say is data */
                content: components["schemas"]["InteractionContent"][];
                role: components["schemas"]["ConversationRole"];
                /** @description Its words; empty for a payment, for instance */
                text: string;
            }[];
        };
        /** @example {"offset":0,"text":"It arrives"} */
        RunDeltaInput: {
            /** @description `length` of the last answer; null or absent replaces the draft */
            offset?: number | null;
            /** @description Markdown */
            text: string;
        };
        RunDraft: { /** @description Of the draft */ length: number; };
        /** @example {"message":"The model does not answer"} */
        RunFailureInput: { /** @description Users read it: a sentence without a full stop */ message: string; };
        RunPage: {
            items: components["schemas"]["Run"][];
            meta: components["schemas"]["PageMeta"];
        };
        /** @example {"content":[{"type":"text","text":"I look it up."}]} */
        RunPostInput: {
            /** @description One `tool_call`, `tool_call_update` or `tool_call_result`; or what the agent says besides its response */
            content: components["schemas"]["InteractionContentInput"][];
            /** @description Of content that is not of a tool. Default: `agent_response` */
            content_role?: "agent_response" | "agent_reasoning";
            metadata?: { [key: string]: unknown; } | null;
        };
        /** @example {"text":"It arrives tomorrow."} */
        RunResponseInput: { /** @description Markdown */ text: string; };
        RunStatus: "queued" | "running" | "completed" | "failed" | "cancelled";
        RunStep: {
            /** @description In the currency of the configured prices; null without them */
            cost: number | null;
            duration_ms: number | null;
            finished: string | null;
            kind: "model" | "tool";
            /** @description Servers whose tools, or some of them, the model did not have */
            missing_tool_servers: {
                name: string;
                reason: string;
            }[];
            /** @description What the request of a model step left out, since the endpoint refuses it: parameters, tools */
            omitted: string[];
            /** Format: date-time */
            started: string;
            /** @description Why the model stopped, or the status of the tool call; `running` until it has finished */
            status: string;
            step: number;
            tool_call_id: string | null;
            tool_name: string | null;
            usage: components["schemas"]["TokenUsage"] | null;
        };
        ServerSentEvent: {
            /** @description JSON, as in `/asyncapi.json` */
            data: string;
            /** @description `close`: the last event, whose `data` contains the close code and the reason */
            event?: string;
            /** @description Sequence of the event; absent for frames that are not events */
            id?: string;
        };
        StructuredMention: {
            id: string;
            identifier: string;
            identifier_type: components["schemas"]["MentionIdentifierType"];
            /** @default null */
            length: number | null;
            /** @default null */
            offset: number | null;
            type: components["schemas"]["MentionedType"];
        };
        StructuredMentionInput: {
            id: string;
            identifier: string;
            identifier_type: components["schemas"]["MentionIdentifierType"];
            /** @default null */
            length?: number | null;
            /** @default null */
            offset?: number | null;
            type: components["schemas"]["MentionedType"];
        };
        TextContent: {
            text: string;
            type: "text";
        };
        TextContentInput: {
            text: string;
            type: "text";
        };
        TokenIssuer: {
            audience: string;
            /** Format: date-time */
            created_at: string;
            creates_users: boolean;
            id: string;
            issuer: string;
            jwks_url: string | null;
            /** @description The registered public keys, as JWKs */
            keys: { [key: string]: string; }[];
            /** Format: date-time */
            modified: string;
            name: string;
        };
        /** @example {"issuer":"https://login.example.org/","audience":"parley","jwks_url":"https://login.example.org/keys"} */
        TokenIssuerCreateInput: {
            /** @description `aud` of its tokens, or one of them */
            audience: string;
            /**
             * @description Whether a subject that is seen for the first time becomes a user of the organization
             * @default false
             */
            creates_users?: boolean;
            /** @description `iss` of its tokens */
            issuer: string;
            jwks_url?: string | null;
            keys?: (components["schemas"]["JsonWebKeyInput"] | string)[] | null;
            /**
             * @description Purpose of the issuer
             * @default
             */
            name?: string;
        };
        TokenIssuerPage: {
            items: components["schemas"]["TokenIssuer"][];
            meta: components["schemas"]["PageMeta"];
        };
        /** @example {"creates_users":true} */
        TokenIssuerUpdateInput: {
            /** @description Whether a subject that is seen for the first time becomes a user of the organization */
            creates_users?: boolean;
            /** @description Address of a JWK Set with the public keys, instead of `keys` */
            jwks_url?: string;
            /** @description Public keys, as JWK or PEM: Ed25519 (EdDSA), P-256 (ES256) or RSA of 2,048 to 4,096 bits (RS256) */
            keys?: (components["schemas"]["JsonWebKeyInput"] | string)[];
            /** @description Purpose of the issuer */
            name?: string;
        };
        /** @description As the model endpoint counts them; null where it does not */
        TokenUsage: {
            cached_input_tokens: number | null;
            input_tokens: number | null;
            output_tokens: number | null;
            reasoning_tokens: number | null;
        };
        ToolCallChecklist: {
            items: components["schemas"]["ChecklistItem"][];
            /** @default checklist */
            kind: "checklist";
        };
        ToolCallChecklistInput: {
            items: components["schemas"]["ChecklistItemInput"][];
            /** @default checklist */
            kind?: "checklist";
        };
        ToolCallContent: {
            /** @default null */
            display_text: string | null;
            tool_args: { [key: string]: unknown; };
            /** @default null */
            tool_call_id: string | null;
            tool_name: string;
            type: "tool_call";
        };
        ToolCallContentInput: {
            /** @default null */
            display_text?: string | null;
            tool_args: { [key: string]: unknown; };
            /** @default null */
            tool_call_id?: string | null;
            tool_name: string;
            type: "tool_call";
        };
        ToolCallResultContent: {
            /** @default null */
            display_text: string | null;
            /** @default null */
            status: components["schemas"]["ToolCallResultStatus"] | null;
            /** @default null */
            tool_call_id: string | null;
            tool_name: string;
            tool_result: { [key: string]: unknown; };
            type: "tool_call_result";
        };
        ToolCallResultContentInput: {
            /** @default null */
            display_text?: string | null;
            /** @default null */
            status?: components["schemas"]["ToolCallResultStatus"] | null;
            /** @default null */
            tool_call_id?: string | null;
            tool_name: string;
            tool_result: { [key: string]: unknown; };
            type: "tool_call_result";
        };
        ToolCallResultStatus: "success" | "failure" | "rate_limited" | "action_required";
        ToolCallText: {
            /** @default string */
            kind: "string";
            text: string;
        };
        ToolCallTextInput: {
            /** @default string */
            kind?: "string";
            text: string;
        };
        ToolCallUpdateContent: {
            sequence: number;
            tool_call_id: string;
            tool_name: string;
            type: "tool_call_update";
            update: components["schemas"]["ToolCallText"] | components["schemas"]["ToolCallChecklist"];
        };
        ToolCallUpdateContentInput: {
            sequence: number;
            tool_call_id: string;
            tool_name: string;
            type: "tool_call_update";
            update: components["schemas"]["ToolCallTextInput"] | components["schemas"]["ToolCallChecklistInput"];
        };
        User: {
            /** Format: date-time */
            created_at: string;
            deactivated_at: string | null;
            display_name: string;
            email: string | null;
            /** @description `sub` of the tokens of the user */
            external_id: string | null;
            id: string;
            image_url: string | null;
            is_active: boolean;
            /** @description `iss` of the tokens of the user */
            issuer: string | null;
            /** Format: date-time */
            modified: string;
            organization_id: string;
        };
        /** @example {"display_name":"Ada","email":"ada@example.org","external_id":"ada"} */
        UserCreateInput: {
            /**
             * @description Display name, which other users see
             * @default
             */
            display_name?: string;
            email?: string | null;
            external_id?: string | null;
            image_url?: string | null;
            issuer?: string | null;
            /** @description An organization other than that of the API key; requires the scope `platform` */
            organization_id?: string;
        };
        UserPage: {
            items: components["schemas"]["User"][];
            meta: components["schemas"]["PageMeta"];
        };
        /** @description Summary of a user */
        UserSummary: {
            /** @default */
            display_name: string;
            image_url: string;
        };
        /** @example {"display_name":"Ada L."} */
        UserUpdateInput: {
            /** @description Display name, which other users see */
            display_name?: string;
            email?: string | null;
            image_url?: string | null;
        };
        ValidationError: {
            ctx?: Record<string, never>;
            input?: unknown;
            loc: (string | number)[];
            msg: string;
            type: string;
        };
        WebsocketTicket: {
            /** @description The channel that it grants access to */
            channel_id: string;
            /**
             * Format: date-time
             * @description One minute after its creation
             */
            expires_at: string;
            /** @description The ticket: opens one connection, once */
            value: string;
        };
        /** @example {} */
        WebsocketTicketRequestInput: { /** @description What the ticket is limited to, such as `read` alone. Default: all that the caller may do */ scopes?: ("read" | "write" | "upload")[]; } | null;
    };
    responses: {
        /** @description The request cannot be read, or its head is ambiguous */
        BadRequest: {
            headers: { [name: string]: unknown; };
            content: { "application/json": components["schemas"]["Error"]; };
        };
        /** @description A conflict with another request */
        Conflict: {
            headers: { [name: string]: unknown; };
            content: { "application/json": components["schemas"]["Error"]; };
        };
        /** @description The body is too large */
        ContentTooLarge: {
            headers: { [name: string]: unknown; };
            content: { "application/json": components["schemas"]["Error"]; };
        };
        /** @description The API key lacks the scope */
        Forbidden: {
            headers: { [name: string]: unknown; };
            content: { "application/json": components["schemas"]["Error"]; };
        };
        /** @description `Accept` does not allow `text/event-stream` */
        NotAcceptable: {
            headers: { [name: string]: unknown; };
            content: { "application/json": components["schemas"]["Error"]; };
        };
        /** @description Absent, or another organization's */
        NotFound: {
            headers: { [name: string]: unknown; };
            content: { "application/json": components["schemas"]["Error"]; };
        };
        /** @description `If-Match` does not match */
        PreconditionFailed: {
            headers: { [name: string]: unknown; };
            content: { "application/json": components["schemas"]["Error"]; };
        };
        /** @description The headers are too large */
        RequestHeaderFieldsTooLarge: {
            headers: { [name: string]: unknown; };
            content: { "application/json": components["schemas"]["Error"]; };
        };
        /** @description A store is unavailable, or not caught up */
        ServiceUnavailable: {
            headers: {
                "Retry-After"?: string;
                [name: string]: unknown;
            };
            content: { "application/json": components["schemas"]["Error"]; };
        };
        /** @description Too many requests */
        TooManyRequests: {
            headers: {
                "Retry-After"?: string;
                [name: string]: unknown;
            };
            content: { "application/json": components["schemas"]["Error"]; };
        };
        /** @description No valid API key */
        Unauthorized: {
            headers: {
                "WWW-Authenticate"?: string;
                [name: string]: unknown;
            };
            content: { "application/json": components["schemas"]["Error"]; };
        };
        /** @description Validation Error */
        UnprocessableContent: {
            headers: { [name: string]: unknown; };
            content: { "application/json": components["schemas"]["HTTPValidationError"]; };
        };
        /** @description The body is not plain JSON in UTF-8 */
        UnsupportedMediaType: {
            headers: { [name: string]: unknown; };
            content: { "application/json": components["schemas"]["Error"]; };
        };
    };
    parameters: {
        /** @description Repetitions within 24 hours return the first response */
        IdempotencyKey: string;
        /** @description Only changes the entity with this `ETag`, otherwise 412 */
        IfMatch: string;
        /** @description Answers 304 if it contains the `ETag` of the entity */
        IfNoneMatch: string;
        /** @description Waits up to two seconds until the read models include this position */
        ParleyPosition: string;
    };
    requestBodies: never;
    headers: {
        /** @description Revision of the entity, if it has one */
        ETag: string;
        /** @description `true` for the response to an earlier request with the same `Idempotency-Key` */
        "Idempotency-Replayed": string;
        /** @description Position of the change, for reads that must include it */
        "Parley-Position": string;
        /** @description Id of the request in the log */
        "X-Request-Id": string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    listAgents: Operation<{
        parameters: Parameters<{
            query?: PageQuery & {
                category?: components["schemas"]["AgentCategory"];
                /** @description Only active agents, or only deactivated ones */
                is_active?: boolean;
                /** @description Only agents with this graph */
                knowledge_graph?: string;
                /** @description Only agents of exactly this name */
                name?: string;
                /** @description Lists personal agents instead of the others */
                personal?: boolean;
            };
            header?: ReadHeader;
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["AgentPage"]; }; }; };
    }>;
    createAgent: Operation<{
        parameters: Parameters<{ header?: CommandHeader; }>;
        requestBody: { content: { "application/json": components["schemas"]["AgentCreateInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["ChangedAgent"]; }; }; };
    }>;
    getAgent: Operation<{
        parameters: Parameters<{
            query?: { /** @description Reads the state after the event of this sequence (0: before the first one), or as of this time */ as_of?: string; };
            header?: ReadHeader;
            path: { /** @description Id of the agent */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["Agent"]; }; }; };
    }>;
    updateAgent: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the agent */ id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["AgentUpdateInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["ChangedAgent"]; }; }; };
    }>;
    activateAgent: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the agent */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Agent"]; }; }; };
    }>;
    deactivateAgent: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the agent */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Agent"]; }; }; };
    }>;
    streamAgentEvents: Operation<{
        parameters: Parameters<{
            query?: { /** @description Sequence of the last event received (0: from the beginning). Default: only new events */ after?: number; };
            header?: ReadHeader;
            path: { /** @description Id of the agent */ id: string; };
        }>;
        responses: Refusals & {
            /** @description Server-sent events */
            200: { headers: ReadAnswerHeaders; content: { "text/event-stream": components["schemas"]["ServerSentEvent"]; }; };
            /** @description There will be no more events, and the client has received all of them */
            204: { headers: ReadAnswerHeaders; content?: never; };
            406: components["responses"]["NotAcceptable"];
            /** @description The events after `after` were deleted in the event store */
            410: {
                headers: ReadAnswerHeaders;
                content: {
                    "application/json": {
                        code: "gone";
                        detail: string;
                        /** @description Of the first event that is left */
                        first_sequence: number | null;
                        request_id: string;
                    };
                };
            };
        };
    }>;
    streamAgentInvocations: Operation<{
        parameters: Parameters<{
            query?: { /** @description Sequence of the last event received (0: from the beginning). Default: only new events */ after?: number; };
            header?: ReadHeader;
            path: { /** @description Id of the agent */ id: string; };
        }>;
        responses: Refusals & {
            /** @description Server-sent events */
            200: { headers: ReadAnswerHeaders; content: { "text/event-stream": components["schemas"]["ServerSentEvent"]; }; };
            /** @description There will be no more events, and the client has received all of them */
            204: { headers: ReadAnswerHeaders; content?: never; };
            406: components["responses"]["NotAcceptable"];
            /** @description The events after `after` were deleted in the event store */
            410: {
                headers: ReadAnswerHeaders;
                content: {
                    "application/json": {
                        code: "gone";
                        detail: string;
                        /** @description Of the first event that is left */
                        first_sequence: number | null;
                        request_id: string;
                    };
                };
            };
        };
    }>;
    promptAgent: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the agent */ id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["PromptInput"]; }; };
        responses: Refusals & {
            200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["PromptAnswer"]; }; };
            /** @description The run has failed */
            502: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["PromptError"]; }; };
            /** @description There is no answer in time */
            504: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["PromptError"]; }; };
        };
    }>;
    promptPublicAgent: Operation<{
        parameters: Parameters<{ path: { /** @description Id of the agent */ id: string; }; }>;
        requestBody: { content: { "application/json": components["schemas"]["PublicPromptInput"]; }; };
        responses: {
            200: { headers: { "X-Request-Id": components["headers"]["X-Request-Id"]; [name: string]: unknown; }; content: { "application/json": components["schemas"]["PublicPromptAnswer"]; }; };
            400: components["responses"]["BadRequest"];
            /** @description The agent takes no prompts without an API key */
            401: { headers: { "X-Request-Id": components["headers"]["X-Request-Id"]; [name: string]: unknown; }; content: { "application/json": components["schemas"]["PromptError"]; }; };
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["RequestHeaderFieldsTooLarge"];
            /** @description The run has failed */
            502: { headers: { "X-Request-Id": components["headers"]["X-Request-Id"]; [name: string]: unknown; }; content: { "application/json": components["schemas"]["PromptError"]; }; };
            503: components["responses"]["ServiceUnavailable"];
            /** @description There is no answer in time */
            504: { headers: { "X-Request-Id": components["headers"]["X-Request-Id"]; [name: string]: unknown; }; content: { "application/json": components["schemas"]["PromptError"]; }; };
        };
    }>;
    listAgentRuns: Operation<{
        parameters: Parameters<{
            query?: PageQuery & { /** @description Only these; `running`: those that are to be answered */ status?: components["schemas"]["RunStatus"]; };
            header?: ReadHeader;
            path: { /** @description Id of the agent */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["RunPage"]; }; }; };
    }>;
    streamPrompt: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the agent */ id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["PromptInput"]; }; };
        responses: Refusals & {
            /** @description Server-sent events */
            200: { headers: CommandAnswerHeaders; content: { "text/event-stream": components["schemas"]["ServerSentEvent"]; }; };
            406: components["responses"]["NotAcceptable"];
        };
    }>;
    listAgentTools: Operation<{
        parameters: Parameters<{
            header?: ReadHeader;
            path: { /** @description Id of the agent */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["AgentTools"]; }; }; };
    }>;
    setAgentWebhook: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the agent */ id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["AgentWebhookChangeInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["AgentWebhook"]; }; }; };
    }>;
    listChannels: Operation<{
        parameters: Parameters<{
            query?: PageQuery & {
                /** @description Only channels with this agent as a participant */
                agent?: string;
                /** @description Lists archived channels instead of open ones */
                archived?: boolean;
                channel_type?: components["schemas"]["ChannelType"];
                /** @description Adds `read_marker` of the calling user, and lists only channels in which it takes part. For a key that may act as the user of `participant`: of that user */
                include_unread?: boolean;
                /** @description Only channels that the organization owns, or does not own */
                is_owner?: boolean;
                /** @description Only threads of this channel */
                parent_channel_id?: string;
                /** @description Only channels in which this user takes part */
                participant?: string;
                source?: components["schemas"]["ChannelSource"];
                type?: components["schemas"]["CommunicationType"];
            };
            header?: ReadHeader;
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["ChannelPage"]; }; }; };
    }>;
    createChannel: Operation<{
        parameters: Parameters<{ header?: CommandHeader; }>;
        requestBody: { content: { "application/json": components["schemas"]["ChannelCreateInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Channel"]; }; }; };
    }>;
    getChannel: Operation<{
        parameters: Parameters<{
            query?: { /** @description Reads the channel as of this sequence (0: before its first event) or time */ as_of?: string; };
            header?: ReadHeader;
            path: { /** @description Id of the channel */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["Channel"]; }; }; };
    }>;
    updateChannel: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the channel */ id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["ChannelUpdateInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Channel"]; }; }; };
    }>;
    archiveChannel: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the channel */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Channel"]; }; }; };
    }>;
    streamChannelEvents: Operation<{
        parameters: Parameters<{
            query?: {
                /** @description Sequence of the last event received (0: from the beginning). Default: only new events */
                after?: number;
                /** @description Optional frames to receive, separated by commas: ephemeral, nested, incomplete */
                include?: string;
            };
            header?: ReadHeader;
            path: { /** @description Id of the channel */ id: string; };
        }>;
        responses: Refusals & {
            /** @description Server-sent events */
            200: { headers: ReadAnswerHeaders; content: { "text/event-stream": components["schemas"]["ServerSentEvent"]; }; };
            /** @description There will be no more events, and the client has received all of them */
            204: { headers: ReadAnswerHeaders; content?: never; };
            406: components["responses"]["NotAcceptable"];
            /** @description The events after `after` were deleted in the event store */
            410: {
                headers: ReadAnswerHeaders;
                content: {
                    "application/json": {
                        code: "gone";
                        detail: string;
                        /** @description Of the first event that is left */
                        first_sequence: number | null;
                        request_id: string;
                    };
                };
            };
        };
    }>;
    listInteractions: Operation<{
        parameters: Parameters<{
            query?: PageQuery & {
                /** @description Only interactions with a higher sequence */
                after_sequence?: number;
                /** @description Reads the state as of this sequence of the channel (0: before its first event) or time */
                as_of?: string;
                /** @description Only interactions with a lower sequence */
                before_sequence?: number;
                content_role?: components["schemas"]["ContentRole"];
                /** @description Only interactions created after this time, to the millisecond */
                created_after?: string;
                /** @description Only interactions created before this time, to the millisecond */
                created_before?: string;
                /** @description Also returns incomplete interactions */
                include_incomplete?: boolean;
                /** @description Reactions also have `reactors`, so that a client can apply the live events of later reactions */
                include_reactors?: boolean;
                /** @description Also returns the last update of each running tool call, after the newest interactions; not counted in `size` and `total` */
                include_tool_call_updates?: boolean;
                /** @description Only interactions of this user turn */
                interaction_id?: string;
                /** @description By sequence; `desc`: newest first. With `asc`, `after_sequence` or `created_after`, a list of complete interactions ends before the oldest incomplete one that matches: a later list after the last sequence misses nothing */
                order?: "asc" | "desc";
            };
            header?: ReadHeader;
            path: { /** @description Id of the channel */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["InteractionPage"]; }; }; };
    }>;
    postInteraction: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the channel */ id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["InteractionPostInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Interaction"]; }; }; };
    }>;
    listInvocations: Operation<{
        parameters: Parameters<{
            query?: PageQuery & {
                /** @description Only decisions on this agent */
                agent_id?: string;
                /** @description Only agents that were invoked, or that were not */
                invoked?: boolean;
                /** @description Only decisions on this message */
                message_id?: string;
            };
            header?: ReadHeader;
            path: { /** @description Id of the channel */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["InvocationPage"]; }; }; };
    }>;
    listChannelParticipants: Operation<{
        parameters: Parameters<{
            header?: ReadHeader;
            path: { /** @description Id of the channel */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["ChannelParticipantList"]; }; }; };
    }>;
    addChannelParticipant: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the channel */ id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["ChannelParticipantAddInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Channel"]; }; }; };
    }>;
    removeChannelParticipant: Operation<{
        parameters: Parameters<{
            header?: { /** @description Only changes the entity with this `ETag`, otherwise 412 */ "If-Match"?: components["parameters"]["IfMatch"]; };
            path: {
                /** @description Id of the channel */
                id: string;
                /** @description Id of the participant record */
                participant_id: string;
            };
        }>;
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Channel"]; }; }; };
    }>;
    getReadMarker: Operation<{
        parameters: Parameters<{
            query?: { user_id?: string | null; };
            header?: ReadHeader;
            path: { /** @description Id of the channel */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["ReadMarker"]; }; }; };
    }>;
    moveReadMarker: Operation<{
        parameters: Parameters<{
            header?: { /** @description Only changes the entity with this `ETag`, otherwise 412 */ "If-Match"?: components["parameters"]["IfMatch"]; };
            path: { /** @description Id of the channel */ id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["ReadMarkerMoveInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["ReadMarker"]; }; }; };
    }>;
    listReadMarkers: Operation<{
        parameters: Parameters<{
            header?: ReadHeader;
            path: { /** @description Id of the channel */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["ReadMarkerList"]; }; }; };
    }>;
    createWebsocketTicket: Operation<{
        parameters: Parameters<{ path: { /** @description Id of the channel */ id: string; }; }>;
        requestBody?: { content: { "application/json": components["schemas"]["WebsocketTicketRequestInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["WebsocketTicket"]; }; }; };
    }>;
    createWebsocketTicketAlias: Operation<{
        parameters: Parameters<{ path: { /** @description Id of the channel */ id: string; }; }>;
        requestBody?: { content: { "application/json": components["schemas"]["WebsocketTicketRequestInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["WebsocketTicket"]; }; }; };
    }>;
    listCrawls: Operation<{
        parameters: Parameters<{
            query?: PageQuery & {
                /** @description Crawls that were not deactivated, or those that were; `null`: both */
                is_active?: boolean | null;
                knowledge_graph?: string | null;
                /** @description The first word of the status, such as `Failed` */
                status?: string | null;
                /** @description The URL that the crawl starts from */
                url?: string | null;
            };
            header?: ReadHeader;
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["CrawlPage"]; }; }; };
    }>;
    createCrawl: Operation<{
        parameters: Parameters<{ header?: CommandHeader; }>;
        requestBody: { content: { "application/json": components["schemas"]["CrawlCreateInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Crawl"]; }; }; };
    }>;
    getCrawl: Operation<{
        parameters: Parameters<{
            query?: { /** @description Reads the state after the event of this sequence (0: before the first one), or as of this time */ as_of?: string; };
            header?: ReadHeader;
            path: { /** @description Id of the crawl */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["Crawl"]; }; }; };
    }>;
    deactivateCrawl: Operation<{
        parameters: Parameters<{
            header?: { /** @description Only changes the entity with this `ETag`, otherwise 412 */ "If-Match"?: components["parameters"]["IfMatch"]; };
            path: { /** @description Id of the crawl */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Crawl"]; }; }; };
    }>;
    cancelCrawl: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the crawl */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Crawl"]; }; }; };
    }>;
    streamCrawlEvents: Operation<{
        parameters: Parameters<{
            query?: { /** @description Sequence of the last event received (0: from the beginning). Default: only new events */ after?: number; };
            header?: ReadHeader;
            path: { /** @description Id of the crawl */ id: string; };
        }>;
        responses: Refusals & {
            /** @description Server-sent events */
            200: { headers: ReadAnswerHeaders; content: { "text/event-stream": components["schemas"]["ServerSentEvent"]; }; };
            /** @description There will be no more events, and the client has received all of them */
            204: { headers: ReadAnswerHeaders; content?: never; };
            406: components["responses"]["NotAcceptable"];
            /** @description The events after `after` were deleted in the event store */
            410: {
                headers: ReadAnswerHeaders;
                content: {
                    "application/json": {
                        code: "gone";
                        detail: string;
                        /** @description Of the first event that is left */
                        first_sequence: number | null;
                        request_id: string;
                    };
                };
            };
        };
    }>;
    rescanCrawl: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the crawl */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Crawl"]; }; }; };
    }>;
    listDocuments: Operation<{
        parameters: Parameters<{
            query?: PageQuery & {
                /** @description Only documents of this crawl */
                crawl?: string;
                /** @description Only documents of this knowledge graph */
                knowledge_graph?: string;
                /** @description Only documents of this status: `Failed` matches every reason */
                status?: string;
            };
            header?: ReadHeader;
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["DocumentPage"]; }; }; };
    }>;
    createDocument: Operation<{
        parameters: Parameters<{ header?: CommandHeader; }>;
        requestBody: { content: { "application/json": components["schemas"]["DocumentCreateInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Document"]; }; }; };
    }>;
    getDocument: Operation<{
        parameters: Parameters<{
            query?: { /** @description Reads the state after the event of this sequence (0: before the first one), or as of this time */ as_of?: string; };
            header?: ReadHeader;
            path: { /** @description Id of the document */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["Document"]; }; }; };
    }>;
    deleteDocument: Operation<{
        parameters: Parameters<{
            header?: { /** @description Only changes the entity with this `ETag`, otherwise 412 */ "If-Match"?: components["parameters"]["IfMatch"]; };
            path: { /** @description Id of the document */ id: string; };
        }>;
        responses: Refusals & { /** @description The document is deleted */ 204: { headers: CommandAnswerHeaders; content?: never; }; };
    }>;
    getDocumentContent: Operation<{
        parameters: Parameters<{
            header?: ReadHeader;
            path: { /** @description Id of the document */ id: string; };
        }>;
        responses: Refusals & {
            /** @description The content */
            200: { headers: ReadAnswerHeaders; content: { "application/octet-stream": string; }; };
            /** @description `If-None-Match` names the content */
            304: { headers: ReadAnswerHeaders; content?: never; };
        };
    }>;
    streamDocumentEvents: Operation<{
        parameters: Parameters<{
            query?: { /** @description Sequence of the last event received (0: from the beginning). Default: only new events */ after?: number; };
            header?: ReadHeader;
            path: { /** @description Id of the document */ id: string; };
        }>;
        responses: Refusals & {
            /** @description Server-sent events */
            200: { headers: ReadAnswerHeaders; content: { "text/event-stream": components["schemas"]["ServerSentEvent"]; }; };
            /** @description There will be no more events, and the client has received all of them */
            204: { headers: ReadAnswerHeaders; content?: never; };
            406: components["responses"]["NotAcceptable"];
            /** @description The events after `after` were deleted in the event store */
            410: {
                headers: ReadAnswerHeaders;
                content: {
                    "application/json": {
                        code: "gone";
                        detail: string;
                        /** @description Of the first event that is left */
                        first_sequence: number | null;
                        request_id: string;
                    };
                };
            };
        };
    }>;
    uploadDocument: Operation<{
        parameters: Parameters<{
            query: {
                /** @description Id at its source: a document of the graph with the same one is changed */
                external_id?: string;
                /** @description Id of the knowledge graph that learns from the document */
                knowledge_graph: string;
                /** @description Name of the document; default: the title of the content */
                name?: string;
            };
            header?: CommandHeader;
        }>;
        /** @description The file: at most 5 MiB of one of the content types */
        requestBody?: { content: { "application/octet-stream": string; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Document"]; }; }; };
    }>;
    getInteraction: Operation<{
        parameters: Parameters<{
            query?: {
                /** @description Reads the state as of this sequence of the channel (0: before its first event) or time */
                as_of?: string;
                /** @description Also returns incomplete interactions */
                include_incomplete?: boolean;
                /** @description Also returns its descendants as `nested_interactions`, ordered by sequence; null in each of them */
                include_nested_interactions?: boolean;
                /** @description Also returns the last update of each running tool call, after the descendants: updates of its turn, and updates whose parent is returned */
                include_tool_call_updates?: boolean;
            };
            header?: ReadHeader;
            path: { /** @description Id of the interaction */ interaction_id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["Interaction"]; }; }; };
    }>;
    deleteInteraction: Operation<{
        parameters: Parameters<{
            header?: { /** @description Only changes the entity with this `ETag`, otherwise 412 */ "If-Match"?: components["parameters"]["IfMatch"]; };
            path: { /** @description Id of the interaction */ interaction_id: string; };
        }>;
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Interaction"]; }; }; };
    }>;
    editInteraction: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the interaction */ interaction_id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["InteractionEditInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Interaction"]; }; }; };
    }>;
    completeInteraction: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the interaction */ interaction_id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["InteractionCompletionInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Interaction"]; }; }; };
    }>;
    appendInteractionContent: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the interaction */ interaction_id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["InteractionContentAppendInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Interaction"]; }; }; };
    }>;
    writeInteractionDelta: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the interaction */ interaction_id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["InteractionDeltaInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["InteractionDraft"]; }; }; };
    }>;
    failInteraction: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the interaction */ interaction_id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["InteractionFailureInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Interaction"]; }; }; };
    }>;
    dismissMentionInvitePrompt: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the interaction */ interaction_id: string; };
        }>;
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Interaction"]; }; }; };
    }>;
    pinInteraction: Operation<{
        parameters: Parameters<{
            header?: { /** @description Only changes the entity with this `ETag`, otherwise 412 */ "If-Match"?: components["parameters"]["IfMatch"]; };
            path: { /** @description Id of the interaction */ interaction_id: string; };
        }>;
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Channel"]; }; }; };
    }>;
    unpinInteraction: Operation<{
        parameters: Parameters<{
            header?: { /** @description Only changes the entity with this `ETag`, otherwise 412 */ "If-Match"?: components["parameters"]["IfMatch"]; };
            path: { /** @description Id of the interaction */ interaction_id: string; };
        }>;
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Channel"]; }; }; };
    }>;
    addReaction: Operation<{
        parameters: Parameters<{
            header?: { /** @description Only changes the entity with this `ETag`, otherwise 412 */ "If-Match"?: components["parameters"]["IfMatch"]; };
            path: {
                /** @description Exactly one emoji, percent-encoded */
                emoji: string;
                /** @description Id of the interaction */
                interaction_id: string;
            };
        }>;
        requestBody?: { content: { "application/json": components["schemas"]["ReactionAddInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Interaction"]; }; }; };
    }>;
    removeReaction: Operation<{
        parameters: Parameters<{
            query?: { /** @description The agent whose reaction is removed. Default: the calling user */ agent_id?: string; };
            header?: { /** @description Only changes the entity with this `ETag`, otherwise 412 */ "If-Match"?: components["parameters"]["IfMatch"]; };
            path: {
                /** @description Exactly one emoji, percent-encoded */
                emoji: string;
                /** @description Id of the interaction */
                interaction_id: string;
            };
        }>;
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Interaction"]; }; }; };
    }>;
    recordReadReceipt: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the interaction */ interaction_id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["ReadReceiptRecordInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Interaction"]; }; }; };
    }>;
    searchInteractions: Operation<{
        parameters: Parameters<{
            query: PageQuery & {
                /** @description Only messages of this channel */
                channel_id?: string;
                /** @description Only messages created after this time, to the millisecond */
                created_after?: string;
                /** @description Only messages created before this time, to the millisecond */
                created_before?: string;
                /** @description Words that a message must have, all of them, in any order. Inflections, longer words and, if no message has a word, slight misspellings match as well */
                q: string;
                /** @description The best matches first, or the newest messages */
                sort?: "relevance" | "newest";
            };
            header?: ReadHeader;
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["FoundInteractionPage"]; }; }; };
    }>;
    listKeys: Operation<{
        parameters: Parameters<{
            query?: PageQuery & {
                /** @description Only revoked keys, or only keys that are not revoked */
                is_revoked?: boolean;
                /** @description An organization other than that of the API key; requires the scope `platform` */
                organization_id?: string;
                /** @description Only keys of this user or service */
                principal_id?: string;
            };
            header?: ReadHeader;
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["ApiKeyPage"]; }; }; };
    }>;
    createKey: Operation<{
        parameters: Parameters<{ header?: CommandHeader; }>;
        requestBody: { content: { "application/json": components["schemas"]["ApiKeyCreateInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["CreatedApiKey"]; }; }; };
    }>;
    getKey: Operation<{
        parameters: Parameters<{
            query?: {
                /** @description Reads the state after the event of this sequence (0: before the first one), or as of this time */
                as_of?: string;
                /** @description An organization other than that of the API key; requires the scope `platform` */
                organization_id?: string;
            };
            header?: ReadHeader;
            path: { /** @description Id of the key */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["ApiKey"]; }; }; };
    }>;
    revokeKey: Operation<{
        parameters: Parameters<{
            query?: { /** @description An organization other than that of the API key; requires the scope `platform` */ organization_id?: string; };
            header?: CommandHeader;
            path: { /** @description Id of the key */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["ApiKey"]; }; }; };
    }>;
    rotateKey: Operation<{
        parameters: Parameters<{
            query?: { /** @description An organization other than that of the API key; requires the scope `platform` */ organization_id?: string; };
            header?: CommandHeader;
            path: { /** @description Id of the key */ id: string; };
        }>;
        requestBody?: { content: { "application/json": components["schemas"]["ApiKeyRotateInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["CreatedApiKey"]; }; }; };
    }>;
    listKnowledgeGraphs: Operation<{
        parameters: Parameters<{
            query?: PageQuery & { /** @description Only graphs of exactly this name */ name?: string; };
            header?: ReadHeader;
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["KnowledgeGraphPage"]; }; }; };
    }>;
    createKnowledgeGraph: Operation<{
        parameters: Parameters<{ header?: CommandHeader; }>;
        requestBody: { content: { "application/json": components["schemas"]["KnowledgeGraphCreateInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["KnowledgeGraph"]; }; }; };
    }>;
    getKnowledgeGraph: Operation<{
        parameters: Parameters<{
            query?: { /** @description Reads the state after the event of this sequence (0: before the first one), or as of this time */ as_of?: string; };
            header?: ReadHeader;
            path: { /** @description Id of the graph */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["KnowledgeGraph"]; }; }; };
    }>;
    deleteKnowledgeGraph: Operation<{
        parameters: Parameters<{
            header?: { /** @description Only changes the entity with this `ETag`, otherwise 412 */ "If-Match"?: components["parameters"]["IfMatch"]; };
            path: { /** @description Id of the graph */ id: string; };
        }>;
        responses: Refusals & { /** @description The graph is deleted */ 204: { headers: CommandAnswerHeaders; content?: never; }; };
    }>;
    updateKnowledgeGraph: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the graph */ id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["KnowledgeGraphUpdateInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["KnowledgeGraph"]; }; }; };
    }>;
    endKnowledgeEdge: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: {
                /** @description Id of the edge */
                edge_id: string;
                /** @description Id of the graph */
                id: string;
            };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["KnowledgeEdgeEndInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["KnowledgeEdge"]; }; }; };
    }>;
    addKnowledgeFacts: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the graph */ id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["KnowledgeFactsCreateInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["KnowledgeFacts"]; }; }; };
    }>;
    searchKnowledge: Operation<{
        parameters: Parameters<{
            query?: {
                /** @description What the graph held then: a sequence of the graph's stream, or a time. Default: now */
                as_of?: string;
                /** @description Most nodes, and most edges, to answer */
                limit?: number;
                /** @description Words to search for, in any language; inflections, longer words and slight misspellings match as well. `*` or nothing: the newest facts */
                query?: string;
                /** @description Only edges that were true at this time. Default: now, or the time of `as_of` */
                valid_at?: string;
            };
            header?: ReadHeader;
            path: { /** @description Id of the graph */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["KnowledgeSearch"]; }; }; };
    }>;
    listMedia: Operation<{
        parameters: Parameters<{
            query?: PageQuery & {
                /** @description Only items that are associated with this channel */
                community?: string | null;
                /**
                 * @deprecated
                 * @description Only items that are associated with this channel
                 */
                community_id?: string | null;
                /** @description Only items of this format, such as `png` */
                format?: string | null;
                /** @description Only items that are associated with this knowledge graph */
                knowledge_graph?: string | null;
                /** @description Only items of this organization: the own one, or none */
                organization?: string | null;
                /**
                 * @deprecated
                 * @description Only items of this organization: the own one, or none
                 */
                organization_id?: string | null;
                /** @description Only items of this kind, such as `image` */
                resource_type?: string | null;
                /** @description Only items that this user or service created */
                twin?: string | null;
                /**
                 * @deprecated
                 * @description Only items that this user or service created
                 */
                twin_id?: string | null;
            };
            header?: ReadHeader;
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["MediaPage"]; }; }; };
    }>;
    createMedia: Operation<{
        parameters: Parameters<{ header?: CommandHeader; }>;
        requestBody: { content: { "application/json": components["schemas"]["MediaCreateInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Media"]; }; }; };
    }>;
    getMedia: Operation<{
        parameters: Parameters<{
            query?: { /** @description Reads the state after the event of this sequence (0: before the first one), or as of this time */ as_of?: string; };
            header?: ReadHeader;
            path: { /** @description Id of the media item */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["Media"]; }; }; };
    }>;
    deleteMedia: Operation<{
        parameters: Parameters<{
            header?: { /** @description Only changes the entity with this `ETag`, otherwise 412 */ "If-Match"?: components["parameters"]["IfMatch"]; };
            path: { /** @description Id of the media item */ id: string; };
        }>;
        responses: Refusals & { /** @description The item is deleted */ 204: { headers: CommandAnswerHeaders; content?: never; }; };
    }>;
    getMediaDeletion: Operation<{
        parameters: Parameters<{
            header?: ReadHeader;
            path: { /** @description Id of the media item */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["MediaDeletion"]; }; }; };
    }>;
    getMediaFile: Operation<{
        parameters: Parameters<{ path: { /** @description Names the file; signed */ token: string; }; }>;
        responses: {
            /** @description The file */
            200: { headers: { "X-Request-Id": components["headers"]["X-Request-Id"]; [name: string]: unknown; }; content: { "application/octet-stream": string; }; };
            400: components["responses"]["BadRequest"];
            404: components["responses"]["NotFound"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["PreconditionFailed"];
            413: components["responses"]["ContentTooLarge"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["UnprocessableContent"];
            429: components["responses"]["TooManyRequests"];
            431: components["responses"]["RequestHeaderFieldsTooLarge"];
            503: components["responses"]["ServiceUnavailable"];
        };
    }>;
    uploadMedia: Operation<{
        parameters: Parameters<{
            query?: {
                /** @description Id of a channel, where the file is posted as the caller */
                channel?: string;
                description?: string;
                /** @description Id of a knowledge graph, which learns from the text of the file */
                knowledge_graph?: string;
                /** @description Id of a message to associate the item with */
                message?: string;
                /** @description Name of the file */
                name?: string;
            };
            header?: {
                /** @description Repetitions within 24 hours return the first response */
                "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
                /** @description Only changes the entity with this `ETag`, otherwise 412 */
                "If-Match"?: components["parameters"]["IfMatch"];
                /** @description `1.0.0` */
                "tus-resumable"?: string;
                /** @description Begins a resumable upload of so many bytes: at most 100 MiB */
                "upload-length"?: number;
                /** @description Of a resumable upload: its `filename` is the name of the item if the query has none */
                "upload-metadata"?: string;
            };
        }>;
        /** @description The file: at most 100 MiB */
        requestBody?: { content: { "application/octet-stream": string; }; };
        responses: Refusals & {
            200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Media"]; }; };
            201: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["MediaUpload"]; }; };
        };
    }>;
    getMediaUpload: Operation<{
        parameters: Parameters<{
            header?: ReadHeader;
            path: { /** @description Id of the upload, and of the media item that it becomes */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["MediaUpload"]; }; }; };
    }>;
    cancelMediaUpload: Operation<{
        parameters: Parameters<{
            header?: { /** @description Only changes the entity with this `ETag`, otherwise 412 */ "If-Match"?: components["parameters"]["IfMatch"]; };
            path: { /** @description Id of the upload, and of the media item that it becomes */ id: string; };
        }>;
        responses: Refusals & { /** @description The upload is cancelled */ 204: { headers: CommandAnswerHeaders; content?: never; }; };
    }>;
    continueMediaUpload: Operation<{
        parameters: Parameters<{
            header: {
                /** @description `1.0.0` */
                "tus-resumable"?: string;
                /** @description Bytes of the upload that have arrived before */
                "upload-offset": number;
            };
            path: { /** @description Id of the upload, and of the media item that it becomes */ id: string; };
        }>;
        /** @description The file: at most 100 MiB */
        requestBody?: { content: { "application/offset+octet-stream": string; }; };
        responses: Refusals & { /** @description The part is stored; `Upload-Offset` is that after it */ 204: { headers: CommandAnswerHeaders; content?: never; }; };
    }>;
    listOrganizations: Operation<{
        parameters: Parameters<{
            query?: PageQuery;
            header?: ReadHeader;
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["OrganizationPage"]; }; }; };
    }>;
    createOrganization: Operation<{
        parameters: Parameters<{ header?: CommandHeader; }>;
        requestBody: { content: { "application/json": components["schemas"]["OrganizationCreateInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Organization"]; }; }; };
    }>;
    getOrganization: Operation<{
        parameters: Parameters<{
            query?: { /** @description Reads the state after the event of this sequence (0: before the first one), or as of this time */ as_of?: string; };
            header?: ReadHeader;
            path: { /** @description Id of the organization */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["Organization"]; }; }; };
    }>;
    updateOrganization: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the organization */ id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["OrganizationUpdateInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Organization"]; }; }; };
    }>;
    listReports: Operation<{
        parameters: Parameters<{
            query?: PageQuery & {
                knowledge_graph?: string | null;
                /** @description The first word of the status, such as `Failed` */
                status?: string | null;
            };
            header?: ReadHeader;
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["ReportPage"]; }; }; };
    }>;
    createReport: Operation<{
        parameters: Parameters<{ header?: CommandHeader; }>;
        requestBody: { content: { "application/json": components["schemas"]["ReportCreateInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Report"]; }; }; };
    }>;
    getReport: Operation<{
        parameters: Parameters<{
            query?: { /** @description Reads the state after the event of this sequence (0: before the first one), or as of this time */ as_of?: string; };
            header?: ReadHeader;
            path: { /** @description Id of the report */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["Report"]; }; }; };
    }>;
    cancelReport: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the report */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Report"]; }; }; };
    }>;
    streamReportEvents: Operation<{
        parameters: Parameters<{
            query?: { /** @description Sequence of the last event received (0: from the beginning). Default: only new events */ after?: number; };
            header?: ReadHeader;
            path: { /** @description Id of the report */ id: string; };
        }>;
        responses: Refusals & {
            /** @description Server-sent events */
            200: { headers: ReadAnswerHeaders; content: { "text/event-stream": components["schemas"]["ServerSentEvent"]; }; };
            /** @description There will be no more events, and the client has received all of them */
            204: { headers: ReadAnswerHeaders; content?: never; };
            406: components["responses"]["NotAcceptable"];
            /** @description The events after `after` were deleted in the event store */
            410: {
                headers: ReadAnswerHeaders;
                content: {
                    "application/json": {
                        code: "gone";
                        detail: string;
                        /** @description Of the first event that is left */
                        first_sequence: number | null;
                        request_id: string;
                    };
                };
            };
        };
    }>;
    getRun: Operation<{
        parameters: Parameters<{
            query?: { /** @description Reads the state after the event of this sequence (0: before the first one), or as of this time */ as_of?: string; };
            header?: ReadHeader;
            path: { /** @description Id of the run */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["Run"]; }; }; };
    }>;
    cancelRun: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the run */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Run"]; }; }; };
    }>;
    getRunConversation: Operation<{
        parameters: Parameters<{
            header?: ReadHeader;
            path: { /** @description Id of the run */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["RunConversation"]; }; }; };
    }>;
    writeRunDelta: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the run */ id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["RunDeltaInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["RunDraft"]; }; }; };
    }>;
    failRun: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the run */ id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["RunFailureInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Run"]; }; }; };
    }>;
    postRunInteraction: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the run */ id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["RunPostInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["PostedByRun"]; }; }; };
    }>;
    answerRun: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the run */ id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["RunResponseInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["Run"]; }; }; };
    }>;
    listTokenIssuers: Operation<{
        parameters: Parameters<{
            query?: PageQuery;
            header?: ReadHeader;
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["TokenIssuerPage"]; }; }; };
    }>;
    createTokenIssuer: Operation<{
        parameters: Parameters<{ header?: CommandHeader; }>;
        requestBody: { content: { "application/json": components["schemas"]["TokenIssuerCreateInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["TokenIssuer"]; }; }; };
    }>;
    getTokenIssuer: Operation<{
        parameters: Parameters<{
            query?: { /** @description Reads the state after the event of this sequence (0: before the first one), or as of this time */ as_of?: string; };
            header?: ReadHeader;
            path: { /** @description Id of the token issuer */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["TokenIssuer"]; }; }; };
    }>;
    deleteTokenIssuer: Operation<{
        parameters: Parameters<{
            header?: { /** @description Only changes the entity with this `ETag`, otherwise 412 */ "If-Match"?: components["parameters"]["IfMatch"]; };
            path: { /** @description Id of the token issuer */ id: string; };
        }>;
        responses: Refusals & { /** @description The token issuer is deleted */ 204: { headers: CommandAnswerHeaders; content?: never; }; };
    }>;
    updateTokenIssuer: Operation<{
        parameters: Parameters<{
            header?: CommandHeader;
            path: { /** @description Id of the token issuer */ id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["TokenIssuerUpdateInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["TokenIssuer"]; }; }; };
    }>;
    listUsers: Operation<{
        parameters: Parameters<{
            query?: PageQuery & {
                /** @description Only users whose tokens have this `sub` */
                external_id?: string;
                /** @description Only active users, or only deactivated ones */
                is_active?: boolean;
                /** @description An organization other than that of the API key; requires the scope `platform` */
                organization_id?: string;
            };
            header?: ReadHeader;
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["UserPage"]; }; }; };
    }>;
    createUser: Operation<{
        parameters: Parameters<{ header?: CommandHeader; }>;
        requestBody: { content: { "application/json": components["schemas"]["UserCreateInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["User"]; }; }; };
    }>;
    getUser: Operation<{
        parameters: Parameters<{
            query?: {
                /** @description Reads the state after the event of this sequence (0: before the first one), or as of this time */
                as_of?: string;
                /** @description An organization other than that of the API key; requires the scope `platform` */
                organization_id?: string;
            };
            header?: ReadHeader;
            path: { /** @description Id of the user */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: ReadAnswerHeaders; content: { "application/json": components["schemas"]["User"]; }; }; };
    }>;
    deactivateUser: Operation<{
        parameters: Parameters<{
            query?: { /** @description An organization other than that of the API key; requires the scope `platform` */ organization_id?: string; };
            header?: { /** @description Only changes the entity with this `ETag`, otherwise 412 */ "If-Match"?: components["parameters"]["IfMatch"]; };
            path: { /** @description Id of the user */ id: string; };
        }>;
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["User"]; }; }; };
    }>;
    updateUser: Operation<{
        parameters: Parameters<{
            query?: { /** @description An organization other than that of the API key; requires the scope `platform` */ organization_id?: string; };
            header?: CommandHeader;
            path: { /** @description Id of the user */ id: string; };
        }>;
        requestBody: { content: { "application/json": components["schemas"]["UserUpdateInput"]; }; };
        responses: Refusals & { 200: { headers: CommandAnswerHeaders; content: { "application/json": components["schemas"]["User"]; }; }; };
    }>;
}
type ReadHeader = {
    /** @description Answers 304 if it contains the `ETag` of the entity */
    "If-None-Match"?: components["parameters"]["IfNoneMatch"];
    /** @description Waits up to two seconds until the read models include this position */
    "Parley-Position"?: components["parameters"]["ParleyPosition"];
};
type CommandHeader = {
    /** @description Repetitions within 24 hours return the first response */
    "Idempotency-Key"?: components["parameters"]["IdempotencyKey"];
    /** @description Only changes the entity with this `ETag`, otherwise 412 */
    "If-Match"?: components["parameters"]["IfMatch"];
};
type PageQuery = {
    /** @description `meta.next_cursor` of the page before; not together with `page` */
    cursor?: string;
    /** @description Number of the page */
    page?: number;
    /** @description Items on a page */
    size?: number;
};
type ReadAnswerHeaders = {
    ETag: components["headers"]["ETag"];
    "X-Request-Id": components["headers"]["X-Request-Id"];
    [name: string]: unknown;
};
type CommandAnswerHeaders = {
    ETag: components["headers"]["ETag"];
    "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
    "Parley-Position": components["headers"]["Parley-Position"];
    "X-Request-Id": components["headers"]["X-Request-Id"];
    [name: string]: unknown;
};
type Refusals = {
    400: components["responses"]["BadRequest"];
    401: components["responses"]["Unauthorized"];
    403: components["responses"]["Forbidden"];
    404: components["responses"]["NotFound"];
    409: components["responses"]["Conflict"];
    412: components["responses"]["PreconditionFailed"];
    413: components["responses"]["ContentTooLarge"];
    415: components["responses"]["UnsupportedMediaType"];
    422: components["responses"]["UnprocessableContent"];
    429: components["responses"]["TooManyRequests"];
    431: components["responses"]["RequestHeaderFieldsTooLarge"];
    503: components["responses"]["ServiceUnavailable"];
};
