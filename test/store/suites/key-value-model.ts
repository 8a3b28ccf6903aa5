import fc from 'fast-check';
import { expect } from 'vitest';
import type { ManualClock } from '../../../src/kit/time/clock.ts';
import type { JsonValue, KeyValueEntry, KeyValueStore } from '../../../src/store/ports/index.ts';

/** The store as one would write it in a minute: what the real one is compared with. */
export interface KeyValueModel {
  entries: Map<string, KeyValueEntry>;
  clock: ManualClock;
}

export function keyValueModel(clock: ManualClock): KeyValueModel {
  return { entries: new Map(), clock };
}

type Command = fc.AsyncCommand<KeyValueModel, KeyValueStore>;

const SCOPES = ['a', 'b'];
const scope = fc.constantFrom(...SCOPES);
/** Few and alike, so that commands meet. */
const key = fc.constantFrom('', 'k', 'k%', 'k_', 'kk', 'k\u{10FFFF}', 'K', '\u{1F600}', '\uffff');
const ttlMs = fc.option(fc.integer({ min: 1, max: 50 }), { nil: undefined });
const value = fc.oneof(fc.integer(), fc.jsonValue() as fc.Arbitrary<JsonValue>).map(asStored);

/** JSON knows no -0. */
function asStored(given: JsonValue): JsonValue {
  return JSON.parse(JSON.stringify(given));
}

function live({ entries, clock }: KeyValueModel, scope: string, key: string): KeyValueEntry | undefined {
  const entry = entries.get(scope + key);
  return entry && (entry.expiresAt === null || entry.expiresAt > clock.now()) ? entry : undefined;
}

function put(
  { entries, clock }: KeyValueModel,
  scope: string,
  key: string,
  value: JsonValue,
  ttlMs?: number,
): void {
  entries.set(scope + key, { key, value, expiresAt: ttlMs === undefined ? null : clock.now() + ttlMs });
}

function command(text: string, run: (model: KeyValueModel, real: KeyValueStore) => Promise<void>): Command {
  return { check: () => true, run, toString: () => text };
}

/** A number, and the sum an exact one. */
function isSummable(value: JsonValue, by: number): boolean {
  return typeof value === 'number' && Math.abs(value + by) <= Number.MAX_SAFE_INTEGER;
}

export const keyValueCommands: Array<fc.Arbitrary<Command>> = [
  fc.record({ scope, key, value, ttlMs }).map((c) =>
    command(`set ${JSON.stringify(c)}`, async (model, real) => {
      await real.set(c.scope, c.key, c.value, c.ttlMs);
      put(model, c.scope, c.key, c.value, c.ttlMs);
    }),
  ),
  fc.record({ scope, key, value, ttlMs }).map((c) =>
    command(`setIfAbsent ${JSON.stringify(c)}`, async (model, real) => {
      const absent = !live(model, c.scope, c.key);
      expect(await real.setIfAbsent(c.scope, c.key, c.value, c.ttlMs)).toBe(absent);
      if (absent) put(model, c.scope, c.key, c.value, c.ttlMs);
    }),
  ),
  fc.record({ scope, key }).map((c) =>
    command(`get ${JSON.stringify(c)}`, async (model, real) => {
      expect(await real.get(c.scope, c.key)).toEqual(live(model, c.scope, c.key));
    }),
  ),
  fc.record({ scope, key }).map((c) =>
    command(`delete ${JSON.stringify(c)}`, async (model, real) => {
      expect(await real.delete(c.scope, c.key)).toBe(live(model, c.scope, c.key) !== undefined);
      model.entries.delete(c.scope + c.key);
    }),
  ),
  fc.record({ scope, key, by: fc.integer({ min: -9, max: 9 }), windowMs: ttlMs }).map((c) =>
    command(`increment ${JSON.stringify(c)}`, async (model, real) => {
      const options = { by: c.by, ...(c.windowMs === undefined ? {} : { windowMs: c.windowMs }) };
      const result = real.increment(c.scope, c.key, options);
      const found = live(model, c.scope, c.key);
      if (found && !isSummable(found.value, c.by)) {
        await expect(result).rejects.toMatchObject({ code: 'CONFLICT' });
        return;
      }
      if (!found) put(model, c.scope, c.key, 0, c.windowMs);
      const entry = model.entries.get(c.scope + c.key)!;
      entry.value = (entry.value as number) + c.by;
      expect(await result).toEqual({ value: entry.value, expiresAt: entry.expiresAt });
    }),
  ),
  fc
    .record({
      scope,
      prefix: key,
      after: fc.option(key, { nil: undefined }),
      limit: fc.integer({ min: 1, max: 5 }),
    })
    .map((c) =>
      command(`scan ${JSON.stringify(c)}`, async (model, real) => {
        const { prefix, after, limit } = c;
        const expected = [...model.entries]
          .filter(([id, entry]) => id.startsWith(c.scope) && live(model, c.scope, entry.key) === entry)
          .map(([, entry]) => entry)
          .filter(
            (entry) => entry.key.startsWith(prefix) && (after === undefined || compare(entry.key, after) > 0),
          )
          .sort((left, right) => compare(left.key, right.key))
          .slice(0, limit);
        expect(
          await real.scan(c.scope, { prefix, limit, ...(after === undefined ? {} : { after }) }),
        ).toEqual(expected);
      }),
    ),
  fc
    .integer({ min: 1, max: 60 })
    .map((ms) => command(`advance ${ms}`, async ({ clock }) => clock.advance(ms))),
  fc.constant(
    command('sweep', async (model, real) => {
      const expired = [...model.entries].filter(([id]) => !live(model, id[0]!, id.slice(1)));
      expect(await real.sweep(1000)).toBe(expired.length);
      for (const [id] of expired) model.entries.delete(id);
    }),
  ),
];

function compare(left: string, right: string): number {
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}
