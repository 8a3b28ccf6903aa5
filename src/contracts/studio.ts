import { z } from 'zod';
import { notBlank } from './common.ts';
import { endpoint } from './endpoint.ts';

/** Session of a person who uses the studio. */
export const StudioSession = z
  .object({
    hostId: z.string(),
    namespaceId: z.string(),
    admin: z.boolean().describe('Whether the session may act in other namespaces'),
    csrfToken: z.string().describe('Value of the `x-svc-csrf` header that each call of the session needs'),
    expiresAt: z.number().describe('Epoch milliseconds'),
  })
  .meta({ id: 'StudioSession' });
export type StudioSession = z.infer<typeof StudioSession>;

/** Creates a link that signs one browser in. The link works once. @spec docs/studio.md */
export const createStudioLink = endpoint({
  method: 'POST',
  path: '/api/v1/studio/links',
  summary: 'Create a one-time link that opens the studio',
  tags: ['studio'],
  status: 201,
  reply: z.object({
    path: z.string().describe('Path and fragment of the link, relative to the gateway'),
    publicUrl: z
      .string()
      .nullable()
      .describe('`gateway.publicUrl`, to which the link is relative if it is set'),
    expiresAt: z.number().describe('Epoch milliseconds'),
  }),
  errors: ['UNAUTHORIZED', 'FORBIDDEN'],
});

/** Starts a session, whose token is sent as a cookie. @spec docs/studio.md */
export const startStudioSession = endpoint({
  method: 'POST',
  path: '/studio/session',
  summary: 'Sign in to the studio with a one-time link, a token or client credentials',
  tags: ['studio'],
  hidden: true,
  status: 201,
  body: z.union([
    z.strictObject({ link: notBlank(z.string().max(256)) }),
    z.strictObject({ token: notBlank(z.string().max(8192)) }),
    z.strictObject({ clientId: notBlank(z.string().max(256)), clientSecret: notBlank(z.string().max(1024)) }),
  ]),
  reply: StudioSession,
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'FORBIDDEN', 'RATE_LIMIT_EXCEEDED'],
});

export const getStudioSession = endpoint({
  method: 'GET',
  path: '/studio/session',
  summary: 'Show the session of the cookie',
  tags: ['studio'],
  hidden: true,
  reply: StudioSession,
  errors: ['UNAUTHORIZED', 'FORBIDDEN'],
});

/** Page that sends the browser to the identity provider. The query `returnTo` names the screen to open afterwards. */
export const STUDIO_OIDC_START = '/studio/oidc/sign-in';
/** Page to which the identity provider leads back. It must be registered there as a redirect URI. */
export const STUDIO_OIDC_CALLBACK = '/studio/oidc/callback';

/** Why a sign-in with the identity provider failed. */
export const SIGN_IN_PROBLEMS = [
  'not_begun',
  'refused',
  'invalid',
  'no_role',
  'too_large',
  'unavailable',
  'too_many',
  'failed',
] as const;
export type SignInProblem = (typeof SIGN_IN_PROBLEMS)[number];

/** Shows how people can sign in, besides a token and client credentials. @spec docs/studio.md */
export const getStudioSignInOptions = endpoint({
  method: 'GET',
  path: '/studio/sign-in/options',
  summary: 'Show how people can sign in to the studio',
  tags: ['studio'],
  hidden: true,
  reply: z.object({ identityProvider: z.object({ name: z.string(), url: z.string() }).nullable() }),
});

export const endStudioSession = endpoint({
  method: 'DELETE',
  path: '/studio/session',
  summary: 'Sign out of the studio and revoke the session',
  tags: ['studio'],
  hidden: true,
  reply: z.object({ revoked: z.literal(true) }),
  errors: ['UNAUTHORIZED', 'FORBIDDEN'],
});
