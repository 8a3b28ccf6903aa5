import type { WebhookDeliveryDetails } from '../../../contracts/webhook-deliveries.ts';
import { parsedJson } from '../../ui/parsed-json.ts';

/** One value that differs. Undefined stands for a value that is missing on one side. */
export interface Difference {
  path: string;
  left: string | undefined;
  right: string | undefined;
}

/** More differences are cut off, so that two large bodies do not block the page. */
export const MAX_DIFFERENCES = 500;
const VERDICT = [
  'status',
  'httpStatus',
  'mode',
  'origin',
  'source',
  'attempts',
  'reason',
  'bodyBytes',
] as const;

export interface ComparedPart {
  title: string;
  differences: readonly Difference[];
}

/** Compares two deliveries part by part. */
export function compare(left: WebhookDeliveryDetails, right: WebhookDeliveryDetails): ComparedPart[] {
  return [
    {
      title: 'Verdict',
      differences: [
        ...VERDICT.flatMap((name) => valueDifference(name, left[name], right[name])),
        ...differences(stepsOf(left), stepsOf(right), 'steps'),
      ],
    },
    { title: 'Headers', differences: differences(headersOf(left), headersOf(right), '') },
    { title: 'Body', differences: differences(bodyOf(left), bodyOf(right), '$') },
    { title: 'Result', differences: differences(left.outcome, right.outcome, '$') },
  ];
}

/** Returns the values that differ, each with its JSON path. */
export function differences(left: unknown, right: unknown, root: string): Difference[] {
  const found: Difference[] = [];
  collect(left, right, root);
  return found;

  function collect(a: unknown, b: unknown, path: string): void {
    if (found.length >= MAX_DIFFERENCES || Object.is(a, b)) return;
    if (isContainer(a) && isContainer(b) && Array.isArray(a) === Array.isArray(b)) {
      for (const key of new Set([...Object.keys(a), ...Object.keys(b)]))
        collect(ownValue(a, key), ownValue(b, key), joined(path, key, Array.isArray(a)));
    } else found.push(...valueDifference(path, a, b));
  }
}

function valueDifference(path: string, left: unknown, right: unknown): Difference[] {
  return Object.is(left, right) ? [] : [{ path, left: textOf(left), right: textOf(right) }];
}

function isContainer(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Returns an own value, because keys of a body can name inherited ones. */
function ownValue(value: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

function joined(path: string, key: string, isIndex: boolean): string {
  if (isIndex) return `${path}[${key}]`;
  if (path === '') return key;
  return /^[A-Za-z_]\w*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
}

function textOf(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function stepsOf({ steps }: WebhookDeliveryDetails): Record<string, string> {
  return Object.fromEntries(steps.map(({ step, outcome }) => [step, outcome]));
}

function headersOf({ headers }: WebhookDeliveryDetails): Record<string, string> {
  const all = new Map<string, string>();
  for (const [name, value] of headers) {
    const key = name.toLowerCase();
    const before = all.get(key);
    all.set(key, before === undefined ? value : `${before}, ${value}`);
  }
  return Object.fromEntries(all);
}

/** Returns the body as JSON if it is JSON, otherwise as text. */
function bodyOf({ body, bodyEncoding }: WebhookDeliveryDetails): unknown {
  if (body === null) return undefined;
  return (bodyEncoding === 'utf8' ? parsedJson(body) : undefined) ?? body;
}
