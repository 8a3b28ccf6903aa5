import { resolve } from 'node:path';
import { z } from 'zod';
import { type AgentIdentity, agentHome, readIdentity } from '../../../agent/index.ts';
import type { Environment } from '../../../kit/config/config.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';

export const homeFlag = z
  .string()
  .min(1)
  .optional()
  .describe(
    'folder of the registration and downloaded plugins; default: SVC_AGENT_HOME or ~/.config/svc/agent',
  );

/** Reads the registration of this machine as a host. Throws CONFIG_NOT_FOUND if the machine is not registered. */
export async function registeredAgent(
  home: string | undefined,
  { cwd, env }: { cwd: string; env: Environment },
): Promise<{ folder: string; identity: AgentIdentity }> {
  const folder = resolve(cwd, home ?? agentHome(env));
  const identity = await readIdentity(folder);
  if (identity) return { folder, identity };
  throw new PlatformError(
    'CONFIG_NOT_FOUND',
    `This machine is not registered (no agent.json in ${folder}).`,
    {
      details: { hint: 'svc agent register --gateway <address> --token <token of `svc hosts invite`>' },
    },
  );
}
