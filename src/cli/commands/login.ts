import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { exchangeToken } from '../../contracts/index.ts';
import { createClient } from '../../http/client.ts';
import { defineCommand, ok } from '../define-command.ts';
import { lightFetch } from '../light-fetch.ts';
import { gatewayHere, namedGateway } from '../named-gateway.ts';
import { UsageError } from '../parse-args.ts';
import { savedLogins } from '../saved-logins.ts';

/** @spec Client credentials and token pair */
export const login = defineCommand({
  name: 'login',
  summary: 'Log in to a gateway elsewhere with client credentials; the secret is read from stdin',
  example: 'svc login client_01b8dac5 --url https://svc.example.com < secret.txt',
  args: z.object({ client: z.string().min(1).describe("the client's id, from `svc clients create`") }),
  async run({ client: clientId }, { globals, env, clock, platform }) {
    const place = { globals, env, platform };
    const url = namedGateway(place);
    if (!url)
      throw new UsageError(
        'Say where to log in: --url or SVC_GATEWAY_URL. On its own machine the CLI needs no login.',
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
    `Logged in to ${url} as ${clientId}. Commands ${usedIn === null ? 'outside of projects' : `of ${usedIn}`} go there from now on; svc logout ends that.`,
});

/** A secret in an argument would stand in the process list and the shell's history. */
async function secretFromStdin(): Promise<string> {
  if (process.stdin.isTTY)
    throw new UsageError('Give the client secret on stdin: svc login <client> --url <address> < secret.txt');
  const secret = (await text(process.stdin)).replace(/\r?\n$/, '');
  if (secret === '') throw new UsageError('The client secret on stdin is empty.');
  return secret;
}
