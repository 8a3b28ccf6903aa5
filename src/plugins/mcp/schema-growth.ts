import { LIMITS } from '../../contracts/limits.ts';
import { isRecord } from '../../kit/data/is-record.ts';
import { inPlace, localTarget } from '../../kit/schemas/schema-faults.ts';
import { Refused } from './schema-refusal.ts';

/** Schemas that are checked for one value, at any depth. Published servers stay far below it. */
const MAX_CHECKS = 2000;
/** Steps of this computation for one schema, about 0.03 s. A manifest has many schemas, and services check it at load. */
const MAX_STEPS = 1_000_000;

const SCHEMAS_IN_PLACE = ['not', 'if', 'then', 'else'];
const MAPS_IN_PLACE = ['dependentSchemas', 'dependencies'];
const OF_ANY_PROPERTY = ['additionalProperties', 'unevaluatedProperties', 'propertyNames'];
const OF_ANY_ITEM = ['items', 'additionalItems', 'unevaluatedItems', 'contains'];

type Schema = Record<string, unknown>;

/** Schemas with the number of times that each is checked. */
type Counts = Map<Schema, number>;

/** Schemas that a check against one schema includes. */
interface Reach {
  /** Number of schemas for the value itself. */
  own: number;
  /** Schemas for each named property. Includes those for any property, as do the other lists. */
  properties: Map<string, Counts>;
  anyProperty: Counts;
  /** Schemas for each item with a schema of its own. */
  items: Map<string, Counts>;
  anyItem: Counts;
}

/**
 * Throws Refused for a schema with which the number of checks can grow with each level of a value. An example is a
 * recursive schema that applies itself twice to the same property: 40 levels would take 2^40 checks.
 */
export function requireBoundedChecks(root: Schema): void {
  const growth = new Growth(root);
  const children = growth.children();
  let checks = new Map([...children.keys()].map((schema) => [schema, growth.reachOf(schema).own]));
  for (let level = 1; level < LIMITS.jsonDepth; level++) {
    const next = new Map([...children].map(([schema, lists]) => [schema, growth.most(lists, checks)]));
    if ([...next].every(([schema, count]) => checks.get(schema) === count)) return;
    checks = next;
  }
}

class Growth {
  readonly #root: Schema;
  readonly #reaches = new Map<Schema, Reach>();
  readonly #open = new Set<Schema>();
  #steps = 0;

  constructor(root: Schema) {
    this.#root = root;
  }

  /** Returns the schemas that are checked for parts of a value: one list for each part that has schemas of its own. */
  children(): Map<Schema, Counts[]> {
    const found = new Map<Schema, Counts[]>();
    const waiting = [this.#root];
    for (let schema = waiting.pop(); schema; schema = waiting.pop()) {
      if (found.has(schema)) continue;
      const { properties, anyProperty, items, anyItem } = this.reachOf(schema);
      const lists = [
        anyProperty,
        anyItem,
        ...[...properties.values()].map((own) => this.#merged(own, anyProperty)),
        ...[...items.values()].map((own) => this.#merged(own, anyItem)),
      ];
      found.set(schema, lists);
      waiting.push(...lists.flatMap((counts) => [...counts.keys()]));
    }
    return found;
  }

  /** Returns the highest number of checks for one part. `checks` has the number for each schema. */
  most(lists: readonly Counts[], checks: ReadonlyMap<Schema, number>): number {
    let most = 0;
    for (const counts of lists) {
      this.#spend(counts.size + 1);
      let sum = 0;
      for (const [schema, count] of counts) sum += count * checks.get(schema)!;
      most = Math.max(most, sum);
    }
    return bounded(most);
  }

  reachOf(schema: Schema): Reach {
    const known = this.#reaches.get(schema);
    if (known) return known;
    if (this.#open.has(schema)) throw new Refused('it refers to itself without an end');
    this.#open.add(schema);
    const reach = ownReach(schema);
    for (const next of this.#inPlace(schema)) this.#include(reach, this.reachOf(next));
    bounded(reach.own);
    this.#open.delete(schema);
    this.#reaches.set(schema, reach);
    return reach;
  }

  /** Returns the schemas that apply to the same value. */
  #inPlace(schema: Schema): Schema[] {
    const { $ref } = schema;
    return [
      typeof $ref === 'string' ? localTarget(this.#root, $ref) : undefined,
      ...inPlace(schema),
      ...SCHEMAS_IN_PLACE.map((key) => schema[key]),
      ...MAPS_IN_PLACE.flatMap((key) => valuesOf(schema[key])),
    ].filter(isRecord);
  }

  #include(reach: Reach, other: Reach): void {
    reach.own += other.own;
    for (const key of ['properties', 'items'] as const)
      for (const [part, counts] of other[key])
        reach[key].set(part, this.#merged(counts, reach[key].get(part)));
    for (const key of ['anyProperty', 'anyItem'] as const) reach[key] = this.#merged(reach[key], other[key]);
  }

  #merged(one: Counts, other: Counts = new Map()): Counts {
    this.#spend(one.size + other.size + 1);
    const merged = new Map(one);
    for (const [schema, count] of other) merged.set(schema, (merged.get(schema) ?? 0) + count);
    return merged;
  }

  #spend(steps: number): void {
    this.#steps += steps;
    if (this.#steps > MAX_STEPS) throw new Refused('it combines too many schemas');
  }
}

function bounded(checks: number): number {
  if (checks > MAX_CHECKS)
    throw new Refused(
      `it can take more than ${MAX_CHECKS} checks of one value, because its references multiply`,
    );
  return checks;
}

/** Returns the reach of a schema without the schemas that apply to the same value. */
function ownReach(schema: Schema): Reach {
  const { properties, patternProperties, prefixItems } = schema;
  const once = (schemas: unknown[]): Counts =>
    new Map(schemas.filter(isRecord).map((one) => [one, 1] as const));
  const each = (schemas: Array<[string, unknown]>) =>
    new Map(schemas.filter(([, one]) => isRecord(one)).map(([part, one]) => [part, once([one])]));
  return {
    own: 1,
    properties: each(isRecord(properties) ? Object.entries(properties) : []),
    anyProperty: once([...valuesOf(patternProperties), ...OF_ANY_PROPERTY.map((key) => schema[key])]),
    items: each(Array.isArray(prefixItems) ? Object.entries(prefixItems) : []),
    anyItem: once(OF_ANY_ITEM.map((key) => schema[key])),
  };
}

function valuesOf(map: unknown): unknown[] {
  return isRecord(map) ? Object.values(map) : [];
}
