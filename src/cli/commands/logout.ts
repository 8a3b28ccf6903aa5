import { z } from 'zod';
import { defineCommand, ok } from '../define-command.ts';
import { UsageError } from '../parse-args.ts';
import { savedLogins } from '../saved-logins.ts';
import { gatewayHere, selectedGateway } from '../selected-gateway.ts';

/**
 * Defines `svc logout`, which removes the login on this machine only. Issued tokens stay valid until they expire or
 * `svc clients revoke` revokes the client.
 */
export const logout = defineCommand({
  name: 'logout',
  summary: 'Remove the login to a remote gateway',
  example: 'svc logout --url https://svc.example.com',
  args: z.object({}),
  async run(_args, { globals, env, platform }) {
    const place = { globals, env, platform };
    const url = selectedGateway(place);
    if (!url) throw new UsageError('The gateway URL is missing. Set --url or SVC_GATEWAY_URL.');
    gatewayHere(place).remove(url);
    return ok({ url: new URL(url).origin, removed: savedLogins(env).remove(url) });
  },
  text: ({ url, removed }: { url: string; removed: boolean }) =>
    removed ? `Logged out of ${url}.` : `Not logged in to ${url}.`,
});
