import { z } from 'zod';
import { defineCommand, ok } from '../define-command.ts';
import { gatewayHere, namedGateway } from '../named-gateway.ts';
import { UsageError } from '../parse-args.ts';
import { savedLogins } from '../saved-logins.ts';

/** Forgets here; whoever copied the tokens keeps them until `svc clients revoke`. */
export const logout = defineCommand({
  name: 'logout',
  summary: 'Forget the login to a gateway elsewhere',
  example: 'svc logout --url https://svc.example.com',
  args: z.object({}),
  async run(_args, { globals, env, platform }) {
    const place = { globals, env, platform };
    const url = namedGateway(place);
    if (!url) throw new UsageError('Say which login to forget: --url or SVC_GATEWAY_URL.');
    gatewayHere(place).remove(url);
    return ok({ url: new URL(url).origin, removed: savedLogins(env).remove(url) });
  },
  text: ({ url, removed }: { url: string; removed: boolean }) =>
    removed ? `Logged out of ${url}.` : `There was no login to ${url}.`,
});
