import { readFileSync } from 'node:fs';
import { exchangeToken, HEADERS, refreshToken } from '../contracts/index.ts';
import type { OperatorCredentials } from '../daemons/process-protocol.ts';
import { type Client, createClient, openStream } from '../http/client.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import { minutes } from '../kit/time/duration.ts';
import { findSupervisor } from '../supervisor/control-client.ts';
import { writePrivateFile } from '../supervisor/data-folder.ts';
import { readCredentials } from '../supervisor/keys-file.ts';
import { runningUrl } from '../supervisor/run-file.ts';
import type { CommandContext } from './context.ts';
import { lightFetch } from './light-fetch.ts';
import { isProject, notRunning, startHint } from './not-running.ts';
import { type SavedLogin, savedLogins } from './saved-logins.ts';
import { isLoopback, selectedGateway } from './selected-gateway.ts';

/** Time before the expiry at which a cached token is renewed, in ms. */
const RENEW_EARLY_MS = minutes(1);

interface CachedToken {
  url: string;
  clientId: string;
  accessToken: string;
  /** Expiry time in epoch milliseconds. */
  expiresAt: number;
}

/**
 * Creates a client for the gateway. Without a given token, the client logs in when needed. If the gateway rejects a
 * cached token, the client logs in again and retries the request once.
 */
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
        // The request id is added only to server errors. The user can find the cause of such an error in the log by
        // this id.
        const isServerError =
          error instanceof PlatformError && (error.status === 500 || error.code === 'STORE_ERROR');
        if (requestId !== null && isServerError) error.details.requestId ??= requestId;
        throw error;
      }
    },
  });
  if (given) return withToken(given);
  let login: Promise<string> | undefined;
  /** Returns a new token. Concurrent calls share one login. */
  const freshToken = (): Promise<string> => (login ??= operatorToken(context, url));
  return {
    async call(endpoint, input, options) {
      const cached = cachedToken(context, url);
      try {
        return await withToken(cached ?? (await freshToken())).call(endpoint, input, options);
      } catch (error) {
        // The gateway rejects a cached token if the platform has changed its keys. A retry with a new token can succeed
        // only in this case.
        if (!cached || !(error instanceof PlatformError && error.code === 'UNAUTHORIZED'))
          throw withStartHint(error, context);
        return withToken(await freshToken()).call(endpoint, input, options);
      }
    },
  };
}

/**
 * Opens a stream with the same authentication as `createGatewayClient`. Throws the error of the gateway. Throws
 * UPSTREAM_UNAVAILABLE if the gateway does not answer.
 */
export async function openGatewayStream(
  context: CommandContext,
  path: string,
  { headers, signal }: { headers: Record<string, string>; signal: AbortSignal },
): Promise<Response> {
  const url = await gatewayUrl(context);
  const given = await givenToken(context, url);
  const cached = given ?? cachedToken(context, url);
  const open = (token: string): Promise<Response> =>
    openStream(url, path, { signal, headers: { ...headers, authorization: `Bearer ${token}` } });
  try {
    return await open(cached ?? (await operatorToken(context, url)));
  } catch (error) {
    if (given || !cached || !(error instanceof PlatformError && error.code === 'UNAUTHORIZED'))
      throw withStartHint(error, context);
    return open(await operatorToken(context, url));
  }
}

/**
 * Sends a request with the same authentication as `createGatewayClient`, and returns the answer of any status. Rejects
 * if the gateway is unreachable.
 */
export async function sendToGateway(
  context: CommandContext,
  path: string,
  { headers, ...request }: RequestInit & { headers: Record<string, string> },
): Promise<Response> {
  const url = await gatewayUrl(context);
  const given = await givenToken(context, url);
  const cached = given ?? cachedToken(context, url);
  const { namespace } = context.globals;
  const send = (token: string): Promise<Response> =>
    fetch(url.replace(/\/$/, '') + path, {
      ...request,
      redirect: 'error',
      headers: {
        ...headers,
        authorization: `Bearer ${token}`,
        ...(namespace ? { [HEADERS.namespace]: namespace } : {}),
      },
    });
  const response = await send(cached ?? (await operatorToken(context, url)));
  if (given || !cached || response.status !== 401) return response;
  await response.body?.cancel();
  return send(await operatorToken(context, url));
}

/**
 * Returns the token from `--token` or SVC_TOKEN, or else the token of the saved login. Returns undefined if no token
 * exists. The command then uses the operator's credentials.
 */
async function givenToken(context: CommandContext, url: string): Promise<string | undefined> {
  const { globals } = context;
  const { env } = context.platform();
  const given = globals.token ?? env.SVC_TOKEN;
  if (given) return given;
  const named = selectedGateway(context);
  const login = named ? savedLogins(context.env).find(named) : undefined;
  return login && (await currentToken(context, url, login));
}

/** Returns the URL from `--url`, SVC_GATEWAY_URL or `svc login`, or else the URL of the local platform. */
export async function gatewayUrl(context: CommandContext): Promise<string> {
  const { platform, folder } = context;
  const given = selectedGateway(context);
  if (given) return given;
  const { config } = platform();
  const running = runningUrl(folder(), 'gateway');
  if (running) return running;
  // With port 0, the port differs after each start, so a stopped platform has no address.
  if (config.gateway.port === 0)
    throw notRunning(
      context,
      isProject(context)
        ? 'Start it with svc up -d, or select a remote gateway with --url or SVC_GATEWAY_URL.'
        : startHint(context),
    );
  return `http://127.0.0.1:${config.gateway.port}`;
}

/** Replaces the error of an unreachable local platform with an error that explains how to start the platform. */
function withStartHint(error: unknown, context: CommandContext): unknown {
  const isUnreachable = error instanceof PlatformError && error.code === 'UPSTREAM_UNAVAILABLE';
  return isUnreachable && !selectedGateway(context) && !findSupervisor(context.folder())
    ? notRunning(context)
    : error;
}

/**
 * Exchanges the operator's credentials for an access token and caches the token. Throws UNAUTHORIZED if no credentials
 * exist or the gateway is remote.
 */
export async function operatorToken(context: CommandContext, url: string): Promise<string> {
  const operator = requireCredentials(context, url);
  const { clientId, clientSecret } = operator;
  const login = createClient({ url, peer: 'gateway', send: lightFetch });
  const reply = await login.call(exchangeToken, { body: { clientId, clientSecret } });
  const cached: CachedToken = {
    url,
    clientId,
    accessToken: reply.accessToken,
    expiresAt: context.clock.now() + reply.expiresIn * 1000,
  };
  writePrivateFile(context.folder().tokenCache, JSON.stringify(cached));
  return reply.accessToken;
}

/**
 * Returns the access token of a login. Renews a token that is about to expire. Throws UNAUTHORIZED if the login has
 * expired.
 */
async function currentToken(context: CommandContext, url: string, login: SavedLogin): Promise<string> {
  if (login.expiresAt - RENEW_EARLY_MS > context.clock.now()) return login.accessToken;
  const gateway = createClient({ url, peer: 'gateway', send: lightFetch });
  const reply = await gateway.call(refreshToken, { body: { refreshToken: login.refreshToken } });
  const expiresAt = context.clock.now() + reply.expiresIn * 1000;
  const { accessToken } = reply;
  savedLogins(context.env).save(url, { ...login, accessToken, refreshToken: reply.refreshToken, expiresAt });
  return accessToken;
}

function cachedToken(context: CommandContext, url: string): string | null {
  try {
    const cached = JSON.parse(readFileSync(context.folder().tokenCache, 'utf8')) as CachedToken;
    const matches = cached.url === url && cached.clientId === requireCredentials(context, url).clientId;
    return matches && cached.expiresAt - RENEW_EARLY_MS > context.clock.now() ? cached.accessToken : null;
  } catch {
    return null;
  }
}

/**
 * Returns the operator's credentials. Throws UNAUTHORIZED if no credentials exist. Also throws UNAUTHORIZED for a
 * remote gateway, which must never receive these credentials.
 */
function requireCredentials(context: CommandContext, url: string): OperatorCredentials {
  if (!isOwn(context, url)) {
    throw new PlatformError('UNAUTHORIZED', `You are not logged in to ${url}.`, {
      details: {
        hint: `svc login <client> --url ${url} < secret.txt, or pass a token with --token or SVC_TOKEN.`,
      },
    });
  }
  const credentials = readCredentials(context.folder(), context.platform().env);
  if (credentials) return credentials;
  const { root } = context.folder();
  const remedy = isProject(context)
    ? 'Start the platform with `svc up -d`'
    : 'Change to a project, or create one with `svc init`';
  throw new PlatformError('UNAUTHORIZED', `No credentials in ${root}.`, {
    details: { hint: `${remedy}, or pass a token with --token or SVC_TOKEN.` },
  });
}

/** Returns true if the URL points to this machine, to the configured host or to the configured public URL. */
function isOwn({ platform }: CommandContext, url: string): boolean {
  const { host, publicUrl } = platform().config.gateway;
  const { hostname, origin } = new URL(url);
  if (isLoopback(hostname) || hostname === host) return true;
  return publicUrl !== null && new URL(publicUrl).origin === origin;
}
