import { z } from 'zod';

/** What a rule can observe. @spec docs/alerts.md */
export const ALERT_KINDS = [
  'delivery.failed',
  'endpoint.disabled',
  'run.failed',
  'approval.waiting',
  'schedule.missed',
  'service.crash_loop',
  'disk.low',
  'queue.depth',
  'certificate.expiring',
  'secret.expiring',
] as const;
export const AlertKind = z.enum(ALERT_KINDS).meta({ id: 'AlertKind' });
export type AlertKind = z.infer<typeof AlertKind>;

/** Kinds about the platform itself, whose rules belong to operators. */
export const PLATFORM_ALERT_KINDS: readonly AlertKind[] = [
  'service.crash_loop',
  'disk.low',
  'certificate.expiring',
];

export const AlertSeverity = z.enum(['info', 'warning', 'critical']);
export type AlertSeverity = z.infer<typeof AlertSeverity>;

/** Text that an object must equal. `*` stands for any characters. */
const Pattern = z
  .string()
  .min(1)
  .max(256)
  .regex(/^[^\p{Cc}]*$/u, 'must not contain control characters');

const matchFields = {
  namespace: Pattern,
  plugin: Pattern,
  event: Pattern,
  source: Pattern,
  endpoint: Pattern,
  application: Pattern,
  workflow: Pattern,
  schedule: Pattern,
  queue: Pattern,
  service: Pattern,
  secret: Pattern,
  connection: Pattern,
};

/** Restricts a rule to some objects. Each given field must match. */
export const AlertMatch = z.strictObject(matchFields).partial();
export type AlertMatch = z.infer<typeof AlertMatch>;
export type AlertMatchField = keyof AlertMatch;

const PositiveInt = z.number().int().positive();

export const AlertThreshold = z
  .strictObject({
    waitingMs: PositiveInt.describe('approval.waiting: time for which a run waits'),
    depth: PositiveInt.describe('queue.depth: waiting items'),
    oldestAgeMs: PositiveInt.describe('queue.depth: age of the oldest waiting item'),
    freeBytes: PositiveInt.describe('disk.low: free space below which the disk is low'),
    freePercent: z.number().positive().max(100).describe('disk.low: free share below which the disk is low'),
    expiresWithinDays: z
      .number()
      .positive()
      .max(3650)
      .describe('certificate.expiring, secret.expiring: remaining time'),
    certificates: z
      .array(z.string().min(1).max(2048))
      .min(1)
      .max(100)
      .describe('certificate.expiring: PEM files on the gateway, or https URLs'),
  })
  .partial();
export type AlertThreshold = z.infer<typeof AlertThreshold>;

interface KindFields {
  match: readonly AlertMatchField[];
  threshold: readonly (keyof AlertThreshold)[];
}

/** The fields of `match` and `threshold` that each kind knows. `namespace` is known to all kinds of tenants. */
export const ALERT_KIND_FIELDS: Readonly<Record<AlertKind, KindFields>> = {
  'delivery.failed': {
    match: ['namespace', 'plugin', 'event', 'source', 'endpoint', 'application'],
    threshold: [],
  },
  'endpoint.disabled': { match: ['namespace', 'endpoint', 'application'], threshold: [] },
  'run.failed': { match: ['namespace', 'workflow', 'plugin'], threshold: [] },
  'approval.waiting': { match: ['namespace', 'workflow'], threshold: ['waitingMs'] },
  'schedule.missed': { match: ['namespace', 'workflow', 'schedule'], threshold: [] },
  'service.crash_loop': { match: ['service'], threshold: [] },
  'disk.low': { match: [], threshold: ['freeBytes', 'freePercent'] },
  'queue.depth': { match: ['namespace', 'queue'], threshold: ['depth', 'oldestAgeMs'] },
  'certificate.expiring': { match: [], threshold: ['certificates', 'expiresWithinDays'] },
  'secret.expiring': { match: ['namespace', 'secret', 'connection'], threshold: ['expiresWithinDays'] },
};
