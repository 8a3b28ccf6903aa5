import type { AlertKind, AlertMatchField, AlertThreshold } from '../../../contracts/alert-kinds.ts';

type ThresholdField = keyof AlertThreshold;

interface KindFields {
  text: string;
  /** Fields that restrict a rule. Every kind about objects of a tenant also has `namespace`. */
  match: readonly AlertMatchField[];
  threshold: readonly ThresholdField[];
}

/** The kinds of alerts with their fields, as in the contracts. Those contain schemas, which the studio does not load. */
export const KINDS: Readonly<Record<AlertKind, KindFields>> = {
  'delivery.failed': {
    text: 'A delivery or message has failed for good',
    match: ['namespace', 'plugin', 'event', 'source', 'endpoint', 'application'],
    threshold: [],
  },
  'endpoint.disabled': {
    text: 'An endpoint was disabled, because it failed',
    match: ['namespace', 'endpoint', 'application'],
    threshold: [],
  },
  'run.failed': { text: 'A run has failed', match: ['namespace', 'workflow', 'plugin'], threshold: [] },
  'approval.waiting': {
    text: 'A run waits for an approval for too long',
    match: ['namespace', 'workflow'],
    threshold: ['waitingMs'],
  },
  'schedule.missed': {
    text: 'A schedule was missed',
    match: ['namespace', 'workflow', 'schedule'],
    threshold: [],
  },
  'service.crash_loop': { text: 'A service crashes again and again', match: ['service'], threshold: [] },
  'disk.low': { text: 'The disk is almost full', match: [], threshold: ['freeBytes', 'freePercent'] },
  'queue.depth': {
    text: 'A queue is too long or too old',
    match: ['namespace', 'queue'],
    threshold: ['depth', 'oldestAgeMs'],
  },
  'certificate.expiring': {
    text: 'A certificate is about to expire',
    match: [],
    threshold: ['certificates', 'expiresWithinDays'],
  },
  'secret.expiring': {
    text: 'A secret or connection is about to expire',
    match: ['namespace', 'secret', 'connection'],
    threshold: ['expiresWithinDays'],
  },
};

export const KIND_NAMES = Object.keys(KINDS) as AlertKind[];

/** How the number of a threshold is typed: its label, and the factor from the typed unit. */
export const THRESHOLDS: Readonly<
  Record<Exclude<ThresholdField, 'certificates'>, { label: string; factor: number }>
> = {
  waitingMs: { label: 'Minutes that a run waits', factor: 60_000 },
  depth: { label: 'Waiting items', factor: 1 },
  oldestAgeMs: { label: 'Age of the oldest item in minutes', factor: 60_000 },
  freeBytes: { label: 'Free space in GB', factor: 1e9 },
  freePercent: { label: 'Free space in percent', factor: 1 },
  expiresWithinDays: { label: 'Days before the expiry', factor: 1 },
};
