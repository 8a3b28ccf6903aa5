import { z } from 'zod';
import { ALERT_KIND_FIELDS, AlertKind, AlertMatch, AlertSeverity, AlertThreshold } from './alert-kinds.ts';
import { ALL_NAMESPACES, RoleNamespace } from './role.ts';
import { SECRET_REF } from './secret-name.ts';

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const AlertName = z
  .string()
  .regex(NAME, 'must start with a letter or digit and contain at most 64 letters, digits and . _ -');

export const AlertRuleName = AlertName;
export const AlertChannelName = AlertName;

/** Fields by which the alerts of a rule can be grouped into one notification. */
export const ALERT_GROUP_FIELDS = [
  'object',
  'namespace',
  'plugin',
  'event',
  'source',
  'endpoint',
  'application',
  'workflow',
  'schedule',
  'queue',
  'service',
] as const;
export const AlertGroupField = z.enum(ALERT_GROUP_FIELDS);
export type AlertGroupField = z.infer<typeof AlertGroupField>;

const DAY_MS = 24 * 3600_000;

const ruleFields = {
  description: z.string().max(500).nullable(),
  match: AlertMatch,
  threshold: AlertThreshold,
  channels: z
    .array(AlertChannelName)
    .max(16)
    .overwrite((names) => [...new Set(names)])
    .describe('Channels that are notified; none: the alerts are only recorded'),
  severity: AlertSeverity,
  groupBy: z
    .array(AlertGroupField)
    .max(4)
    .describe('Alerts with equal fields share a notification; []: all alerts of the rule'),
  groupWaitMs: z.number().int().min(0).max(DAY_MS).describe('Time for which a first notification waits'),
  repeatIntervalMs: z
    .number()
    .int()
    .min(60_000)
    .max(30 * DAY_MS)
    .nullable()
    .describe('Time after which alerts that still fire are sent again; null: never'),
  sendResolved: z.boolean().describe('Whether the end of the alerts is sent too'),
  enabled: z.boolean(),
};

export const ALERT_RULE_DEFAULTS = {
  description: null,
  match: {},
  threshold: {},
  severity: 'warning',
  groupBy: [],
  groupWaitMs: 30_000,
  repeatIntervalMs: 4 * 3600_000,
  sendResolved: true,
  enabled: true,
} as const;

const settingsWithDefaults = {
  kind: AlertKind,
  description: ruleFields.description.default(ALERT_RULE_DEFAULTS.description),
  match: ruleFields.match.default({}),
  threshold: ruleFields.threshold.default({}),
  channels: ruleFields.channels.default([]),
  severity: ruleFields.severity.default(ALERT_RULE_DEFAULTS.severity),
  groupBy: ruleFields.groupBy.default([]),
  groupWaitMs: ruleFields.groupWaitMs.default(ALERT_RULE_DEFAULTS.groupWaitMs),
  repeatIntervalMs: ruleFields.repeatIntervalMs.default(ALERT_RULE_DEFAULTS.repeatIntervalMs),
  sendResolved: ruleFields.sendResolved.default(ALERT_RULE_DEFAULTS.sendResolved),
  enabled: ruleFields.enabled.default(ALERT_RULE_DEFAULTS.enabled),
};

/** A rule without its name, with all defaults. */
export const AlertRuleSettings = z.strictObject(settingsWithDefaults);
export type AlertRuleSettings = z.infer<typeof AlertRuleSettings>;

/** The fields that a change of a rule may contain. The kind is fixed. */
export const AlertRuleChange = z.strictObject(ruleFields).partial();
export type AlertRuleChange = z.infer<typeof AlertRuleChange>;

/** Reports fields that the kind of a rule does not know, and thresholds that it needs. */
export function ruleFaults({ kind, match, threshold }: AlertRuleSettings): string[] {
  const known = ALERT_KIND_FIELDS[kind];
  const unknown = (section: string, fields: object, names: readonly string[]) =>
    Object.keys(fields)
      .filter((field) => !names.includes(field))
      .map((field) => `${section}.${field}: unknown to ${kind}`);
  const faults = [
    ...unknown('match', match, known.match),
    ...unknown('threshold', threshold, known.threshold),
  ];
  if (kind === 'certificate.expiring' && threshold.certificates === undefined)
    faults.push('threshold.certificates: missing');
  return faults;
}

const ruleCheck = (rule: AlertRuleSettings, context: z.RefinementCtx<AlertRuleSettings>) => {
  for (const message of ruleFaults(rule)) context.addIssue({ code: 'custom', message });
};

/** Settings of a new rule. */
export const NewAlertRule = z
  .strictObject({ name: AlertRuleName, ...settingsWithDefaults })
  .superRefine((rule, context) => ruleCheck(rule, context as never));

/** Reference of the config to an environment variable, or to a secret of `svc secrets`. */
export const AlertSecretRef = z.string().regex(
  SECRET_REF,
  // biome-ignore lint/suspicious/noTemplateCurlyInString: literal config syntax
  'must be "${VARIABLE}" or "${secret:NAME}": the config must not contain the secret itself',
);

/** One e-mail address without a display name. Control characters and list separators would add headers or recipients. */
const MailAddress = z
  .string()
  .max(320)
  .regex(
    /^[^\s\p{Cc}<>()[\],;:"\\@]{1,64}@[A-Za-z0-9.-]{1,255}$/u,
    'must be one address, such as ops@example.com',
  );

const HttpUrl = z
  .url({ protocol: /^https?$/ })
  .max(2048)
  .refine((url) => {
    const { username, password } = new URL(url);
    return username === '' && password === '';
  }, 'must not contain a user or password');

export const PAGERDUTY_URL = 'https://events.pagerduty.com/v2/enqueue';

/** The secret field of each type of channel. The URL of a Slack webhook is its secret. */
export const CHANNEL_SECRETS = {
  webhook: 'secret',
  slack: 'url',
  email: 'password',
  pagerduty: 'routingKey',
} as const;
export type AlertChannelType = keyof typeof CHANNEL_SECRETS;
export const AlertChannelType = z.enum(['webhook', 'slack', 'email', 'pagerduty']);

const webhookChannel = { type: z.literal('webhook'), url: HttpUrl };
const slackChannel = { type: z.literal('slack') };
const emailChannel = {
  type: z.literal('email'),
  host: z
    .string()
    .max(253)
    .regex(/^[A-Za-z0-9.:-]+$/, 'must be a host name or an address'),
  port: z.number().int().min(1).max(65535).default(587),
  security: z
    .enum(['starttls', 'tls', 'none'])
    .default('starttls')
    .describe('starttls: required; tls: from the first byte; none: not encrypted'),
  ca: z
    .string()
    .max(64 * 1024)
    .regex(
      /^\s*(?:-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----\s*)+$/,
      'must be certificates in PEM form',
    )
    .nullable()
    .default(null)
    .describe('Certificates of the authorities to trust instead of the public ones, in PEM form'),
  user: z.string().min(1).max(320).nullable().default(null),
  from: MailAddress,
  to: z.array(MailAddress).min(1).max(50),
};
const pagerdutyChannel = { type: z.literal('pagerduty'), url: HttpUrl.default(PAGERDUTY_URL) };

/** Settings of a channel without its secret. */
export const AlertChannelSettings = z.discriminatedUnion('type', [
  z.strictObject(webhookChannel),
  z.strictObject(slackChannel),
  z.strictObject(emailChannel),
  z.strictObject(pagerdutyChannel),
]);
export type AlertChannelSettings = z.infer<typeof AlertChannelSettings>;

const SecretText = z
  .string()
  .min(1)
  .max(4096)
  .regex(/^[^\p{Cc}]*$/u, 'must not contain control characters')
  // biome-ignore lint/suspicious/noTemplateCurlyInString: literal config syntax
  .refine((text) => !text.startsWith('${'), '"${…}" is for the config; give the secret itself');

const WebhookSecret = SecretText.regex(
  /^whsec_[A-Za-z0-9+/]{32,100}={0,2}$/,
  'must be whsec_ and 24 to 64 bytes in base64',
);

/** A new channel by the API. The secret is sealed, and never answered again. */
const newChannel = <Extra extends z.ZodRawShape>(extra: Extra) =>
  z.discriminatedUnion('type', [
    z.strictObject({
      ...extra,
      ...webhookChannel,
      secret: WebhookSecret.optional().describe('Default: generated, and answered once'),
    }),
    z.strictObject({ ...extra, ...slackChannel, url: HttpUrl.pipe(SecretText) }),
    z.strictObject({ ...extra, ...emailChannel, password: SecretText.optional() }),
    z.strictObject({ ...extra, ...pagerdutyChannel, routingKey: SecretText }),
  ]);
const channelExtra = { description: z.string().max(500).nullable().default(null) };
export const NewAlertChannel = newChannel({ name: AlertChannelName, ...channelExtra });
export type NewAlertChannel = z.infer<typeof NewAlertChannel>;

/** A change of a channel. Fields that are not given keep their value, and the type is fixed. */
export const AlertChannelChange = z
  .strictObject({
    description: channelExtra.description.unwrap(),
    url: HttpUrl,
    secret: WebhookSecret,
    host: emailChannel.host,
    port: emailChannel.port.unwrap(),
    security: emailChannel.security.unwrap(),
    ca: emailChannel.ca.unwrap(),
    user: emailChannel.user.unwrap(),
    password: SecretText,
    from: MailAddress,
    to: emailChannel.to,
    routingKey: SecretText,
  })
  .partial();
export type AlertChannelChange = z.infer<typeof AlertChannelChange>;

const owner = RoleNamespace.default(ALL_NAMESPACES);

/** A rule of the config. */
export const DeclaredAlertRule = z
  .strictObject({ namespace: owner, ...settingsWithDefaults })
  .superRefine((rule, context) => ruleCheck(rule, context as never));
export type DeclaredAlertRule = z.infer<typeof DeclaredAlertRule>;

const declaredExtra = { namespace: owner, ...channelExtra };
/** A channel of the config, with references to its secret. */
export const DeclaredAlertChannel = z.discriminatedUnion('type', [
  z.strictObject({ ...declaredExtra, ...webhookChannel, secret: AlertSecretRef }),
  z.strictObject({ ...declaredExtra, ...slackChannel, url: AlertSecretRef }),
  z.strictObject({ ...declaredExtra, ...emailChannel, password: AlertSecretRef.optional() }),
  z.strictObject({ ...declaredExtra, ...pagerdutyChannel, routingKey: AlertSecretRef }),
]);
export type DeclaredAlertChannel = z.infer<typeof DeclaredAlertChannel>;
