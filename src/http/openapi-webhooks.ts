import type { SchemaComponents } from './json-schema.ts';

/** An event whose messages the service sends to URLs of its users. */
export interface DescribedEvent {
  type: string;
  description: string | null;
  /** JSON Schema of the data, or null for any data. */
  schema: Record<string, unknown> | null;
  pluginId: string;
}

/**
 * Maximum size of the schemas of all events, in characters. The description is public, so clients can request it at any
 * time.
 */
const MAX_CHARS = 4 * 1024 * 1024;

/** Headers of a message. @spec Standard Webhooks */
const HEADERS: ReadonlyArray<[name: string, description: string]> = [
  [
    'webhook-id',
    'Id of the message. It is the same in each attempt, so that receivers can detect duplicates.',
  ],
  ['webhook-timestamp', 'Time of the attempt in seconds since the epoch.'],
  [
    'webhook-signature',
    'One or several signatures, separated by spaces: `v1,` and the base64 of the HMAC-SHA256 of `<id>.<timestamp>.<body>`.',
  ],
];

/** Describes the messages of each event type for `webhooks` of an OpenAPI description. */
export function describeEvents(
  events: readonly DescribedEvent[],
  components: SchemaComponents,
): Record<string, Record<string, unknown>> {
  let left = MAX_CHARS;
  return Object.fromEntries(
    events.map((event) => {
      left -= JSON.stringify(event.schema).length;
      return [event.type, { post: operationOf(event, left >= 0, components) }];
    }),
  );
}

function operationOf(
  { type, description, schema, pluginId }: DescribedEvent,
  isShown: boolean,
  components: SchemaComponents,
): Record<string, unknown> {
  return {
    ...(description === null ? {} : { summary: description }),
    operationId: `event.${type}`,
    tags: ['events'],
    parameters: HEADERS.map(([name, text]) => ({
      name,
      in: 'header',
      required: true,
      description: text,
      schema: { type: 'string' },
    })),
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: {
            type: 'object',
            required: ['type', 'timestamp', 'data'],
            properties: {
              type: { const: type },
              timestamp: { type: 'string', format: 'date-time', description: 'Time of the event' },
              data: dataOf(schema, isShown, components, pluginId),
            },
          },
        },
      },
    },
    responses: {
      '2XX': { description: 'The message was received.' },
      410: { description: 'The receiver is gone. The endpoint is disabled at once.' },
      default: { description: 'The message is sent again later.' },
    },
    security: [],
  };
}

function dataOf(
  schema: DescribedEvent['schema'],
  isShown: boolean,
  components: SchemaComponents,
  pluginId: string,
): Record<string, unknown> {
  if (schema === null) return { description: 'Any JSON value' };
  if (!isShown) return { description: 'Not shown: the schemas of all events are too large.' };
  return components.lift(schema, pluginId.replace(/[^A-Za-z0-9._-]/g, '_'));
}
