import { z } from 'zod';
import { Moment, notBlank, page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { NamespaceId } from './ids.ts';
import { Role } from './role.ts';

/**
 * Result of an audited call. `unknown`: the caller or the service disconnected before the answer, so the change might
 * have been made.
 */
export const AuditOutcome = z.enum(['succeeded', 'failed', 'unknown']);
export type AuditOutcome = z.infer<typeof AuditOutcome>;

/** One change in the audit log. It never contains secrets. @spec docs/security.md "Audit log" */
export const AuditEntry = z
  .object({
    sequence: z.number().int().describe('1 for the first entry, without gaps'),
    at: z.number().describe('Epoch milliseconds'),
    actor: z.string().describe('Host id of the caller'),
    actorKind: z.string().describe('static, access, container, oauth, oidc, portal, enrolment or sender'),
    tokenId: z.string().nullable().describe('`jti` of the token'),
    role: Role.nullable().describe('Role of the caller; null: no role restricts it'),
    action: z.string(),
    object: z.string(),
    namespaceId: z.string(),
    requestId: z.string(),
    traceId: z.string(),
    outcome: AuditOutcome,
    status: z.number().int().describe('HTTP status of the answer'),
    digest: z.string().describe('Keyed digest of path, query and body'),
    anchored: z.boolean().describe('Whether the signature of the head was valid before this entry was added'),
    previousHash: z.string(),
    hash: z.string(),
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof AuditEntry>;

const text = z.string().min(1).max(256);

export const listAudit = endpoint({
  method: 'GET',
  path: '/api/v1/audit',
  summary: 'List changes, newest first; for administrators who name no namespace, of all namespaces',
  tags: ['audit'],
  query: z.strictObject({
    namespaceId: NamespaceId.optional(),
    actor: text.optional().describe('Host id'),
    action: text.optional().describe('Action, such as webhook.provision, or its start with a final dot'),
    object: text.optional(),
    since: Moment.optional(),
    until: Moment.optional(),
    limit: notBlank(z.coerce.number().int().min(1).max(500)).default(100),
    cursor: z.coerce.number().int().min(1).optional(),
  }),
  reply: page(AuditEntry),
  errors: ['UNAUTHORIZED', 'FORBIDDEN'],
});

/** The position and the hash of the last entry. */
export const AuditHead = z.object({ sequence: z.number().int(), hash: z.string() });
export type AuditHead = z.infer<typeof AuditHead>;

/** First fault of the audit log. `sequence` is the entry at which the fault was found. */
export const AuditFault = z.object({
  kind: z.enum(['changed', 'removed', 'unlinked', 'truncated', 'unsigned', 'unexpected']),
  sequence: z.number().int(),
  message: z.string(),
});
export type AuditFault = z.infer<typeof AuditFault>;

export const verifyAudit = endpoint({
  method: 'GET',
  path: '/api/v1/audit/verify',
  summary: 'Verify the hashes of the audit log and the signature of its head',
  tags: ['audit'],
  query: z.strictObject({
    expect: z
      .string()
      .regex(
        /^[1-9]\d{0,14}:[0-9a-f]{64}$/,
        'must be <sequence>:<hash>, as an earlier verification printed it',
      )
      .optional()
      .describe('Head of an earlier verification, which the log must still contain'),
  }),
  reply: z.object({
    intact: z.boolean(),
    entries: z.number().int().describe('Entries that were verified'),
    head: AuditHead.nullable().describe('Null: the log is empty'),
    fault: AuditFault.nullable(),
    warnings: z.array(z.string()),
  }),
  errors: ['UNAUTHORIZED', 'FORBIDDEN'],
});
