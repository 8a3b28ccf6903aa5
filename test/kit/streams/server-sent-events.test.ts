import { expect, test } from 'vitest';
import { type ServerSentEvent, serverSentEvents } from '../../../src/kit/streams/server-sent-events.ts';

const TEXT =
  ': hello\nid: 1\n\nid: 2\nevent: named\ndata: {"a":\ndata: "grüße"}\n\ndata:none\n\r\nid: 3\r\ndata: crlf\r\n\r\ndata: unfinished';

async function* cut(text: string, size: number): AsyncGenerator<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function read(chunks: AsyncIterable<Uint8Array>, maxChars?: number): Promise<ServerSentEvent[]> {
  const events: ServerSentEvent[] = [];
  for await (const event of serverSentEvents(chunks, maxChars)) events.push(event);
  return events;
}

test.each([1, 2, 3, 7, 1000])('events are the same however the stream is cut: %i bytes', async (size) => {
  expect(await read(cut(TEXT, size))).toEqual([
    { comment: 'hello' },
    { id: '1' },
    { id: '2', event: 'named', data: '{"a":\n"grüße"}' },
    { data: 'none' },
    { id: '3', data: 'crlf' },
  ]);
});

test('an event without an end is not buffered forever', async () => {
  await expect(read(cut(`data: ${'x'.repeat(1000)}`, 100), 500)).rejects.toThrow(RangeError);
});
