import { expect, test } from 'vitest';
import { authInfoOf } from '../../../../src/daemons/gateway/mcp/authenticated-call.ts';
import { createStateCodec } from '../../../../src/daemons/gateway/mcp/client-calls.ts';

/** Returns the context of a request of a caller. */
const contextOf = (namespaceId: string, hostId = 'agent', method = 'tools/call') =>
  ({
    mcpReq: { method },
    http: { authInfo: authInfoOf({ caller: { namespaceId, hostId } } as never) },
  }) as never;

test('the state of a question is valid only for its method, caller and namespace', async () => {
  const codec = createStateCodec('i'.repeat(40));
  const signed = { of: 'acme_shop_confirm', state: { order: 'o-1' } };
  const state = await codec.mint(signed, contextOf('one'));
  expect(await codec.verify(state, contextOf('one'))).toEqual(signed);
  for (const other of [
    contextOf('two'),
    contextOf('one', 'other'),
    contextOf('one', 'agent', 'prompts/get'),
    contextOf('one\0agent', ''),
  ])
    await expect(codec.verify(state, other)).rejects.toThrow();
});
