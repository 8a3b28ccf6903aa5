import { expect, test } from 'vitest';
import { LIMITS } from '../../../../src/contracts/index.ts';
import { MessageContents } from '../../../../src/daemons/gateway/domain/messages/dispatch/message-contents.ts';
import type { MessageContent } from '../../../../src/store/ports/index.ts';

/** Contents of a store that has the given messages, each of half the bytes of a read. */
function contentsOf(stored: readonly string[]) {
  const body = Buffer.alloc(LIMITS.messageBytes / 2);
  const reads: string[][] = [];
  const contents = new MessageContents({
    contents: async (ids, maxBytes) => {
      const found = ids.filter((id) => stored.includes(id)).slice(0, Math.floor(maxBytes / body.byteLength));
      reads.push(found);
      return found.map((id) => ({ id, body }) as unknown as MessageContent);
    },
  });
  return { contents, reads };
}

test('a read ahead has no more bytes than the slot of its attempt reserves', async () => {
  const { contents, reads } = contentsOf(['a', 'b', 'c', 'd']);
  expect(await contents.read('a', ['b', 'c', 'd'])).toMatchObject({ id: 'a' });
  expect(reads).toEqual([['a', 'b']]);
  expect([contents.held('b')?.id, contents.held('c')]).toEqual(['b', undefined]);
});

test('an attempt whose message a running read leaves out reads it', async () => {
  const { contents, reads } = contentsOf(['a', 'b', 'c']);
  const found = await Promise.all([
    contents.read('a', ['b', 'c']),
    contents.read('b', ['c']),
    contents.read('c', []),
    contents.read('c', []),
  ]);
  expect(found.map((content) => content?.id)).toEqual(['a', 'b', 'c', 'c']);
  expect(reads).toEqual([['a', 'b'], ['c']]);
});

test('a message that was pruned has no content, also for attempts that wait for a running read', async () => {
  const { contents } = contentsOf(['a']);
  const found = await Promise.all([
    contents.read('a', ['b']),
    contents.read('b', []),
    contents.read('b', []),
  ]);
  expect(found.map((content) => content?.id)).toEqual(['a', undefined, undefined]);
});
