import { type AlertKind, type AlertObject, SOURCES_PLUGIN_ID } from '../../../../contracts/index.ts';
import type { AlertFact } from '../../../../store/ports/index.ts';

/** Something that rules can match. */
export interface Occurrence {
  kind: AlertKind;
  object: AlertObject;
  title: string;
  message: string;
  /** Path of the object in the studio. */
  path: string | null;
  /** Epoch ms. */
  at: number;
  /** Source and sequence number, by which a fact that is read again is recognized. Null for conditions. */
  fact: { source: string; seq: number } | null;
  /** Ids of the objects that this one repeats. An open alert of such an object counts this failure too. */
  origins: readonly string[];
}

/** The end of a condition, or a success that resolves the alerts of earlier failures. */
export interface Ending {
  kind: AlertKind;
  objectIds: readonly string[];
  fact: Occurrence['fact'];
}

/** Source of the facts that the workflow service keeps, and name of the position in them. */
export const RUN_FACTS = 'runs';

/** Kinds whose alerts end by themselves when the condition ends. The other kinds are events. */
export const CONDITION_KINDS: readonly AlertKind[] = [
  'approval.waiting',
  'service.crash_loop',
  'disk.low',
  'queue.depth',
  'certificate.expiring',
  'secret.expiring',
  'endpoint.disabled',
];
export const EVENT_KINDS: readonly AlertKind[] = ['delivery.failed', 'run.failed', 'schedule.missed'];

/** Fact kinds that end the alerts of another kind. */
const ENDINGS: Readonly<Record<string, AlertKind>> = {
  'endpoint.enabled': 'endpoint.disabled',
  'delivery.recovered': 'delivery.failed',
  'message.recovered': 'delivery.failed',
  'run.recovered': 'run.failed',
};

const MAX_TEXT = 300;

type Body = Record<string, unknown>;
type Text = Pick<Occurrence, 'title' | 'message' | 'path'> & {
  type: string;
  labels: Record<string, string | null | undefined>;
};

const part = (text: string): string => encodeURIComponent(text);
const textOf = (value: unknown): string =>
  value === null || value === undefined ? '' : String(value).slice(0, MAX_TEXT);

const FACTS: Readonly<Partial<Record<AlertKind, (id: string, body: Body) => Text>>> = {
  'delivery.failed': (id, body) => deliveryText(id, body),
  'endpoint.disabled': (id, { application, reason }) => ({
    type: 'endpoint',
    title: `The endpoint ${id} was disabled`,
    message: reason === undefined ? 'It receives no more messages.' : `Reason: ${textOf(reason)}.`,
    path: `/studio/endpoints/${part(id)}`,
    labels: { endpoint: id, application: textOf(application) },
  }),
  'run.failed': (id, { workflow, status, run }) => ({
    type: 'run',
    title: `A run of ${textOf(workflow)} ${status === 'timed_out' ? 'timed out' : 'failed'}`,
    message: `Run ${id}${run === 'job' ? ', started as a job' : ''}.`,
    path: `/studio/runs/${part(id)}`,
    labels: { workflow: textOf(workflow), plugin: pluginOf(textOf(workflow)) },
  }),
  'schedule.missed': (id, { workflow, slot }) => ({
    type: 'schedule',
    title: `The schedule ${id} missed a run`,
    message: `No run of ${textOf(workflow)} started for ${isoOf(slot)}.`,
    path: '/studio/schedules',
    labels: { workflow: textOf(workflow), schedule: id },
  }),
  'service.crash_loop': (id, { service, node, crashes, reason }) => ({
    type: 'service',
    title: `The service ${textOf(service)} crashes repeatedly`,
    message: `${textOf(crashes)} crashes in a row on node ${textOf(node)}. Last exit: ${textOf(reason)}.`,
    path: '/studio/logs',
    labels: { service: textOf(service), object: id },
  }),
};

/** Returns what a fact reports, or undefined for a kind that this version does not know. */
export function readFact(fact: AlertFact, source: string): Occurrence | Ending | undefined {
  const { kind, objectId, namespaceId, seq, at, origins } = fact;
  const ends = ENDINGS[kind];
  if (ends) return { kind: ends, objectIds: [objectId, ...origins], fact: { source, seq } };
  const describe = FACTS[kind as AlertKind];
  if (!describe) return undefined;
  const { type, labels, ...text } = describe(objectId, JSON.parse(fact.body) as Body);
  const object = { type, id: objectId, namespaceId, labels: labelsOf(labels, namespaceId) };
  return { kind: kind as AlertKind, object, ...text, at, fact: { source, seq }, origins };
}

export const isEnding = (found: Occurrence | Ending): found is Ending => !('object' in found);

/** Removes empty labels, and adds the namespace. */
export function labelsOf(
  labels: Record<string, string | null | undefined>,
  namespaceId: string | null,
): Record<string, string> {
  const given = Object.entries({ ...labels, namespace: namespaceId }).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string' && entry[1] !== '',
  );
  return Object.fromEntries(given);
}

/** A delivery from a sender, or a message that an endpoint did not take. */
function deliveryText(id: string, body: Body): Text {
  const { plugin, event, attempts, endpoint, application, message } = body;
  const count = Math.max(1, Number(attempts) || 0);
  const times = `${count} ${count === 1 ? 'attempt' : 'attempts'}`;
  if (endpoint !== undefined) {
    return {
      type: 'message',
      title: `The endpoint ${textOf(endpoint)} did not take a message`,
      message: `Message ${textOf(message)} was given up after ${times}.`,
      path: `/studio/messages/${part(textOf(message))}`,
      labels: { endpoint: textOf(endpoint), application: textOf(application), event: textOf(event) },
    };
  }
  const isSource = plugin === SOURCES_PLUGIN_ID;
  const name = isSource ? `source ${textOf(event)}` : `${textOf(plugin)} ${textOf(event)}`;
  return {
    type: 'delivery',
    title: `A delivery to ${name} failed`,
    message: `Delivery ${id} failed after ${times}.`,
    path: `/studio/deliveries/${part(id)}`,
    labels: isSource ? { source: textOf(event) } : { plugin: textOf(plugin), event: textOf(event) },
  };
}

/** Workflows of plugins have ids such as `@acme/orders/ship` or `orders/ship`. */
function pluginOf(workflow: string): string | null {
  const end = workflow.lastIndexOf('/');
  return end > 0 ? workflow.slice(0, end) : null;
}

const isoOf = (at: unknown): string =>
  typeof at === 'number' ? new Date(at).toISOString() : 'an unknown time';
