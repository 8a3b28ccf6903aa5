/** One event of a `text/event-stream`. */
export interface ServerSentEvent {
  id?: string;
  event?: string;
  /** Its `data` lines, joined; absent where there are none. */
  data?: string;
}

/** An event to be written; a comment is seen by whoever looks at the wire alone. */
export interface WrittenEvent extends ServerSentEvent {
  comment?: string;
}

/** As it goes over the wire. Its texts are one line each. */
export function writtenEvent({ comment, ...fields }: WrittenEvent): string {
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`);
  return `${comment === undefined ? '' : `: ${comment}\n`}${lines.join('')}\n`;
}

/** The events of a stream, however it is cut into chunks. `maxChars` bounds one event: throws RangeError beyond it. */
export async function* serverSentEvents(
  chunks: AsyncIterable<Uint8Array>,
  maxChars = 16 * 1024 * 1024,
): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of chunks) {
    // A carriage return may be the first half of a line's end whose second half is yet to come.
    text = (text + decoder.decode(chunk, { stream: true })).replace(/\r\n|\r(?!$)/g, '\n');
    const blocks = text.split('\n\n');
    text = blocks.pop()!;
    if (text.length > maxChars) throw new RangeError(`an event of more than ${maxChars} characters`);
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
