import { days, hours } from '../../kit/time/duration.ts';
import type { EventDay, EventTotals } from '../ports/telemetry.ts';

const ACTORS_SHOWN = 100;
export const DAY_MS = days(1);
const HOUR_MS = hours(1);
/** Lengths of the periods for which counts of events are stored, in ms. */
export const SPANS = [HOUR_MS, DAY_MS] as const;

/** Sum over the events that have the same values in the grouped columns. */
export interface Group {
  day: number;
  type: string;
  product: string;
  actor: string;
  occurrences: number;
  kept: number;
}

export type Column = 'day' | 'type' | 'product' | 'actor';

/**
 * Section of a time range. If `span` is 0, the events of the section are counted one by one. Otherwise, the stored
 * counts of periods of `span` ms are added up.
 */
export interface Section {
  span: number;
  from: number;
  to: number;
}

/** Splits a time range into whole days, whole hours, and the remaining time at both ends. */
export function sections(from: number, to: number): Section[] {
  return split({ span: 0, from, to }, SPANS).filter((section) => section.from < section.to);
}

function split({ span, from, to }: Section, larger: readonly number[]): Section[] {
  const [next, ...rest] = larger;
  if (next === undefined) return [{ span, from, to }];
  const start = Math.ceil(from / next) * next;
  const end = Math.floor(to / next) * next;
  if (start >= end) return [{ span, from, to }];
  return [
    { span, from, to: start },
    ...split({ span: next, from: start, to: end }, rest),
    { span, from: end, to },
  ];
}

/** Sums groups by type, product and actor. */
export function totalsOf(groups: readonly Group[]): EventTotals {
  const totals: EventTotals = { total: 0, byType: {}, bySource: {}, byActor: {} };
  for (const { type, product, actor, occurrences } of groups) {
    totals.total += occurrences;
    add(totals.byType, type, occurrences);
    add(totals.bySource, product, occurrences);
    if (actor !== '') add(totals.byActor, actor, occurrences);
  }
  return { ...totals, byActor: largest(totals.byActor) };
}

/** Sums groups by day and type, in order of days. */
export function daysOf(groups: readonly Group[]): EventDay[] {
  const found = new Map<number, EventDay>();
  for (const { day, type, occurrences } of groups) {
    const at = found.get(day) ?? { date: dateOf(day), total: 0, byType: {} };
    found.set(day, at);
    at.total += occurrences;
    add(at.byType, type, occurrences);
  }
  return [...found.entries()].sort(([a], [b]) => a - b).map(([, day]) => day);
}

function add(sums: Record<string, number>, key: string, count: number): void {
  sums[key] = (Object.hasOwn(sums, key) ? sums[key]! : 0) + count;
}

function largest(sums: Record<string, number>): Record<string, number> {
  const sorted = Object.entries(sums).sort(([, a], [, b]) => b - a);
  return Object.fromEntries(sorted.slice(0, ACTORS_SHOWN));
}

function dateOf(day: number): string {
  return new Date(day).toISOString().slice(0, 10);
}
