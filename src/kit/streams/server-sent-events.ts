/** One event of a `text/event-stream`. */
export interface ServerSentEvent {
  id?: string;
  event?: string;
  /** The `data` lines, joined; absent if there are none. */
  data?: string;
}

/** An event to write. Clients ignore the comment; it is visible on the wire only. */
export interface WrittenEvent extends ServerSentEvent {
  comment?: string;
}

/** Serializes an event. Each field must be a single line. */
export function writtenEvent({ comment, ...fields }: WrittenEvent): string {
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`);
  return `${comment === undefined ? '' : `: ${comment}\n`}${lines.join('')}\n`;
}

/** Parses a stream of events, in chunks of any size. Throws RangeError for an event longer than `maxChars`. */
export async function* serverSentEvents(
  chunks: AsyncIterable<Uint8Array>,
  maxChars = 16 * 1024 * 1024,
): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of chunks) {
    // A trailing carriage return may be followed by a newline in the next chunk.
    text = (text + decoder.decode(chunk, { stream: true })).replace(/\r\n|\r(?!$)/g, '\n');
    const blocks = text.split('\n\n');
    text = blocks.pop()!;
    if (text.length > maxChars) throw new RangeError(`an event is longer than ${maxChars} characters`);
    for (const block of blocks) yield eventOf(block);
  }
}

function eventOf(block: string): ServerSentEvent {
  const event: ServerSentEvent = {};
  for (const line of block.split('\n')) {
    const [, name, value] = /^(id|event|data): ?(.*)$/.exec(line) ?? [];
    if (name === 'data') event.data = event.data === undefined ? value! : `${event.data}\n${value}`;
    else if (name === 'id' || name === 'event') event[name] = value!;
  }
  return event;
}
