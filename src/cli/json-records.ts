import { isRecord } from '../kit/data/is-record.ts';

/** Settings for the JSON output of a command's records. */
export interface RecordShape {
  /**
   * Name of the field that identifies a record, such as `webhookId`. `--json` also prints the value of this field as
   * `id`.
   */
  readonly idField?: string;
  /** Whether the result is an external document, which `--json` prints unchanged. */
  readonly verbatim?: true;
}

/** Fields with data of users, plugins or senders. `--json` prints the values of these fields unchanged. */
const USER_DATA_FIELDS = new Set([
  'body',
  'claims',
  'data',
  'details',
  'evidence',
  'headers',
  'input',
  'inputs',
  'labels',
  'meta',
  'metadata',
  'outcome',
  'output',
  'outputs',
  'payload',
  'result',
]);

/**
 * Completes records for `--json`. Copies the id field of the command to `id`, and adds an ISO time `<field>Iso` for
 * each time. Existing fields are kept. @spec docs/cli.md "Output"
 */
export function completeRecords(data: unknown, { idField, verbatim }: RecordShape): unknown {
  if (verbatim) return data;
  const complete = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(complete);
    if (!isRecord(value)) return value;
    const entries = Object.entries(value).flatMap(([key, item]): Array<[string, unknown]> => {
      const own: [string, unknown] = [key, USER_DATA_FIELDS.has(key) ? item : complete(item)];
      if (key === idField && !Object.hasOwn(value, 'id')) return [own, ['id', item]];
      const iso = isTimeField(key) && !Object.hasOwn(value, `${key}Iso`) ? isoOf(item) : undefined;
      return iso === undefined ? [own] : [own, [`${key}Iso`, iso]];
    });
    return Object.fromEntries(entries);
  };
  return complete(data);
}

const isTimeField = (key: string): boolean => key === 'at' || key === 'time' || /[a-z]At$/.test(key);

/** Returns a time in ISO format, or undefined if the value is not a time. */
function isoOf(value: unknown): string | null | undefined {
  if (value === null) return null;
  if (typeof value !== 'number' && !(typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value)))
    return undefined;
  const time = new Date(value);
  return Number.isNaN(time.getTime()) ? undefined : time.toISOString();
}
