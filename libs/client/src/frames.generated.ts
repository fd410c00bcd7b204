/* Made from the schemas of the websocket frames by `npm run client:generate`: changes in here are lost. A test compares. */

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description A command is done, and what it wrote is durable */
        AckFrame: {
            /** @constant */
            frame: "ack";
            id: string;
            /** @description The channel after it; null for what leaves nothing in the channel */
            seq: number | null;
        };
        /** @description All events up to `seq` have been sent; what follows is live */
        CaughtUpFrame: {
            /** @constant */
            frame: "caught_up";
            seq: number;
        };
        /** @description Something to do; answered by `ack` or `error` with the same id */
        CommandFrame: {
            /** @description As the type asks for */
            data?: unknown;
            /** @constant */
            frame: "command";
            /** @description Names the command in its answer. A UUID names it across connections too: sent again, it is done once */
            id: string;
            /** @description What to do */
            type: string;
        };
        /** @description More text of an interaction that is being written */
        DeltaFrame: {
            /** @constant */
            frame: "delta";
            /** @description `id` of the interaction that is being written */
            interaction_id: string;
            /** @description UTF-16 code units that come before; apply it only if that many are held */
            offset: number;
            text: string;
        };
        /** @description Something of the moment: never stored, and lost if nobody listens */
        EphemeralFrame: {
            data: unknown;
            /** @constant */
            frame: "ephemeral";
            /** @description What it is about: a newer one replaces an older one with the same key */
            key: string;
            /** @description Grows with each of a key; one with a lower number is out of date */
            n: number;
            /** @description Forget it after so many milliseconds */
            ttl_ms: number;
        };
        /** @description A command was refused, or a frame was not understood */
        ErrorFrame: {
            code: string;
            /** @description A sentence; or, for input that does not fit, each fault, as REST lists them */
            detail: string | components["schemas"]["FrameValidationError"][];
            /** @constant */
            frame: "error";
            /** @description Of the command that it answers */
            id?: string;
            /** @description Seconds after which the same may succeed */
            retry_after?: number;
        };
        /** @description Something that happened in the channel: kept for good, in order */
        EventFrame: {
            /**
             * Format: date-time
             * @description When it happened
             */
            at: string;
            /** @description What has changed, as REST shows it after the event; null where the socket has not asked for it */
            data: unknown;
            /** @constant */
            frame: "event";
            /** @description One more than that of the event before it */
            seq: number;
            /** @description What happened; `unknown` for what this version of the server does not know */
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
            /** @description Names this connection in logs and to support */
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
        /** @description The first frame of a client: from where on it wants the events */
        ResumeFrame: {
            /** @description Sequence of the last event seen, however old (0: from the beginning); without it, only what is new */
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
