import { createParser } from 'eventsource-parser';

/** One event of a `text/event-stream`. */
export interface ServerSentEvent {
  /** Comment line, which clients ignore. */
  comment?: string;
  id?: string;
  event?: string;
  /** The joined `data` lines. Absent if the event has no `data` lines. */
  data?: string;
}

/** Serializes an event. Each field must be a single line. */
export function writtenEvent({ comment, ...fields }: ServerSentEvent): string {
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`);
  return `${comment === undefined ? '' : `: ${comment}\n`}${lines.join('')}\n`;
}

/**
 * Parses a stream of events from chunks of any size. Yields comments, and ids without data, as separate events. Throws
 * RangeError for an event longer than `maxChars`.
 */
export async function* serverSentEvents(
  chunks: AsyncIterable<Uint8Array>,
  maxChars = 16 * 1024 * 1024,
): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder();
  let parsed: ServerSentEvent[] = [];
  let isTooLarge = false;
  const parser = createParser({
    maxBufferSize: maxChars,
    onComment: (comment) => void parsed.push({ comment }),
    onId: (id) => void parsed.push({ id }),
    onEvent({ id, event, data }) {
      // `onId` has already added the id as a separate event, which is replaced here.
      if (id !== undefined) parsed.pop();
      parsed.push({ ...(id === undefined ? {} : { id }), ...(event === undefined ? {} : { event }), data });
    },
    onError({ type }) {
      isTooLarge ||= type === 'max-buffer-size-exceeded';
    },
  });
  for await (const chunk of chunks) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    yield* parsed;
    parsed = [];
    if (isTooLarge) throw new RangeError(`an event is longer than ${maxChars} characters`);
  }
}
