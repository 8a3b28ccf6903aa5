import { describe, expect, test } from 'vitest';
import { McpPluginSource } from '../../../src/contracts/index.ts';
import { atEnd, sharedByTests } from '../../support/at-end.ts';
import { SANDBOXES, startBackend } from '../support.ts';
import { EVERYTHING, installedEverything, textOf, wrapFolder } from './support.ts';

describe.skipIf(!SANDBOXES.includes('bwrap'))(
  'the published server "everything"',
  { timeout: 60_000 },
  () => {
    const shared = sharedByTests(async () => {
      const { backend } = await startBackend({ sandbox: 'bwrap' }, atEnd);
      const source = McpPluginSource.parse({ id: 'everything', package: EVERYTHING, expose: true });
      return wrapFolder(backend, source, await installedEverything());
    });

    test('offers its tools as commands', () => {
      const { manifest } = shared();
      expect(manifest.mcpServer).toMatchObject({
        package: EVERYTHING,
        version: '2026.8.31',
        entry: `node_modules/${EVERYTHING}/dist/index.js`,
      });
      expect(manifest.commands.map(({ id }) => id)).toContain('everything_echo');
      expect(manifest.commands.find(({ id }) => id === 'everything_echo')).toMatchObject({
        input: { $ref: expect.stringMatching(/^tools\/\d+\.json$/) },
        mcp: { expose: true, name: 'everything_echo', readOnly: false },
      });
    });

    test('echoes, adds and returns structured content', async () => {
      const server = shared();
      expect(textOf(await server.call('echo', { message: 'hello' }))).toContain('hello');
      expect(textOf(await server.call('get-sum', { a: 2, b: 3 }))).toContain('5');
      const { result } = await server.call('get-structured-content', { location: 'Chicago' });
      expect(result).toMatchObject({
        untrusted: true,
        structuredContent: { conditions: expect.any(String) },
      });
      await expect(server.call('echo', { message: 5 })).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
    });

    test('a long call ends when it is cancelled, and the server goes on', async () => {
      const server = shared();
      const long = server.call(
        'trigger-long-running-operation',
        { duration: 60, steps: 2 },
        { timeoutMs: 1000 },
      );
      await expect(long).rejects.toMatchObject({ code: 'EXECUTION_TIMEOUT' });
      expect(textOf(await server.call('echo', { message: 'still here' }))).toContain('still here');
    });
  },
);
