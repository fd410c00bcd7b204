/*
 * WARNING: what is stored of participants is part of the storage format: the log keeps it forever. A new member is optional.
 *
 * The participants of channels, with their details at the time of joining: as events store them, and as the API shows them
 * (contract, section 2.2, detail forms).
 */
import { z } from 'zod';

import { organizationSummary } from '#libs/features/organizations/index.ts';
import { field, fields } from '#libs/kernel/fields.ts';
import { stringMap } from '#libs/platform/http/index.ts';

const nullableText = z.string().nullable();
const withDefault = { output: z.string().default('') };
const map = z.record(z.string(), z.string()).nullable();
const shownMap = { output: stringMap().nullable() };
const recordId = { output: z.string().describe('Id of the participant record, used to remove the participant') };
const storedOrganization = z.object({
  id: z.string(),
  name: z.string(),
  owner: z.object({ display_name: z.string(), image_url: z.string() }).nullable(),
  application: nullableText,
});

const tables = {
  authenticated_user: fields({
    type: field('type', z.literal('authenticated_user')),
    user_id: field('userId', z.string()),
    id: field('participantId', z.string(), recordId),
    display_name: field('displayName', z.string()),
    image_url: field('imageUrl', nullableText),
    is_owner: field('isOwner', z.boolean(), {
      output: z.boolean().describe('Whether the user belongs to the organization that owns the channel'),
    }),
  }),
  non_authenticated_user: fields({
    type: field('type', z.literal('non_authenticated_user')),
    user_metadata: field('userMetadata', map, shownMap),
  }),
  agent: fields({
    id: field('agentId', z.string()),
    chat_user_id: field('participantId', z.string(), recordId),
    type: field('type', z.literal('agent')),
    name: field('name', z.string(), withDefault),
    description: field('description', z.string(), withDefault),
    is_active: field('isActive', z.boolean(), { output: z.boolean().default(true) }),
    // Absent in events before participants had it.
    organization: field('organization', storedOrganization.nullable().optional(), {
      byDefault: null,
      output: organizationSummary.nullable(),
    }),
    image_url: field('imageUrl', nullableText),
    personality: field('personality', z.string(), withDefault),
    website: field('website', nullableText),
    agent_capabilities: field('agentCapabilities', nullableText),
    agent_url: field('agentUrl', nullableText),
    agent_address: field('agentAddress', nullableText),
    agent_handle: field('agentHandle', nullableText),
    is_verified: field('isVerified', z.boolean(), { output: z.boolean().default(false) }),
    allow_html_responses: field('allowHtmlResponses', z.boolean(), { output: z.boolean().default(false) }),
  }),
  external_agent: fields({
    type: field('type', z.literal('external_agent')),
    agent_metadata: field('agentMetadata', map, shownMap),
  }),
};

/** Members that each kind stores, and stores first. */
const stored = <Kind extends keyof typeof tables>(type: Kind) => ({ type: z.literal(type), participantId: z.string() });

export const participant = z.discriminatedUnion('type', [
  z.object({ ...stored('authenticated_user'), ...tables.authenticated_user.stored }),
  z.object({ ...stored('non_authenticated_user'), ...tables.non_authenticated_user.stored }),
  z.object({ ...stored('agent'), ...tables.agent.stored }),
  z.object({ ...stored('external_agent'), ...tables.external_agent.stored }),
]);
export type Participant = z.infer<typeof participant>;

export const participantSchema = z
  .discriminatedUnion('type', [
    z.object(tables.authenticated_user.output).meta({ id: 'AuthenticatedUserParticipant' }),
    z.object(tables.non_authenticated_user.output).meta({ id: 'NonAuthenticatedUserParticipant' }),
    z.object(tables.agent.output).meta({ id: 'AgentParticipant' }),
    z.object(tables.external_agent.output).meta({ id: 'ExternalAgentParticipant' }),
  ])
  .meta({ id: 'ChannelParticipant' });

/** A participant as the API returns it. */
export function participantResource(one: Participant): z.input<typeof participantSchema> {
  return tables[one.type].resource(one as never);
}
