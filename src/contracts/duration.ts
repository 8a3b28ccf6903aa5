import { z } from 'zod';
import {
  DURATION_FAULT,
  DURATION_PATTERN,
  durationFault,
  durationMs,
  givenTwice,
  RANGE_FAULT,
} from './duration-text.ts';

/** A time limit in a definition: a whole number with the unit ms, s, m, h or d. */
const Duration = z
  .string({ error: DURATION_FAULT })
  .regex(DURATION_PATTERN, { error: DURATION_FAULT, abort: true })
  .refine((text) => durationFault(text) === undefined, RANGE_FAULT);

type ShortName<Name> = Name extends `${infer Short}Ms` ? Short : never;
const shortName = (name: string): string => name.slice(0, -'Ms'.length);

/**
 * Returns the fields that take a duration such as `30s` beside fields in milliseconds, such as `timeout` beside
 * `timeoutMs`. `foldDurations` must follow in the schema. @spec docs/decisions/0270
 */
export function durationFields<const Name extends `${string}Ms`>(
  ...names: Name[]
): { [Short in ShortName<Name>]: z.ZodOptional<z.ZodString> } {
  return Object.fromEntries(names.map((name) => [shortName(name), Duration.optional()])) as never;
}

/** Returns the transform that replaces each duration by its field in milliseconds. Refuses both in one object. */
export function foldDurations<const Name extends `${string}Ms`>(...names: Name[]) {
  return <Value extends object>(
    value: Value,
    { issues }: z.core.ParsePayload,
  ): Omit<Value, ShortName<Name>> => {
    const folded = { ...value } as Record<string, unknown>;
    for (const name of names) {
      const short = shortName(name);
      const ms = durationMs(folded[short]);
      if (ms === undefined) continue;
      if (folded[name] !== undefined) issues.push(twice(value, short, name));
      delete folded[short];
      folded[name] = ms;
    }
    return folded as Omit<Value, ShortName<Name>>;
  };
}

function twice(input: unknown, short: string, name: string): z.core.$ZodRawIssue {
  return { code: 'custom', input, path: [short], message: givenTwice(short, name) };
}
