import type {
  ConnectionChange,
  ConnectionEndpoints,
  ConnectionSettings,
} from '../../../../../contracts/index.ts';
import { ConnectionEndpoints as EndpointsSchema } from '../../../../../contracts/index.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { StoredSettings } from '../connection-records.ts';
import { CATALOGUE, type CatalogueProvider } from './catalogue.ts';
import type { Discovered, ProviderClient } from './provider-client.ts';
import { ProviderError } from './provider-error.ts';

type Endpoints = Pick<
  StoredSettings,
  'issuer' | 'authorizationUrl' | 'tokenUrl' | 'revocationUrl' | 'clientAuth'
>;

/** Completes the settings of a new connection by the catalogue, or by discovery. */
export async function resolveSettings(
  client: Pick<ProviderClient, 'discover'>,
  settings: Omit<ConnectionSettings, 'clientSecret'>,
  secret: { secretName: string | null; hasSecret: boolean },
): Promise<StoredSettings> {
  const { provider: id, variables = {}, clientId } = settings;
  const provider = id === undefined ? undefined : CATALOGUE[id];
  const endpoints = provider
    ? catalogueEndpoints(provider, variables)
    : await genericEndpoints(client, settings.endpoints!, clientId);
  return {
    ...endpoints,
    provider: id ?? null,
    clientId,
    secretName: secret.secretName,
    clientAuth: secret.hasSecret ? (settings.clientAuth ?? endpoints.clientAuth) : 'none',
    scopes: [...(settings.scopes ?? provider?.scopes ?? [])],
    scopeSeparator: provider?.scopeSeparator ?? ' ',
    pkce: provider?.pkce ?? true,
    authorizationParams: { ...provider?.authorizationParams, ...settings.authorizationParams },
    tokenLifetimeSeconds: provider?.tokenLifetimeSeconds ?? null,
  };
}

/** Client secret after a change: the name of a stored secret, if it is one, and whether there is a secret at all. */
interface ChangedSecret {
  secretName: string | null;
  hasSecret: boolean;
}

/** Returns the settings after a change. Undefined leaves the client secret as it is. */
export function changedSettings(
  settings: StoredSettings,
  { clientAuth, scopes, authorizationParams }: ConnectionChange,
  secret: ChangedSecret | undefined,
  hadSecret: boolean,
): StoredSettings {
  const provider = isCatalogued(settings.provider) ? CATALOGUE[settings.provider] : undefined;
  const isConfidential = secret?.hasSecret ?? hadSecret;
  const former = settings.clientAuth === 'none' ? (provider?.clientAuth ?? 'basic') : settings.clientAuth;
  return {
    ...settings,
    secretName: secret ? secret.secretName : settings.secretName,
    clientAuth: isConfidential ? (clientAuth ?? former) : 'none',
    scopes: scopes ? [...scopes] : settings.scopes,
    authorizationParams: authorizationParams
      ? { ...provider?.authorizationParams, ...authorizationParams }
      : settings.authorizationParams,
  };
}

const isCatalogued = (id: string | null): id is keyof typeof CATALOGUE =>
  id !== null && Object.hasOwn(CATALOGUE, id);

function catalogueEndpoints(
  provider: CatalogueProvider,
  variables: Readonly<Record<string, string>>,
): Endpoints {
  const known = provider.variables ?? {};
  const unknown = Object.keys(variables).find((name) => !Object.hasOwn(known, name));
  if (unknown !== undefined)
    throw new PlatformError(
      'VALIDATION_ERROR',
      `variables.${unknown}: ${provider.name} has ${Object.keys(known).length === 0 ? 'no variables' : `only ${Object.keys(known).join(', ')}`}.`,
    );
  const filled = (template: string): string =>
    template.replace(/\{(\w+)\}/g, (_, name: string) => variables[name] ?? known[name]!);
  const { issuer, authorizationUrl, tokenUrl, revocationUrl, clientAuth } = provider;
  return {
    issuer: issuer === undefined ? null : filled(issuer),
    authorizationUrl: filled(authorizationUrl),
    tokenUrl: filled(tokenUrl),
    revocationUrl: revocationUrl === undefined ? null : filled(revocationUrl),
    clientAuth,
  };
}

/**
 * Reads the endpoints that are not named from the issuer. A named issuer must vouch for the token endpoint. Otherwise, a
 * tenant could name the issuer of another provider, and its codes would be sent to the tenant's endpoint.
 */
async function genericEndpoints(
  client: Pick<ProviderClient, 'discover'>,
  endpoints: ConnectionEndpoints,
  clientId: string,
): Promise<Endpoints> {
  const { issuer, authorizationUrl, tokenUrl, revocationUrl } = endpoints;
  if (issuer === undefined)
    return {
      issuer: null,
      authorizationUrl: authorizationUrl!,
      tokenUrl: tokenUrl!,
      revocationUrl: revocationUrl ?? null,
      clientAuth: 'basic',
    };
  const isComplete = authorizationUrl !== undefined && tokenUrl !== undefined;
  const isOwn = isComplete && [authorizationUrl, tokenUrl].every((url) => isSameOrigin(url, issuer));
  const found = isOwn ? undefined : await discovered(client, issuer, clientId);
  if (found && tokenUrl !== undefined && tokenUrl !== found.tokenUrl) throw notVouched('tokenUrl', issuer);
  if (found && authorizationUrl !== undefined && authorizationUrl !== found.authorizationUrl)
    throw notVouched('authorizationUrl', issuer);
  const complete = EndpointsSchema.safeParse({
    issuer: found?.issuer ?? issuer,
    authorizationUrl: authorizationUrl ?? found?.authorizationUrl,
    tokenUrl: tokenUrl ?? found?.tokenUrl,
    ...urlOf('revocationUrl', revocationUrl ?? found?.revocationUrl),
  });
  const { data } = complete;
  if (!data?.authorizationUrl || !data.tokenUrl)
    throw new PlatformError(
      'VALIDATION_ERROR',
      `endpoints.issuer: the discovery document of ${issuer} has no usable authorization and token endpoints.`,
    );
  return {
    issuer: data.issuer!,
    authorizationUrl: data.authorizationUrl,
    tokenUrl: data.tokenUrl,
    revocationUrl: data.revocationUrl ?? null,
    clientAuth: found?.clientAuth ?? 'basic',
  };
}

const urlOf = (name: string, url: string | null | undefined): Record<string, string> =>
  url ? { [name]: url } : {};

const isSameOrigin = (url: string, other: string): boolean => new URL(url).origin === new URL(other).origin;

async function discovered(
  client: Pick<ProviderClient, 'discover'>,
  issuer: string,
  clientId: string,
): Promise<Discovered> {
  try {
    return await client.discover(issuer, clientId);
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    const code = error.code === 'address_refused' ? 'PERMISSION_DENIED' : 'UPSTREAM_UNAVAILABLE';
    throw new PlatformError(code, `The discovery document of ${issuer} cannot be read. ${error.message}`, {
      cause: error,
      details: { reason: error.code },
    });
  }
}

function notVouched(field: string, issuer: string): PlatformError {
  return new PlatformError(
    'VALIDATION_ERROR',
    `endpoints.${field}: the discovery document of ${issuer} names another one. Leave ${field} out, or leave issuer out.`,
  );
}
