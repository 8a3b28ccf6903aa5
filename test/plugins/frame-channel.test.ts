import { duplexPair } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { openFrameChannel } from '../../src/plugins/backends/worker/frame-channel.ts';

function openPair() {
  const [own, process] = duplexPair();
  const writes: string[] = [];
  const faults: string[] = [];
  process.setEncoding('utf8').on('data', (text: string) => writes.push(text));
  const channel = openFrameChannel(own, 1000, {
    onFrame: () => true,
    inputChars: () => 0,
    onFault: (what) => faults.push(what),
  });
  return { own, process, channel, writes, faults };
}

test('frames that are sent in one turn reach the process in one write, in their order', async () => {
  const { channel, writes } = openPair();
  channel.sendLine('first\n');
  await Promise.resolve();
  channel.send({ type: 'cancel', executionId: 'a', reason: 'b' });
  expect(writes).toEqual([]);
  await turn();
  channel.sendLine('last\n');
  await turn();
  expect(writes).toEqual(['first\n{"type":"cancel","executionId":"a","reason":"b"}\n', 'last\n']);
});

test('many long frames of one turn are not gathered in memory', () => {
  const { own, channel } = openPair();
  const write = vi.spyOn(own, 'write');
  const line = `${'x'.repeat(100_000)}\n`;
  for (let i = 0; i < 4; i++) channel.sendLine(line);
  expect(write.mock.calls).toEqual([[line.repeat(3)]]);
});

test('a channel that stops sending discards the frames of the same turn too', async () => {
  const { channel, writes } = openPair();
  channel.sendLine('first\n');
  channel.stopSending();
  channel.sendLine('second\n');
  await turn();
  expect(writes).toEqual([]);
});

test('a channel is read to its end when its process has ended and no frame was lost', async () => {
  const ended = openPair();
  ended.process.end('{"type":"log"}\n');
  expect(ended.channel.isReadToEnd).toBe(false);
  await turn();
  expect(ended.channel.isReadToEnd).toBe(true);

  const faulty = openPair();
  faulty.process.end('no frame\n');
  await turn();
  expect([faulty.channel.isReadToEnd, faulty.faults.length]).toEqual([false, 1]);
});

test.each([
  ['read', true],
  ['write', false],
])('after a failed %s, a channel is read to its end: %s', async (syscall, expected) => {
  const { own, channel } = openPair();
  own.destroy(Object.assign(new Error('reset'), { syscall }));
  await turn();
  expect(channel.isReadToEnd).toBe(expected);
});
