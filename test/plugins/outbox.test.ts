import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HOST_CLOSE, HOST_SOCKET, type PartFrame } from '../../src/contracts/index.ts';
import { RUNNER_LIMITS } from '../../src/plugins/backends/worker/index.ts';
import { createFrameJoiner, Outbox, type OutboxWire } from '../../src/plugins/index.ts';

const { partChars, messageBytes } = HOST_SOCKET;

/** A socket whose buffer leaves when the test says so. */
function slowWire() {
  const arrived: string[] = [];
  const leaving: Array<{ text: string; onSent: () => void }> = [];
  let bufferedBytes = 0;
  let most = 0;
  const wire: OutboxWire = {
    send(text, onSent) {
      leaving.push({ text, onSent });
      bufferedBytes += Buffer.byteLength(text);
      most = Math.max(most, bufferedBytes);
    },
    get bufferedBytes() {
      return bufferedBytes;
    },
  };
  /** One message leaves; false when there is none. */
  function leave(): boolean {
    const next = leaving.shift();
    if (!next) return false;
    arrived.push(next.text);
    bufferedBytes -= Buffer.byteLength(next.text);
    next.onSent();
    return true;
  }
  return { wire, arrived, leave, most: () => most };
}

interface Sent {
  type: 'test';
  number: number;
  of: string | undefined;
  text: string;
}

/** What the other side reads. */
function received(messages: readonly string[]): Sent[] {
  const joiner = createFrameJoiner(HOST_SOCKET.gatewayFrameBytes);
  return messages.flatMap((text) => {
    expect(Buffer.byteLength(text)).toBeLessThan(messageBytes);
    const frame = JSON.parse(text) as PartFrame | Sent | { type: 'drop'; frame: number };
    if (frame.type === 'test') return [frame];
    if (frame.type === 'drop') {
      joiner.drop(frame.frame);
      return [];
    }
    const joined = joiner.take(frame);
    if (joined.kind === 'fault') throw new Error(joined.why);
    return joined.kind === 'whole' ? [JSON.parse(joined.text) as Sent] : [];
  });
}

const settle = (leave: () => boolean): void => {
  while (leave());
};

test('every frame arrives whole, those of one execution in their order, and little waits in the socket', () => {
  const frame = fc.record({
    of: fc.constantFrom('a', 'b', undefined),
    size: fc.oneof(
      fc.nat(100),
      fc.integer({ min: partChars - 80, max: partChars + 80 }),
      fc.nat(5 * partChars),
    ),
    // Characters that JSON escapes, that take several bytes, and that are two code units.
    unit: fc.constantFrom('x', '"', '\n', 'ü', '€', '😀'),
    leaving: fc.nat(3),
  });
  fc.assert(
    fc.property(fc.array(frame, { maxLength: 25 }), (frames) => {
      const { wire, arrived, leave, most } = slowWire();
      const outbox = new Outbox(wire, HOST_SOCKET.gatewayFrameBytes);
      const sent = frames.map(({ of, size, unit, leaving }, number): Sent => {
        const text = unit.repeat(Math.ceil(size / unit.length));
        const one: Sent = { type: 'test', number, of, text };
        expect(outbox.send(one, of)).toBe(true);
        for (let i = 0; i < leaving; i++) leave();
        return one;
      });
      settle(leave);
      const got = received(arrived);
      expect(got.map(({ number }) => number).sort((x, y) => x - y)).toEqual(sent.map(({ number }) => number));
      for (const { number, text } of got) expect(text === sent[number]!.text).toBe(true);
      for (const sender of ['a', 'b']) {
        const numbers = got.filter((one) => one.of === sender).map(({ number }) => number);
        expect(numbers).toEqual(numbers.toSorted((x, y) => x - y));
      }
      expect(most()).toBeLessThan(256 * 1024 + 4 * partChars);
      expect(outbox.backlog).toBe(0);
    }),
    { numRuns: 60 },
  );
});

const send = (outbox: Outbox, number: number, of: string, chars: number): boolean =>
  outbox.send({ type: 'test', number, of, text: 'x'.repeat(chars) } satisfies Sent, of);

test('a short frame of another execution overtakes a long one; one of the same waits for it', () => {
  const { wire, arrived, leave } = slowWire();
  const outbox = new Outbox(wire, HOST_SOCKET.gatewayFrameBytes);
  send(outbox, 0, 'a', 20 * partChars);
  send(outbox, 1, 'a', 10);
  send(outbox, 2, 'b', 10);
  settle(leave);
  expect(received(arrived).map(({ number }) => number)).toEqual([2, 0, 1]);
});

test('what is withdrawn does not arrive, and the other side is told to forget its beginning', () => {
  const { wire, arrived, leave } = slowWire();
  const outbox = new Outbox(wire, HOST_SOCKET.gatewayFrameBytes);
  send(outbox, 0, 'a', 20 * partChars);
  send(outbox, 1, 'a', 10);
  send(outbox, 2, 'b', 3 * partChars);
  leave();
  outbox.withdraw('a');
  settle(leave);
  expect(received(arrived).map(({ number }) => number)).toEqual([2]);
  expect(arrived.length).toBeLessThan(15);
  expect(outbox.backlog).toBe(0);
});

test('a frame above the size limit is not sent at all', () => {
  const { wire, arrived, leave } = slowWire();
  const outbox = new Outbox(wire, 2 * partChars);
  expect(send(outbox, 0, 'a', 2 * partChars)).toBe(false);
  settle(leave);
  expect(arrived).toEqual([]);
});

const FULL = 'x'.repeat(partChars);
const part = (frame: number, index: number, last = false, text = FULL): PartFrame => ({
  type: 'part',
  frame,
  index,
  last,
  text,
});

test.each([
  ['begins in the middle', [part(0, 1)]],
  ['leaves one out', [part(0, 0), part(0, 2)]],
  ['repeats one', [part(0, 0), part(0, 0)]],
  ['mixes two frames', [part(0, 0), part(1, 1)]],
  ['begins another before the end', [part(0, 0), part(1, 0)]],
  ['are short before the end', [part(0, 0, false, 'x')]],
])('parts that %s are refused', (_what, parts) => {
  const joiner = createFrameJoiner(messageBytes);
  expect(parts.map((one) => joiner.take(one)).at(-1)).toMatchObject({
    kind: 'fault',
    code: HOST_CLOSE.protocol,
  });
});

test('parts that never end are refused as soon as they are too large, counted in bytes', () => {
  const joiner = createFrameJoiner(4 * partChars);
  const outcomes = [0, 1, 2].map((index) => joiner.take(part(0, index, false, 'ü'.repeat(partChars))).kind);
  expect(outcomes).toEqual(['more', 'more', 'fault']);
});

test('an agent may say as much at once as the runner behind a worker', () => {
  expect(HOST_SOCKET.agentFrameBytes).toBe(RUNNER_LIMITS.frameBytes);
});
