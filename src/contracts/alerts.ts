import { z } from 'zod';
import {
  AlertChannelChange,
  AlertChannelName,
  AlertRuleChange,
  AlertRuleName,
  NewAlertChannel,
  NewAlertRule,
} from './alert-config.ts';
import { AlertKind } from './alert-kinds.ts';
import {
  Alert,
  AlertChannel,
  AlertDetails,
  AlertRule,
  AlertSilence,
  AlertState,
  AlertTestResult,
  SilenceMatcher,
} from './alert-records.ts';
import { Moment, page } from './common.ts';
import { endpoint } from './endpoint.ts';
import { RoleNamespace } from './role.ts';

const tags = ['alerts'];
const readErrors = ['VALIDATION_ERROR', 'UNAUTHORIZED', 'FORBIDDEN', 'RATE_LIMIT_EXCEEDED'] as const;
const errors = [...readErrors, 'NOT_FOUND', 'CONFLICT'] as const;

/** Default: the namespace of the caller. Operators can name another one, or "*" for the entries of operators. */
const inNamespace = z.strictObject({ namespaceId: RoleNamespace.optional() });
const listQuery = z.strictObject({
  namespaceId: RoleNamespace.optional().describe('Default: the namespace of the caller; for operators all'),
  cursor: z.string().max(512).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(100),
});
const deleted = z.object({ deleted: z.literal(true) });
const rule = z.object({ name: AlertRuleName });
const channel = z.object({ name: AlertChannelName });
const id = z.object({ id: z.string().min(1).max(64) });

export const listAlertRules = endpoint({
  method: 'GET',
  path: '/api/v1/alerts/rules',
  summary: 'List the rules of alerts',
  tags,
  query: listQuery,
  reply: page(AlertRule),
  errors: readErrors,
});

export const createAlertRule = endpoint({
  method: 'POST',
  path: '/api/v1/alerts/rules',
  summary: 'Create a rule; rules about the platform belong to operators',
  tags,
  status: 201,
  query: inNamespace,
  body: NewAlertRule,
  reply: AlertRule,
  errors,
});

export const getAlertRule = endpoint({
  method: 'GET',
  path: '/api/v1/alerts/rules/:name',
  summary: 'Show a rule of alerts',
  tags,
  params: rule,
  query: inNamespace,
  reply: AlertRule,
  errors: [...readErrors, 'NOT_FOUND'],
});

export const updateAlertRule = endpoint({
  method: 'PATCH',
  path: '/api/v1/alerts/rules/:name',
  summary: 'Change settings of a rule',
  tags,
  params: rule,
  query: inNamespace,
  body: AlertRuleChange,
  reply: AlertRule,
  errors,
});

export const deleteAlertRule = endpoint({
  method: 'DELETE',
  path: '/api/v1/alerts/rules/:name',
  summary: 'Delete a rule; its alerts end without a message',
  tags,
  params: rule,
  query: inNamespace,
  reply: deleted,
  errors,
});

export const listAlertChannels = endpoint({
  method: 'GET',
  path: '/api/v1/alerts/channels',
  summary: 'List the channels of alerts, and whether they fail',
  tags,
  query: listQuery,
  reply: page(AlertChannel),
  errors: readErrors,
});

export const createAlertChannel = endpoint({
  method: 'POST',
  path: '/api/v1/alerts/channels',
  summary: 'Create a channel; a generated secret is shown only once',
  tags,
  status: 201,
  query: inNamespace,
  body: NewAlertChannel,
  reply: AlertChannel.extend({
    secret: z.string().nullable().describe('The generated secret of a webhook channel, only in this reply'),
  }),
  errors,
});

export const getAlertChannel = endpoint({
  method: 'GET',
  path: '/api/v1/alerts/channels/:name',
  summary: 'Show a channel of alerts',
  tags,
  params: channel,
  query: inNamespace,
  reply: AlertChannel,
  errors: [...readErrors, 'NOT_FOUND'],
});

export const updateAlertChannel = endpoint({
  method: 'PATCH',
  path: '/api/v1/alerts/channels/:name',
  summary: 'Change settings of a channel, or replace its secret',
  tags,
  params: channel,
  query: inNamespace,
  body: AlertChannelChange,
  reply: AlertChannel,
  errors,
});

export const deleteAlertChannel = endpoint({
  method: 'DELETE',
  path: '/api/v1/alerts/channels/:name',
  summary: 'Delete a channel that no rule uses',
  tags,
  params: channel,
  query: inNamespace,
  reply: deleted,
  errors,
});

export const listAlertSilences = endpoint({
  method: 'GET',
  path: '/api/v1/alerts/silences',
  summary: 'List silences, newest first',
  tags,
  query: listQuery,
  reply: page(AlertSilence),
  errors: readErrors,
});

export const createAlertSilence = endpoint({
  method: 'POST',
  path: '/api/v1/alerts/silences',
  summary: 'Silence alerts until a time; they are recorded, but not sent',
  tags,
  status: 201,
  query: inNamespace,
  body: z.strictObject({ matcher: SilenceMatcher, until: Moment, comment: z.string().max(500).optional() }),
  reply: AlertSilence,
  errors,
});

export const deleteAlertSilence = endpoint({
  method: 'DELETE',
  path: '/api/v1/alerts/silences/:id',
  summary: 'End a silence; alerts that still fire are sent',
  tags,
  params: id,
  query: inNamespace,
  reply: deleted,
  errors,
});

export const testAlerts = endpoint({
  method: 'POST',
  path: '/api/v1/alerts/test',
  summary: 'Send a test to one channel, or to all channels of a rule',
  tags,
  query: inNamespace,
  body: z
    .strictObject({ channel: AlertChannelName.optional(), rule: AlertRuleName.optional() })
    .refine((body) => (body.channel === undefined) !== (body.rule === undefined), {
      message: 'set either "channel" or "rule"',
    }),
  reply: z.object({ results: z.array(AlertTestResult) }),
  errors,
});

export const listAlerts = endpoint({
  method: 'GET',
  path: '/api/v1/alerts',
  summary: 'List alerts, newest first',
  tags,
  query: listQuery.extend({
    state: AlertState.optional(),
    kind: AlertKind.optional(),
    rule: AlertRuleName.optional(),
    object: z
      .string()
      .min(1)
      .max(512)
      .optional()
      .describe('Id of the object: of a delivery, a run, …; that of a message finds it at all endpoints'),
  }),
  reply: page(Alert),
  errors: readErrors,
});

export const getAlert = endpoint({
  method: 'GET',
  path: '/api/v1/alerts/:id',
  summary: 'Show an alert with its notifications and their attempts',
  tags,
  params: id,
  reply: AlertDetails,
  errors: [...readErrors, 'NOT_FOUND'],
});

export const acknowledgeAlert = endpoint({
  method: 'POST',
  path: '/api/v1/alerts/:id/acknowledge',
  summary: 'Acknowledge an alert, so that it is not sent again',
  tags,
  params: id,
  reply: Alert,
  errors,
});

export const resolveAlert = endpoint({
  method: 'POST',
  path: '/api/v1/alerts/:id/resolve',
  summary: 'End an alert by hand',
  tags,
  params: id,
  reply: Alert,
  errors,
});
