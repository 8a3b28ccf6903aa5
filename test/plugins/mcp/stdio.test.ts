import { readdir } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { atEnd, sharedByTests } from '../../support/at-end.ts';
import { failureOf, SANDBOXES, startBackend } from '../support.ts';
import { hostile, listening, textOf, wrapServer } from './support.ts';

describe.skipIf(!SANDBOXES.includes('bwrap'))(
  'a wrapped server under bubblewrap',
  { timeout: 60_000 },
  () => {
    const shared = sharedByTests(async () => {
      const platform = await startBackend(
        { sandbox: 'bwrap', config: { memoryMb: 256, maxProcesses: 4 } },
        atEnd,
      );
      return { platform, server: await wrapServer(platform.backend) };
    });

    test('returns the content of its tools, marked as untrusted', async () => {
      const { server } = shared();
      expect(await server.call('inject')).toEqual({
        exitCode: 0,
        result: {
          untrusted: true,
          content: [{ type: 'text', text: expect.stringContaining('IGNORE ALL PREVIOUS INSTRUCTIONS') }],
        },
      });
      expect(await server.call('typed', { n: 3 })).toMatchObject({ result: { structuredContent: { n: 3 } } });
    });

    test('gets only input that fits the approved schema', async () => {
      const { server } = shared();
      await expect(server.call('echo', { text: 5 })).rejects.toMatchObject({ code: 'VALIDATION_ERROR' });
      // The pattern of this property takes exponential time, so the platform does not check it.
      const code = `${'a'.repeat(40)}!`;
      expect(textOf(await server.call('echo', { code }))).toBe(JSON.stringify({ code }));
    });

    test('fails a call whose result does not fit its schema, or that reports an error', async () => {
      const { server } = shared();
      expect(await server.call('typed', { n: 'three' })).toMatchObject({
        exitCode: 1,
        error: { code: 'MCP_TOOL_FAILED', message: expect.stringContaining('does not fit its schema') },
      });
      expect(await server.call('fails')).toMatchObject({
        error: { code: 'MCP_TOOL_FAILED', message: expect.stringContaining('the disk is full') },
      });
      expect(await server.call('refuses')).toMatchObject({
        error: {
          code: 'MCP_TOOL_FAILED',
          message: expect.stringContaining('not today'),
          details: { rpcCode: -32000 },
        },
      });
    });

    test('stays running between calls', async () => {
      const { server } = shared();
      const pid = async () => (JSON.parse(textOf(await server.call('look'))) as { pid: number }).pid;
      expect(await pid()).toBe(await pid());
    });

    test('serves one tenant only', async () => {
      const { server } = shared();
      const look = async (tenantId: string) => {
        await server.call('write', { path: `/tmp/of-${tenantId}` }, { tenantId });
        return server.call('read', { path: '/tmp/of-a' }, { tenantId });
      };
      expect(textOf(await look('a'))).toBe('written');
      expect(await look('b')).toMatchObject({ error: { message: expect.stringContaining('ENOENT') } });
    });

    test('sees no variables of the platform', async () => {
      const { server } = shared();
      const { env, argv } = JSON.parse(textOf(await server.call('look'))) as {
        env: Record<string, string>;
        argv: string[];
      };
      expect(Object.keys(env).sort()).toEqual(expect.arrayContaining(['HOME', 'PATH', 'TMPDIR']));
      const known = ['HOME', 'PATH', 'TMPDIR', 'LANG', 'TZ', 'NODE_OPTIONS'];
      expect(Object.keys(env).filter((name) => !known.includes(name))).toEqual([]);
      expect(argv).toHaveLength(2);
    });

    test('reads and writes nothing outside of its folders', async () => {
      const { platform, server } = shared();
      for (const path of ['/etc/passwd', '/root/.bashrc', '/proc/1/environ', platform.dataDir])
        expect(await server.call('read', { path })).toMatchObject({ exitCode: 1 });
      for (const path of [`${server.root}/index.js`, '/etc/motd', '/usr/bin/node'])
        expect(await server.call('write', { path })).toMatchObject({ exitCode: 1 });
      expect(await readdir(server.root)).toContain('index.js');
    });

    test('reaches no network, not even this machine', async () => {
      const { server } = shared();
      const { port } = await listening();
      expect(textOf(await server.call('dial', { host: '127.0.0.1', port }))).toBe('ECONNREFUSED');
      expect(textOf(await server.call('dial', { host: '1.1.1.1', port: 80 }))).toBe('ENETUNREACH');
    });

    test('its requests are refused, such as sampling', async () => {
      const { server } = shared();
      expect(JSON.parse(textOf(await server.call('sampling')))).toEqual({ result: null, code: -32601 });
    });

    test('a tool whose description changed is refused, and others go on', async () => {
      const { platform } = shared();
      const changing = await wrapServer(platform.backend);
      expect(textOf(await changing.call('echo', { text: 'a' }))).toBe('{"text":"a"}');
      await changing.call('change');
      expect(await changing.call('echo', { text: 'a' })).toMatchObject({
        exitCode: 1,
        error: {
          code: 'MCP_TOOL_CHANGED',
          message: expect.stringContaining('svc plugins accept-mcp hostile'),
          details: { tool: 'echo' },
        },
      });
      expect(await changing.call('inject')).toMatchObject({ exitCode: 0 });
      await changing.call('vanish');
      expect(await changing.call('echo', {})).toMatchObject({
        error: { code: 'MCP_TOOL_CHANGED', message: expect.stringContaining('no longer has') },
      });
    });

    test.each([
      ['dies', 'die', 'exit code 7: cannot go on'],
      ['sends broken JSON', 'invalid', 'not JSON'],
      ['sends JSON of great depth', 'deep', 'not JSON, or too deep'],
      ['sends an endless line', 'line', 'more than 8388608 bytes'],
      ['floods with notifications', 'notifications', 'more than 10000 messages'],
    ])('that %s fails its call with the reason, and is started again', async (_name, tool, reason) => {
      const { server } = shared();
      expect(await server.call(tool)).toMatchObject({
        exitCode: 1,
        error: {
          code: 'MCP_SERVER_FAILED',
          message: expect.stringContaining(reason),
          details: { errorClass: 'server', retryAfterMs: 500 },
        },
      });
      const again = await server.call('inject');
      if (again.exitCode !== 0)
        expect(again).toMatchObject({ error: { message: expect.stringContaining('may start in') } });
      await expect.poll(async () => (await server.call('inject')).exitCode, { timeout: 20_000 }).toBe(0);
    });

    test('that hangs fails its call at the time limit, and is started again', async () => {
      const { server } = shared();
      const error = await failureOf(server.call('hang', {}, { timeoutMs: 1500 }));
      expect(error).toMatchObject({ code: 'EXECUTION_TIMEOUT' });
      await expect.poll(async () => (await server.call('inject')).exitCode, { timeout: 20_000 }).toBe(0);
    });

    test('that floods stderr costs no more than its lines', async () => {
      const { platform, server } = shared();
      expect(textOf(await server.call('stderr'))).toBe('noisy');
      const lines = platform.logs.lines.filter(({ message }) => String(message).startsWith('noise '));
      expect(lines.length).toBeLessThan(2000);
    });

    test('a result of more than 1 MiB is refused', async () => {
      const { server } = shared();
      expect(await server.call('huge')).toMatchObject({
        error: { code: 'MCP_RESULT_TOO_LARGE', message: expect.stringContaining('at most 1048576') },
      });
    });

    test.each(['memory', 'fork'])(
      'its child processes count towards the memory of the plugin: %s',
      async (tool) => {
        const { server } = shared();
        const failed = await failureOf(
          server.call(tool).then((result) => {
            if (result.exitCode !== 0) throw result.error;
            return result;
          }),
        );
        expect(failed.message).toMatch(/memory|signal|ended/);
        await expect
          .poll(async () => (await server.call('inject').catch(() => null))?.exitCode, { timeout: 20_000 })
          .toBe(0);
      },
    );

    test.each([
      ['bomb', 'deep', 'nests deeper than'],
      ['bomb', 'large', 'at most 65536'],
      ['bomb', 'laughs', 'parts'],
      ['bomb', 'cycle', 'without an end'],
      ['bomb', 'outside', 'leads out of the schema'],
      ['many', '', 'more than 200 tools'],
      ['novel', '', 'description is not a text of at most'],
      ['dies', '', 'exit code 3: API_KEY is missing'],
      ['names', 'a b', 'letters, digits'],
    ])('is refused when it is added: %s %s', async (mode, kind, reason) => {
      const { platform } = shared();
      const source = hostile({ args: [mode, kind] });
      const error = await failureOf(wrapServer(platform.backend, source));
      expect(error).toMatchObject({ message: expect.stringContaining(reason) });
    });

    test('two tools of one name are refused', async () => {
      const { platform } = shared();
      const source = hostile({ args: ['names', 'a.b', 'a_b'] });
      expect(await failureOf(wrapServer(platform.backend, source))).toMatchObject({
        code: 'CONFLICT',
        message: expect.stringContaining('"a.b" and "a_b" would both become the command "hostile_a_b"'),
      });
    });

    test('may print a greeting', async () => {
      const { platform } = shared();
      const polite = await wrapServer(platform.backend, hostile({ args: ['greets'] }));
      expect(textOf(await polite.call('echo', {}))).toBe('{}');
    });
  },
);

test('a server is not started under the permission model alone', async () => {
  const { backend } = await startBackend({ sandbox: 'permission' });
  expect(await failureOf(wrapServer(backend))).toMatchObject({
    code: 'SANDBOX_ERROR',
    message: expect.stringContaining('inside bubblewrap or a container'),
  });
});
