import { z } from 'zod';
import {
  connectSource,
  createClientCredentials,
  createSource,
  deleteSource,
  grantRole,
  mintToken,
  PROVIDER_IDS,
  revokeClient,
  type Scope,
  SourceName,
} from '../../contracts/index.ts';
import { messageOf } from '../../kit/errors/errors.ts';
import type { CommandContext } from '../context.ts';
import { defineCommand, ok } from '../define-command.ts';
import { selectedNamespace } from '../selected-namespace.ts';
import { shellWord } from '../shell-word.ts';
import { pairs } from '../table.ts';
import { timeText } from '../time-text.ts';
import { clientConfig, fileOf, MCP_CLIENTS } from './mcp/client-config.ts';

const TOOLS = ['events_wait', 'events_ack', 'events_nack'];
const SECONDS_A_DAY = 24 * 3600;

interface AgentInbox {
  url: string;
  /** Secret for the sender, or empty if the URL holds a token. */
  secret: string;
  queue: string;
  clientId: string;
  scopes: string[];
  token: string;
  expiresAt: number;
  /** Configuration of the MCP client. */
  config: Record<string, unknown>;
}

/**
 * Creates an inbox for an agent: a source, a queue and a token for this queue only. @spec docs/agent-inbox.md
 */
export const agentInbox = defineCommand({
  name: 'agent-inbox',
  summary: 'Create a durable inbox for an agent: a URL, a queue and a token',
  example: 'svc agent-inbox orders --client claude',
  args: z.object({
    name: SourceName.describe('name of the source and of the queue'),
    client: z.enum(MCP_CLIENTS).default('claude').describe('MCP client of the agent'),
    provider: z
      .enum(PROVIDER_IDS)
      .optional()
      .describe('provider that signs the events; default: a token in the URL'),
    days: z.coerce.number().int().min(1).max(3650).default(30).describe('lifetime of the token'),
  }),
  async run({ name, client: app, provider, days }, context): Promise<ReturnType<typeof ok<AgentInbox>>> {
    const { client, ui } = context;
    const auth = provider ? { provider } : { auth: { type: 'token' } };
    const { url, secret } = await client.call(createSource, { body: { name, ...auth } as never });
    let agent: Awaited<ReturnType<typeof createAgent>>;
    try {
      await client.call(connectSource, { params: { name }, body: { queue: name } as never });
      agent = await createAgent(name, days, context);
    } catch (error) {
      // The URL is shown only once, so a source without an agent is of no use. A second try creates it again.
      await cleanUp(
        () => client.call(deleteSource, { params: { name } }),
        { what: `source "${name}"`, command: `svc sources delete ${name}` },
        context,
      );
      throw error;
    }
    ui.warn('Copy the URL and the token now; they are shown only once.');
    ui.note(`Save the configuration as ${fileOf(app)}, and set SVC_TOKEN to the token.`);
    return ok({
      url,
      secret,
      queue: name,
      ...agent,
      config: clientConfig(app, context, { usesToken: true }),
    });
  },
  text: ({ url, secret, queue, clientId, token, expiresAt, config }: AgentInbox, style) =>
    [
      pairs(
        [
          ['url', url],
          ...(secret ? [['secret', secret] as [string, string]] : []),
          ['queue', queue],
          ['client id', clientId],
          ['token', token],
          ['expires', timeText(expiresAt)],
        ],
        style,
      ),
      JSON.stringify(config, null, 2),
    ].join('\n\n'),
});

/** Creates a client that may use the queue only, and its token. Revokes the client if a later step fails. */
async function createAgent(name: string, days: number, context: CommandContext) {
  const { client, globals } = context;
  const given = selectedNamespace(globals);
  const scopes = [...TOOLS.map((tool) => `mcp:${tool}`), `queue:${name}`] as Scope[];
  const { clientId, hostId, namespaceId } = await client.call(createClientCredentials, {
    body: { name: `agent-inbox ${name}`, scopes, ...(given ? { namespaceId: given } : {}) },
  });
  const subject = `client:${clientId}` as never;
  try {
    await client.call(grantRole, { body: { subject, role: 'editor', namespaceId: namespaceId as never } });
    const { token, expiresAt } = await client.call(mintToken, {
      body: { hostId: hostId as never, namespaceId: namespaceId as never, ttlSeconds: days * SECONDS_A_DAY },
    });
    return { clientId, scopes: [...scopes], token, expiresAt };
  } catch (error) {
    await cleanUp(
      () => client.call(revokeClient, { params: { clientId } }),
      { what: `client ${clientId}`, command: `svc clients revoke ${clientId}` },
      context,
    );
    throw error;
  }
}

/** Removes what was created before a failure. If this fails too, warns with the command that removes it. */
async function cleanUp(
  remove: () => Promise<unknown>,
  { what, command }: { what: string; command: string },
  { ui, globals }: Pick<CommandContext, 'ui' | 'globals'>,
): Promise<void> {
  try {
    await remove();
  } catch (error) {
    const full = [command, ...targetFlags(globals)].join(' ');
    ui.warn(`The ${what} could not be removed: ${messageOf(error)}\nRemove it with: ${full}`);
  }
}

/** Returns the flags of this command that select the gateway and the namespace. */
function targetFlags(globals: CommandContext['globals']): string[] {
  return (['config', 'profile', 'namespace', 'url'] as const).flatMap((flag) => {
    const value = globals[flag];
    return value === undefined ? [] : [`--${flag}`, shellWord(value)];
  });
}
