import { AuditChain } from '../../kit/security/audit-chain.ts';
import { minutes } from '../../kit/time/duration.ts';
import type { GatewayStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { ChangeFeed } from '../membership/change-feed.ts';
import { createOAuthVerifier } from '../oauth/verifier.ts';
import { AccessRights } from './domain/access/access-rights.ts';
import { Roles } from './domain/access/roles.ts';
import { createSocketCutOff } from './domain/access/socket-access.ts';
import { AuditLog } from './domain/audit/audit-log.ts';
import { createEnrolments } from './domain/hosts/enrolments.ts';
import { createHosts } from './domain/hosts/hosts.ts';
import { createAdmins } from './domain/identity/admins.ts';
import { createAttemptLimits } from './domain/identity/attempt-limits.ts';
import {
  type AuthenticatorDeps,
  createAuthenticator,
  type Principal,
} from './domain/identity/authenticator.ts';
import { createClientRegistry } from './domain/identity/client-registry.ts';
import { createClients } from './domain/identity/clients.ts';
import { createJwts } from './domain/identity/jwt.ts';
import { createMintedTokens } from './domain/identity/minted-tokens.ts';
import { PersonRoles } from './domain/identity/oidc/person-roles.ts';
import { OidcProvider } from './domain/identity/oidc/provider.ts';
import { OidcSignIn, type OidcSignInDeps } from './domain/identity/oidc/sign-in.ts';
import { SignInCookie } from './domain/identity/oidc/sign-in-cookie.ts';
import { PortalLinks } from './domain/identity/portal-links.ts';
import { createRevocations } from './domain/identity/revocations.ts';
import { SessionCookie, sessionCookieName } from './domain/identity/session-cookie.ts';
import type { signingKeys } from './domain/identity/signing-secrets.ts';
import { syncStaticTokens } from './domain/identity/static-tokens.ts';
import { StudioSessions } from './domain/identity/studio-sessions.ts';
import { TokenExchange } from './domain/identity/token-exchange.ts';
import { mcpAudience } from './mcp/mcp-url.ts';

export interface IdentityDeps {
  store: GatewayStore;
  signing: ReturnType<typeof signingKeys>;
  feed: ChangeFeed;
  /** Revisions of the static tokens that other live nodes use. */
  elsewhere: readonly (string | null)[];
}

/** Builds the services for tokens, clients, hosts and revocations. */
export async function identityServices(
  resources: Resources,
  { store, signing, feed, elsewhere }: IdentityDeps,
) {
  const { config, clock, random, logger, operator } = resources;
  const { staticTokens: entries, admins: adminHosts, oauth } = config.gateway;
  const { refreshTokens } = store;
  const staticTokens = await syncStaticTokens(entries, { cache: store.cache, logger, elsewhere });
  const revocations = await createRevocations({ store: store.revocations, feed, clock });
  const rights = await AccessRights.open({ store: store.access, feed });
  const jwts = createJwts({ keys: signing, clock, random });
  const registry = createClientRegistry({ store: store.clients, clock, random });
  if (operator)
    await registry.adopt({ ...operator, name: 'operator' }, { isOnlyNode: !resources.hasOtherNodes });
  const verifyOAuth = oauth ? createOAuthVerifier(oauth, { clock, logger }) : undefined;
  const requireFresh = (): void => feed.requireFresh();
  const sessionCookie = openSessionCookie(resources);
  const personRoles = new PersonRoles(config.studio.oidc, rights);
  const accessOf = (principal: Principal) =>
    principal.kind === 'oidc' ? personRoles.of(principal) : rights.of(principal);
  const authentication: AuthenticatorDeps = {
    ...{ staticTokens, jwts, revocations, requireFresh, verifyOAuth, sessionCookie, clock, logger },
    rights: { of: accessOf },
    claimsOfSession: (login, values) => personRoles.claimsOf(login, values),
  };
  const authenticator = createAuthenticator(authentication);
  const mcpAuthenticator = createAuthenticator({
    ...authentication,
    verifyOAuth: oauth ? createOAuthVerifier(mcpAudience(oauth, resources), { clock, logger }) : undefined,
    // A page must not be able to call tools with the session of the studio.
    sessionCookie: { read: () => undefined },
  });
  for (const { clearCache } of [authenticator, mcpAuthenticator]) {
    revocations.onRevoked(clearCache);
    rights.onChanged(clearCache);
    feed.follow('static-tokens', clearCache);
  }
  const admins = createAdmins(adminHosts);
  const roles = new Roles({
    ...{ store: store.access, clients: store.clients, rights, feed, admins, clock },
    operator: operator ?? null,
  });
  const shared = { revocations, admins, random, logger };
  const mintedTokens = createMintedTokens({ ...shared, store: store.mintedTokens, jwts, clock });
  const studioSessions = new StudioSessions({
    ...{ authenticator, cookie: sessionCookie, clients: registry, mintedTokens, admins },
    ...{ cache: store.cache, clock, random },
    publicUrl: config.gateway.publicUrl,
    limiter: resources.createLimiter('studio sign-ins', { windowMs: minutes(1) }),
  });
  return {
    jwts,
    revocations,
    socketCutOff: createSocketCutOff(revocations, { of: accessOf, onChanged: rights.onChanged.bind(rights) }),
    admins,
    rights,
    roles,
    audit: new AuditLog({
      store: store.audit,
      chain: new AuditChain(resources.keys.internalSecret),
      clock,
    }),
    authenticator,
    mcpAuthenticator,
    attempts: createAttemptLimits(resources.createLimiter),
    exchange: new TokenExchange({
      ...{ clients: registry, refreshTokens, jwts, revocations },
      ...{ clock, random, logger },
    }),
    enrolments: createEnrolments({ cache: store.cache, clock, random }),
    hosts: createHosts({ ...shared, store: store.hosts, clients: registry, clock }),
    clients: createClients({ ...shared, store: store.clients, registry, roles, rights, operator, clock }),
    mintedTokens,
    portalLinks: new PortalLinks({
      ...{ store: store.mintedTokens, revocations, requireFresh, clock, random, logger },
      internalSecret: resources.keys.internalSecret,
      origin: () => originOf(resources),
      limiter: resources.createLimiter('portal links', { windowMs: minutes(1) }),
    }),
    sessionCookie,
    studioSessions,
    oidcSignIn: openOidcSignIn(resources, { roles: personRoles, sessions: studioSessions }),
  };
}

/** All nodes behind one public URL use the same cookie. */
function openSessionCookie(resources: Resources): SessionCookie {
  const { port, isSecure } = cookieScope(resources);
  return new SessionCookie({
    ...{ name: sessionCookieName(port), isSecure },
    secret: resources.keys.internalSecret,
  });
}

/** Returns what names and attributes of cookies depend on. */
export function cookieScope({ config: { gateway } }: Resources): { port: number; isSecure: boolean } {
  const { publicUrl, port } = gateway;
  const url = publicUrl === null ? undefined : new URL(publicUrl);
  const publicPort = url ? Number(url.port || (url.protocol === 'https:' ? 443 : 80)) : port;
  return { port: publicPort, isSecure: url?.protocol === 'https:' };
}

/** Returns the sign-in with the identity provider, or null if the config names none. */
function openOidcSignIn(
  resources: Resources,
  parts: Pick<OidcSignInDeps, 'roles' | 'sessions'>,
): OidcSignIn | null {
  const { config, env, clock, random, logger } = resources;
  const { oidc } = config.studio;
  if (!oidc) return null;
  return new OidcSignIn({
    ...{ ...parts, random, logger, issuer: oidc.issuer, roleClaim: oidc.roleClaim },
    provider: new OidcProvider({ oidc, env, clock }),
    cookie: new SignInCookie({ ...cookieScope(resources), secret: resources.keys.internalSecret, clock }),
    origin: () => originOf(resources),
  });
}

function originOf({ config, address }: Resources): string {
  return new URL(config.gateway.publicUrl ?? `http://localhost:${address.port}`).origin;
}

export type IdentityServices = Awaited<ReturnType<typeof identityServices>>;
