/* Made from the schemas of the websocket frames by `npm run client:generate`: changes in here are lost. A test compares. */

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description A command has succeeded, and its events are durable */
        AckFrame: {
            /** @constant */
            frame: "ack";
            id: string;
            /** @description Sequence of the channel after the command; null for a command without events */
            seq: number | null;
        };
        /** @description All events up to `seq` have been sent; what follows is live */
        CaughtUpFrame: {
            /** @constant */
            frame: "caught_up";
            seq: number;
        };
        /** @description A command; answered by `ack` or `error` with the same id */
        CommandFrame: {
            /** @description Depends on the type */
            data?: unknown;
            /** @constant */
            frame: "command";
            /** @description Identifies the command in its answer. A UUID identifies it across connections, too: sent again, it runs once */
            id: string;
            type: string;
        };
        /** @description More text of an interaction that is being written */
        DeltaFrame: {
            /** @constant */
            frame: "delta";
            /** @description `id` of the interaction that is being written */
            interaction_id: string;
            /** @description UTF-16 code units before this text; apply the delta only if exactly so many were received */
            offset: number;
            text: string;
        };
        /** @description A value of the moment: not stored in the channel, and may be lost */
        EphemeralFrame: {
            data: unknown;
            /** @constant */
            frame: "ephemeral";
            /** @description A newer frame replaces an older one with the same key */
            key: string;
            /** @description Increases with each frame of a key; one with a lower number is out of date */
            n: number;
            /** @description Discard it after so many milliseconds */
            ttl_ms: number;
        };
        /** @description A command was refused, or a frame is invalid */
        ErrorFrame: {
            code: string;
            /** @description A sentence; for invalid input the list of its faults, as in REST */
            detail: string | components["schemas"]["FrameValidationError"][];
            /** @constant */
            frame: "error";
            /** @description `id` of the command that it answers */
            id?: string;
            /** @description Seconds after which the same command may succeed */
            retry_after?: number;
        };
        /** @description An event of the channel: durable, in order */
        EventFrame: {
            /**
             * Format: date-time
             * @description Time of the event
             */
            at: string;
            /** @description The changed resource, as REST shows it after the event; null if the client does not include it */
            data: unknown;
            /** @constant */
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
            /** @constant */
            frame: "hello";
            /** @description Sequence of the channel's newest event */
            head: number;
            /** @description Milliseconds between the pings of the server */
            heartbeat_ms: number;
            /** @description Size of the largest frame that a client may send */
            max_frame_bytes: number;
            /** @constant */
            protocol: "parley.v1";
            /** @description Identifies this connection in logs and to support */
            session_id: string;
        };
        /** @description Asks for a `pong` */
        PingFrame: {
            /** @constant */
            frame: "ping";
        };
        /** @description Answers a `ping` */
        PongFrame: {
            /** @constant */
            frame: "pong";
        };
        /** @description The first frame of a client: the sequence after which it wants the events */
        ResumeFrame: {
            /** @description Sequence of the last event seen, however old (0: from the beginning); without it, only new events */
            after?: number;
            /** @constant */
            frame: "resume";
            /** @description `nested`: interactions below others; `incomplete`: those being written, with their text as it grows; `ephemeral`: typing and tool calls that run */
            include?: ("ephemeral" | "nested" | "incomplete")[];
        };
        /** @description All text so far of an interaction that is being written */
        SnapshotFrame: {
            /** @constant */
            frame: "snapshot";
            /** @description `id` of the interaction that is being written */
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
