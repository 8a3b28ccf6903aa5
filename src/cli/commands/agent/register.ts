import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { z } from 'zod';
import { agentHome, readIdentity, registerAgent } from '../../../agent/index.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { defineCommand, ok } from '../../define-command.ts';
import { labelsOf } from '../../label-flag.ts';
import { UsageError } from '../../parse-args.ts';
import { givenGateway } from '../../selected-gateway.ts';
import { shellWord } from '../../shell-word.ts';
import { pairs } from '../../table.ts';
import { homeFlag } from './registration.ts';

/** @spec Authentication 9 */
export const register = defineCommand({
  name: 'agent register',
  summary: 'Register this machine as a host that runs plugin code',
  example: 'svc agent register --gateway https://svc.example.com --token <enrolment token>',
  idField: 'hostId',
  args: z.object({
    gateway: z.url().optional().describe('gateway URL; default: --url or SVC_GATEWAY_URL'),
    name: z.string().min(1).max(128).default(hostname()).describe('default: the host name'),
    label: z.array(z.string()).default([]).describe('k=v, repeatable; the config selects hosts by labels'),
    capability: z.array(z.string().min(1).max(64)).default([]).describe('repeatable'),
    home: homeFlag,
    replace: z.boolean().default(false).describe('replace an existing registration of this machine'),
  }),
  async run({ gateway, name, label, capability, home, replace }, { globals, cwd, env, ui, platform }) {
    const url = gateway ?? givenGateway({ globals, env, platform });
    const token = globals.token ?? env.SVC_TOKEN;
    if (!url) throw new UsageError('The gateway URL is missing. Set --gateway <url>.');
    if (!token)
      throw new UsageError('The enrolment token of `svc hosts invite` is missing. Set --token or SVC_TOKEN.');
    const folder = resolve(cwd, home ?? agentHome(env));
    const labels = labelsOf(label);
    const known = await readIdentity(folder).catch(() => undefined);
    if (known && !replace) {
      throw new PlatformError(
        'CONFLICT',
        `This machine is already registered as ${known.hostId} at ${known.gateway}.`,
        {
          details: {
            hint: 'Add --replace to register this machine again; `svc hosts revoke` revokes the old registration.',
          },
        },
      );
    }
    const done = await registerAgent({
      gateway: url,
      token,
      name,
      labels,
      capabilities: capability,
      home: folder,
    });
    ui.note(`Start it with: svc agent run${home ? ` --home ${shellWord(home)}` : ''}`);
    const { hostId, namespaceId, clientId, gateway: at, file } = done;
    return ok({ hostId, clientId, namespaceId, name, gateway: at, file });
  },
  text: ({ hostId, namespaceId, gateway, file }: Record<string, string>, style) =>
    pairs(
      [
        ['host', hostId!],
        ['namespace', namespaceId!],
        ['gateway', gateway!],
        ['stored in', file!],
      ],
      style,
    ),
});
