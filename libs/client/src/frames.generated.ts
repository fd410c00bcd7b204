/* Made from the schemas of the websocket frames by `npm run client:generate`: changes in here are lost. A test compares. */

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description A command has succeeded, and its events are durable */
        AckFrame: {
            frame: "ack";
            id: string;
            /** @description Sequence of the channel after the command; null for a command without events */
            seq: number | null;
        };
        /** @description All events up to `seq` have been sent; what follows is live */
        CaughtUpFrame: {
            frame: "caught_up";
            seq: number;
        };
        /** @description A command; answered by `ack` or `error` with the same id */
        CommandFrame: {
            /** @description Depends on the type */
            data?: unknown;
            frame: "command";
            /** @description Correlates the response with the command. A UUID also identifies the command across connections, so it runs once even if it is sent again */
            id: string;
            type: string;
        };
        /** @description Text appended to the draft of an incomplete interaction */
        DeltaFrame: {
            frame: "delta";
            /** @description `id` of the incomplete interaction */
            interaction_id: string;
            /** @description UTF-16 code units before this text; apply the delta only if exactly this many were received */
            offset: number;
            text: string;
        };
        /** @description An ephemeral value: not stored in the channel, and may be lost */
        EphemeralFrame: {
            data: unknown;
            frame: "ephemeral";
            /** @description A newer frame replaces an older one with the same key */
            key: string;
            /** @description Increases with each frame of a key; one with a lower number is out of date */
            n: number;
            /** @description Milliseconds after which to discard the value */
            ttl_ms: number;
        };
        /** @description A command was refused, or a frame is invalid */
        ErrorFrame: {
            code: string;
            /** @description A message; for invalid input a list of validation errors, as in REST */
            detail: string | components["schemas"]["FrameValidationError"][];
            frame: "error";
            /** @description `id` of the command that failed */
            id?: string;
            /** @description Seconds after which the same command may succeed */
            retry_after?: number;
        };
        EventActor: {
            id: string;
            /** @description The API key, or the issuer and the thumbprint of the key that verified a token; null for the system, and for events of before */
            key_id: string | null;
            /** @description In whose name; null if in its own */
            on_behalf_of: {
                id: string;
                type: "user" | "agent";
            } | null;
            /** @description `system`: Parley itself, such as a worker */
            type: "user" | "service" | "system";
        };
        /** @description An event of the channel: durable, in order */
        EventFrame: {
            /** @description Who did it; null for an event of another application */
            actor: components["schemas"]["EventActor"] | null;
            /**
             * Format: date-time
             * @description Time of the event
             */
            at: string;
            /** @description Names of the members that `channel.updated` is about */
            changed?: string[];
            /** @description The resource after the event, in the representation of REST; null if the client did not opt in to it */
            data: unknown;
            frame: "event";
            /** @description One more than that of the event before it */
            seq: number;
            /** @description Type of the event; `unknown` for one that this version of the server does not know */
            type: string;
        };
        FrameValidationError: {
            ctx?: {
                [key: string]: unknown;
            };
            input?: unknown;
            loc: (string | number)[];
            msg: string;
            type: string;
        };
        /** @description The first frame of the server */
        HelloFrame: {
            channel_id: string;
            frame: "hello";
            /** @description Sequence of the channel's newest event */
            head: number;
            /** @description Milliseconds between the pings of the server */
            heartbeat_ms: number;
            /** @description Size of the largest frame that a client may send */
            max_frame_bytes: number;
            /** @description Whose ticket opened the connection */
            principal: {
                id: string;
                type: "user" | "service" | "system";
            };
            protocol: "parley.v1";
            /** @description Identifies this connection in logs and for support */
            session_id: string;
        };
        /** @description Asks for a `pong` */
        PingFrame: {
            frame: "ping";
        };
        /** @description Answers a `ping` */
        PongFrame: {
            frame: "pong";
        };
        /** @description The first frame of a client: the sequence to resume after */
        ResumeFrame: {
            /** @description Sequence of the last event received, however old (0: from the beginning). Default: only new events */
            after?: number;
            frame: "resume";
            /** @description `nested`: interactions with a parent; `incomplete`: interactions in progress, with deltas of their text; `ephemeral`: typing indicators, updates of running tool calls, and moves of the own read marker */
            include?: ("ephemeral" | "nested" | "incomplete")[];
        };
        /** @description The complete draft of an incomplete interaction */
        SnapshotFrame: {
            frame: "snapshot";
            /** @description `id` of the incomplete interaction */
            interaction_id: string;
            text: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
