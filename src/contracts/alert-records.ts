import { z } from 'zod';
import { AlertChannelType, AlertRuleName, AlertRuleSettings } from './alert-config.ts';
import { AlertKind, AlertSeverity } from './alert-kinds.ts';

const time = z.number().nullable().describe('Epoch milliseconds');
const Owner = z.string().describe('Namespace that the entry belongs to; "*": the operators');
const declared = z
  .boolean()
  .describe('Whether svc.config.json declares it, so that only the config changes it');

export const AlertRule = z
  .object({
    name: z.string(),
    namespaceId: Owner,
    ...AlertRuleSettings.shape,
    declared,
    createdAt: time,
    updatedAt: time,
    firing: z.number().int().describe('Alerts of the rule that fire'),
    faults: z.array(z.string()).describe('Why the rule cannot notify, such as a channel that does not exist'),
  })
  .meta({ id: 'AlertRule' });
export type AlertRule = z.infer<typeof AlertRule>;

export const AlertChannel = z
  .object({
    name: z.string(),
    namespaceId: Owner,
    type: AlertChannelType,
    description: z.string().nullable(),
    target: z.string().describe('Where notifications go, without secrets'),
    settings: z.record(z.string(), z.unknown()).describe('Settings without the secret'),
    hasSecret: z.boolean(),
    declared,
    createdAt: time,
    updatedAt: time,
    failing: z.boolean().describe('Whether the last attempt failed'),
    lastSuccessAt: time,
    lastFailureAt: time,
    lastError: z.string().nullable(),
    pending: z.number().int().describe('Notifications that wait to be sent'),
  })
  .meta({ id: 'AlertChannel' });
export type AlertChannel = z.infer<typeof AlertChannel>;

export const AlertState = z.enum(['firing', 'resolved', 'silenced']);
export type AlertState = z.infer<typeof AlertState>;

/** The thing that an alert is about. */
export const AlertObject = z.object({
  type: z
    .string()
    .describe('delivery, message, endpoint, run, schedule, service, disk, queue, certificate, …'),
  id: z.string(),
  namespaceId: z.string().nullable().describe('Null for objects of the platform'),
  labels: z.record(z.string(), z.string()).describe('Fields that rules match and group by'),
});
export type AlertObject = z.infer<typeof AlertObject>;

export const Alert = z
  .object({
    id: z.string(),
    namespaceId: Owner,
    rule: z.string(),
    kind: AlertKind,
    severity: AlertSeverity,
    state: AlertState.describe('silenced: fires, but a silence keeps it from being sent'),
    object: AlertObject,
    title: z.string(),
    message: z.string(),
    link: z.string().nullable().describe('URL of the object in the studio'),
    count: z.number().int().describe('Times that the object was reported while the alert was open'),
    firstAt: z.number(),
    lastAt: z.number(),
    resolvedAt: time,
    acknowledgedAt: time.describe('An acknowledged alert is not sent again'),
    acknowledgedBy: z.string().nullable(),
    silenceId: z.string().nullable(),
  })
  .meta({ id: 'Alert' });
export type Alert = z.infer<typeof Alert>;

export const AlertAttempt = z.object({
  at: z.number(),
  ok: z.boolean(),
  status: z.number().int().nullable().describe('HTTP or SMTP status'),
  error: z.string().nullable(),
  durationMs: z.number(),
});
export type AlertAttempt = z.infer<typeof AlertAttempt>;

export const AlertNotification = z.object({
  id: z.string(),
  channel: z.string(),
  reason: z.enum(['firing', 'repeat', 'resolved']),
  status: z.enum(['pending', 'sent', 'dead', 'dropped']).describe('dead: given up after all attempts'),
  createdAt: z.number(),
  sentAt: time,
  nextAttemptAt: time,
  alerts: z.number().int().describe('Alerts in this notification'),
  attempts: z.array(AlertAttempt),
});
export type AlertNotification = z.infer<typeof AlertNotification>;

export const AlertDetails = Alert.extend({ notifications: z.array(AlertNotification) }).meta({
  id: 'AlertDetails',
});
export type AlertDetails = z.infer<typeof AlertDetails>;

export const SilenceMatcher = z
  .strictObject({
    kind: AlertKind.optional(),
    rule: AlertRuleName.optional(),
    object: z.string().min(1).max(512).optional().describe('Id of the object; "*" stands for any characters'),
  })
  .refine((matcher) => Object.values(matcher).some((value) => value !== undefined), {
    message: 'set at least one of kind, rule, object',
  });
export type SilenceMatcher = z.infer<typeof SilenceMatcher>;

export const AlertSilence = z
  .object({
    id: z.string(),
    namespaceId: Owner,
    matcher: z.object({
      kind: AlertKind.optional(),
      rule: z.string().optional(),
      object: z.string().optional(),
    }),
    comment: z.string().nullable(),
    createdBy: z.string(),
    createdAt: z.number(),
    until: z.number(),
    active: z.boolean(),
  })
  .meta({ id: 'AlertSilence' });
export type AlertSilence = z.infer<typeof AlertSilence>;

export const AlertTestResult = z.object({
  channel: z.string(),
  type: AlertChannelType.nullable().describe('Null: the channel does not exist'),
  ok: z.boolean(),
  status: z.number().int().nullable(),
  error: z.string().nullable(),
  durationMs: z.number(),
});
export type AlertTestResult = z.infer<typeof AlertTestResult>;
