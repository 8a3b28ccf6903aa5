import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { exchangeToken } from '../../contracts/index.ts';
import { createClient } from '../../http/client.ts';
import { defineCommand, ok } from '../define-command.ts';
import { lightFetch } from '../light-fetch.ts';
import { UsageError } from '../parse-args.ts';
import { savedLogins } from '../saved-logins.ts';
import { gatewayHere, selectedGateway } from '../selected-gateway.ts';

/** @spec Client credentials and token pair */
export const login = defineCommand({
  name: 'login',
  summary: 'Log in to a remote gateway with client credentials; the secret is read from stdin',
  example: 'svc login client_01b8dac5 --url https://svc.example.com < secret.txt',
  args: z.object({ client: z.string().min(1).describe('client id from `svc clients create`') }),
  async run({ client: clientId }, { globals, env, clock, platform }) {
    const place = { globals, env, platform };
    const url = selectedGateway(place);
    if (!url)
      throw new UsageError(
        'The gateway URL is missing. Set --url or SVC_GATEWAY_URL. A platform on this machine needs no login.',
      );
    const clientSecret = await secretFromStdin();
    const gateway = createClient({ url, peer: 'gateway', send: lightFetch });
    const { accessToken, refreshToken, expiresIn } = await gateway.call(exchangeToken, {
      body: { clientId, clientSecret },
    });
    const expiresAt = clock.now() + expiresIn * 1000;
    savedLogins(env).save(url, { clientId, accessToken, refreshToken, expiresAt });
    gatewayHere(place).save(url);
    const { configFile, projectDir } = platform();
    return ok({ url: new URL(url).origin, clientId, usedIn: configFile === null ? null : projectDir });
  },
  text: ({ url, clientId, usedIn }: { url: string; clientId: string; usedIn: string | null }) =>
    `Logged in to ${url} as ${clientId}. Commands ${usedIn === null ? 'outside of projects' : `in ${usedIn}`} now use this gateway. To undo: svc logout.`,
});

/** Reads the secret from stdin, because arguments are visible in the process list and the shell history. */
async function secretFromStdin(): Promise<string> {
  if (process.stdin.isTTY)
    throw new UsageError('The client secret is read from stdin: svc login <client> --url <url> < secret.txt');
  const secret = (await text(process.stdin)).replace(/\r?\n$/, '');
  if (secret === '') throw new UsageError('The client secret on stdin is empty.');
  return secret;
}
