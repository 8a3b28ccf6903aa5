import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { codeOf, messageOf, PlatformError } from '../kit/errors/errors.ts';
import { replacePrivateFile } from '../kit/files/replace-file.ts';
import { userConfigFolder } from '../kit/files/user-folder.ts';

/** Registration of a machine as stored in `agent.json`. The private key is never sent to the gateway. */
const AgentIdentity = z.object({
  gateway: z.url(),
  hostId: z.string(),
  namespaceId: z.string(),
  name: z.string(),
  clientId: z.string(),
  clientSecret: z.string(),
  capabilities: z.array(z.string()).default([]),
  keys: z.object({ publicKey: z.string(), privateKey: z.string() }),
});
export type AgentIdentity = z.infer<typeof AgentIdentity>;

const FILE = 'agent.json';

/** Returns the home folder of the agent: `SVC_AGENT_HOME`, or else `svc/agent` in the user's config folder. */
export function agentHome(env: NodeJS.ProcessEnv): string {
  if (env.SVC_AGENT_HOME) return env.SVC_AGENT_HOME;
  return join(userConfigFolder(env), 'svc', 'agent');
}

/** Returns undefined if this machine is not registered. Throws CONFIG_PARSE_ERROR for a damaged file. */
export async function readIdentity(home: string): Promise<AgentIdentity | undefined> {
  const file = join(home, FILE);
  try {
    return AgentIdentity.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch (cause) {
    if (codeOf(cause) === 'ENOENT') return undefined;
    throw new PlatformError(
      'CONFIG_PARSE_ERROR',
      `${file} cannot be read: ${messageOf(cause)}. Remove it and register again with \`svc agent register\`.`,
      { details: { file }, cause },
    );
  }
}

/** Writes `agent.json` atomically, with read access only for the owner of the file. */
export async function writeIdentity(home: string, identity: AgentIdentity): Promise<string> {
  const file = join(home, FILE);
  await replacePrivateFile(file, `${JSON.stringify(identity, null, 2)}\n`);
  return file;
}
