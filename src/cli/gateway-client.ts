import { readFileSync } from 'node:fs';
import { exchangeToken, HEADERS, refreshToken } from '../contracts/index.ts';
import type { OperatorCredentials } from '../daemons/define-daemon.ts';
import { type Client, createClient, openStream } from '../http/client.ts';
import { minutes } from '../kit/duration.ts';
import { PlatformError } from '../kit/errors.ts';
import type { CommandContext } from './context.ts';
import { lightFetch } from './light-fetch.ts';
import { isLoopback, namedGateway } from './named-gateway.ts';
import { isProject, notRunning, startHint } from './not-running.ts';
import { type SavedLogin, savedLogins } from './saved-logins.ts';
import { findSupervisor } from './supervisor/control-client.ts';
import { writePrivateFile } from './supervisor/data-folder.ts';
import { readCredentials } from './supervisor/keys-file.ts';
import { runningUrl } from './supervisor/run-file.ts';

/** A cached token is not used in its last minute. */
const RENEW_EARLY_MS = minutes(1);

interface CachedToken {
  url: string;
  clientId: string;
  accessToken: string;
  /** Epoch milliseconds. */
  expiresAt: number;
}

/** A client of the gateway that logs in by itself, and once again when a kept token is no longer taken. */
export async function createGatewayClient(context: CommandContext): Promise<Client> {
  const { globals } = context;
  const url = await gatewayUrl(context);
  const given = await givenToken(context, url);
  const withToken = (token: string): Client => ({
    async call(endpoint, input, options) {
      let requestId: string | null = null;
      const client = createClient({
        url,
        peer: 'gateway',
        async send(target, request) {
          const reply = await lightFetch(target, request);
          requestId = reply.headers.get(HEADERS.requestId);
          return reply;
        },
        headers: () => ({
          authorization: `Bearer ${token}`,
          ...(globals.namespace ? { [HEADERS.namespace]: globals.namespace } : {}),
        }),
      });
      try {
        return await client.call(endpoint, input, options);
      } catch (error) {
        // The log has more of what failed over there; of a refusal the message says all.
        const isOurFault =
          error instanceof PlatformError && (error.status === 500 || error.code === 'STORE_ERROR');
        if (requestId !== null && isOurFault) error.details.requestId ??= requestId;
        throw error;
      }
    },
  });
  if (given) return withToken(given);
  let login: Promise<string> | undefined;
  /** Calls that are made at the same time log in once. */
  const freshToken = (): Promise<string> => (login ??= operatorToken(context, url));
  return {
    async call(endpoint, input, options) {
      const kept = keptToken(context, url);
      try {
        return await withToken(kept ?? (await freshToken())).call(endpoint, input, options);
      } catch (error) {
        // The platform may have new keys since; a token that was just made needs no second try.
        if (!kept || !(error instanceof PlatformError && error.code === 'UNAUTHORIZED'))
          throw explained(error, context);
        return withToken(await freshToken()).call(endpoint, input, options);
      }
    },
  };
}

/**
 * A response as it comes, for streams; logs in as `createGatewayClient` does. Throws the gateway's own error, or
 * UPSTREAM_UNAVAILABLE.
 */
export async function openGatewayStream(
  context: CommandContext,
  path: string,
  { headers, signal }: { headers: Record<string, string>; signal: AbortSignal },
): Promise<Response> {
  const url = await gatewayUrl(context);
  const given = await givenToken(context, url);
  const kept = given ?? keptToken(context, url);
  const open = (token: string): Promise<Response> =>
    openStream(url, path, { signal, headers: { ...headers, authorization: `Bearer ${token}` } });
  try {
    return await open(kept ?? (await operatorToken(context, url)));
  } catch (error) {
    if (given || !kept || !(error instanceof PlatformError && error.code === 'UNAUTHORIZED'))
      throw explained(error, context);
    return open(await operatorToken(context, url));
  }
}

/** `--token`, SVC_TOKEN, or what `svc login` keeps for a gateway that was named; undefined: the operator's own. */
async function givenToken(context: CommandContext, url: string): Promise<string | undefined> {
  const { globals } = context;
  const { env } = context.platform();
  const given = globals.token ?? env.SVC_TOKEN;
  if (given) return given;
  const elsewhere = namedGateway(context);
  const login = elsewhere ? savedLogins(context.env).find(elsewhere) : undefined;
  return login && (await currentToken(context, url, login));
}

/** `--url`, SVC_GATEWAY_URL, the gateway that runs on this data folder, else where the config says it would be. */
async function gatewayUrl(context: CommandContext): Promise<string> {
  const { platform, folder } = context;
  const given = namedGateway(context);
  if (given) return given;
  const { config } = platform();
  const running = runningUrl(folder(), 'gateway');
  if (running) return running;
  // Its port is chosen at each start, so there is no address to try.
  if (config.gateway.port === 0)
    throw notRunning(
      context,
      isProject(context)
        ? 'Start it: svc up -d; or name a gateway elsewhere: --url, SVC_GATEWAY_URL.'
        : startHint(context),
    );
  return `http://127.0.0.1:${config.gateway.port}`;
}

/** Where nothing runs and nobody named a gateway, what helps is to start one. */
function explained(error: unknown, context: CommandContext): unknown {
  const isAway = error instanceof PlatformError && error.code === 'UPSTREAM_UNAVAILABLE';
  return isAway && !namedGateway(context) && !findSupervisor(context.folder()) ? notRunning(context) : error;
}

/** An access token of this machine's operator, kept for the next commands. Throws UNAUTHORIZED where there are no credentials. */
export async function operatorToken(context: CommandContext, url: string): Promise<string> {
  const operator = requireCredentials(context, url);
  const { clientId, clientSecret } = operator;
  const login = createClient({ url, peer: 'gateway', send: lightFetch });
  const reply = await login.call(exchangeToken, { body: { clientId, clientSecret } });
  const kept: CachedToken = {
    url,
    clientId,
    accessToken: reply.accessToken,
    expiresAt: context.clock.now() + reply.expiresIn * 1000,
  };
  writePrivateFile(context.folder().tokenCache, JSON.stringify(kept));
  return reply.accessToken;
}

/** The access token of a login, renewed when it is about to expire. Throws UNAUTHORIZED when the login is over. */
async function currentToken(context: CommandContext, url: string, login: SavedLogin): Promise<string> {
  if (login.expiresAt - RENEW_EARLY_MS > context.clock.now()) return login.accessToken;
  const gateway = createClient({ url, peer: 'gateway', send: lightFetch });
  const reply = await gateway.call(refreshToken, { body: { refreshToken: login.refreshToken } });
  const expiresAt = context.clock.now() + reply.expiresIn * 1000;
  const { accessToken } = reply;
  savedLogins(context.env).save(url, { ...login, accessToken, refreshToken: reply.refreshToken, expiresAt });
  return accessToken;
}

function keptToken(context: CommandContext, url: string): string | null {
  try {
    const kept = JSON.parse(readFileSync(context.folder().tokenCache, 'utf8')) as CachedToken;
    const fits = kept.url === url && kept.clientId === requireCredentials(context, url).clientId;
    return fits && kept.expiresAt - RENEW_EARLY_MS > context.clock.now() ? kept.accessToken : null;
  } catch {
    return null;
  }
}

/** The secret of this machine's operator goes to this machine's gateway and to nobody else, whatever `--url` says. */
function requireCredentials(context: CommandContext, url: string): OperatorCredentials {
  if (!isOwn(context, url)) {
    throw new PlatformError('UNAUTHORIZED', `You are not logged in to ${url}.`, {
      details: {
        hint: `svc login <client> --url ${url} < secret.txt, or give a token: --token or SVC_TOKEN.`,
      },
    });
  }
  const credentials = readCredentials(context.folder());
  if (credentials) return credentials;
  const { root } = context.folder();
  const mend = isProject(context)
    ? 'Start the platform with `svc up -d`'
    : 'Go to a project, or make one with `svc init`';
  throw new PlatformError('UNAUTHORIZED', `There are no credentials in ${root}.`, {
    details: { hint: `${mend}, or give a token: SVC_TOKEN or --token.` },
  });
}

/** Whether the address is this machine, where the config listens, or what the config calls its public address. */
function isOwn({ platform }: CommandContext, url: string): boolean {
  const { host, publicUrl } = platform().config.gateway;
  const { hostname, origin } = new URL(url);
  if (isLoopback(hostname) || hostname === host) return true;
  return publicUrl !== null && new URL(publicUrl).origin === origin;
}
