import { z } from 'zod';
import { endpoint } from './endpoint.ts';
import { ApplicationId } from './message-records.ts';

const tags = ['endpoints'];
const DAY_SECONDS = 24 * 3600;
/** Maximum time for which a link works. */
export const MAX_PORTAL_SECONDS = 7 * DAY_SECONDS;

const PortalLink = z
  .object({
    id: z.string(),
    application: z.string(),
    createdBy: z.string().describe('Host id of the caller that created the link'),
    createdAt: z.number().describe('Epoch milliseconds'),
    expiresAt: z.number(),
  })
  .meta({ id: 'PortalLink' });

/**
 * Creates a link to the page on which a customer manages the endpoints of one application. The fragment of the URL
 * holds the token. @spec docs/portal.md
 */
export const createPortalLink = endpoint({
  method: 'POST',
  path: '/api/v1/endpoints/portal',
  summary: 'Create a link to the endpoints of one application; it is shown only once',
  tags,
  status: 201,
  body: z.strictObject({
    application: ApplicationId,
    expiresInSeconds: z.number().int().min(60).max(MAX_PORTAL_SECONDS).default(3600),
  }),
  reply: z.object({
    id: z.string().describe('For its revocation'),
    url: z.string().describe('Shown only in this reply'),
    expiresAt: z.number().describe('Epoch milliseconds'),
  }),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'FORBIDDEN', 'RATE_LIMIT_EXCEEDED'],
});

export const listPortalLinks = endpoint({
  method: 'GET',
  path: '/api/v1/endpoints/portal',
  summary: 'List the unexpired links, newest first; their tokens are not stored',
  tags,
  query: z.strictObject({ application: ApplicationId.optional() }),
  reply: z.object({ items: z.array(PortalLink) }),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'FORBIDDEN'],
});

/** Revokes one link or all links of an application, on all gateways when the call returns. */
export const revokePortalLinks = endpoint({
  method: 'DELETE',
  path: '/api/v1/endpoints/portal',
  summary: 'Revoke one link, or all links of an application',
  tags,
  query: z
    .strictObject({ id: z.string().min(1).max(256).optional(), application: ApplicationId.optional() })
    .refine(({ id, application }) => (id === undefined) !== (application === undefined), {
      message: 'set either "id" or "application"',
    }),
  reply: z.object({ revoked: z.number().int() }),
  errors: ['VALIDATION_ERROR', 'UNAUTHORIZED', 'FORBIDDEN', 'NOT_FOUND'],
});

/** Describes the link whose token makes the call. Other callers get NOT_FOUND. */
export const currentPortal = endpoint({
  method: 'GET',
  path: '/api/v1/portal',
  summary: 'Show the application and the expiry of a link; needs its token',
  tags,
  reply: z.object({ application: z.string(), expiresAt: z.number() }),
  errors: ['UNAUTHORIZED', 'NOT_FOUND'],
});
