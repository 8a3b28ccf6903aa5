import { isRecord } from '../kit/data/is-record.ts';
import { ownValue } from '../kit/data/own-value.ts';

/**
 * Maximum work of one `withDefaults` call, about 20 ms. One unit is a visited schema, a copied value or key, or 100
 * characters.
 */
const MAX_UNITS = 100_000;
const CHARS_PER_UNIT = 100;
const MAX_DEPTH = 256;

/**
 * Adds the defaults of a plugin's `configSchema` to its settings, including nested settings. Follows each `$ref` once
 * per configured value, so that recursion ends. Throws if the work exceeds `MAX_UNITS`.
 */
export function withDefaults(schema: unknown, settings: unknown): unknown {
  const place = { given: settings, open: new Set([schema]), depth: 0 };
  return new DefaultsFiller(schema).fill(schema, settings, place);
}

interface Place {
  /** Value of the setting in the configuration file, before defaults are applied. */
  given: unknown;
  /**
   * Targets of the `$ref`s followed since the nearest configured value. These targets are not followed again, so that
   * recursion ends.
   */
  open: ReadonlySet<unknown>;
  depth: number;
}

class DefaultsFiller {
  readonly #root: unknown;
  #left = MAX_UNITS;

  constructor(root: unknown) {
    this.#root = root;
  }

  fill(schema: unknown, value: unknown, place: Place): unknown {
    this.#spend(1);
    if (!isRecord(schema)) return value;
    if (place.depth > MAX_DEPTH) throw new Error(`the schema is nested deeper than ${MAX_DEPTH} levels`);
    const { default: fallback, properties, items } = schema;
    let filled = value === undefined && fallback !== undefined ? this.#copy(fallback) : value;
    filled = this.#fillInPlace(schema, filled, { ...place, depth: place.depth + 1 });
    if (Array.isArray(filled) && isRecord(items))
      return filled.map((item, index) => this.fill(items, item, inner(place, itemOf(place.given, index))));
    return isRecord(filled) && isRecord(properties) ? this.#fillKeys(properties, filled, place) : filled;
  }

  /** Applies the schemas in `$ref` and `allOf`. These schemas describe the same value as their parent schema. */
  #fillInPlace({ $ref, allOf }: Record<string, unknown>, value: unknown, place: Place): unknown {
    let filled = value;
    if (typeof $ref === 'string') {
      const named = target($ref, this.#root);
      if (!place.open.has(named))
        filled = this.fill(named, filled, { ...place, open: new Set(place.open).add(named) });
    }
    for (const part of Array.isArray(allOf) ? allOf : []) filled = this.fill(part, filled, place);
    return filled;
  }

  #fillKeys(properties: object, value: Record<string, unknown>, place: Place): Record<string, unknown> {
    const result = { ...value };
    this.#spend(Object.keys(result).length);
    for (const [name, property] of Object.entries(properties)) {
      const given = isRecord(place.given) ? ownValue(place.given, name) : undefined;
      const filled = this.fill(property, ownValue(result, name), inner(place, given));
      if (filled !== undefined && name !== '__proto__') result[name] = filled;
    }
    return result;
  }

  #copy(value: unknown): unknown {
    this.#spend(1 + (typeof value === 'string' ? value.length / CHARS_PER_UNIT : 0));
    if (Array.isArray(value)) return value.map((item) => this.#copy(item));
    if (!isRecord(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => {
        this.#spend(key.length / CHARS_PER_UNIT);
        return [key, this.#copy(item)];
      }),
    );
  }

  #spend(units: number): void {
    this.#left -= units;
    if (this.#left < 0)
      throw new Error(
        `filling in the defaults of the schema takes more than ${MAX_UNITS} steps; remove circular references`,
      );
  }
}

function inner({ open, depth }: Place, given: unknown): Place {
  return { given, open: given === undefined ? open : new Set(), depth: depth + 1 };
}

function itemOf(list: unknown, index: number): unknown {
  return Array.isArray(list) ? list[index] : undefined;
}

/**
 * Returns the part of the schema that a `$ref` points to. Returns undefined if the part is missing or outside the
 * schema.
 */
function target(ref: string, root: unknown): unknown {
  if (!ref.startsWith('#')) return undefined;
  const parts = ref.slice(1).split('/').slice(1);
  return parts.reduce<unknown>(
    (at, part) => (isRecord(at) ? ownValue(at, part.replaceAll('~1', '/').replaceAll('~0', '~')) : undefined),
    root,
  );
}
