import { execFile } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { packageRoot } from '../../../../src/kit/files/paths.ts';
import { tempDir } from '../../../support/daemon.ts';
import { ADMIN_TOKEN } from '../../../support/gateway.ts';
import { startMcp } from '../../../support/mcp.ts';
import { startTokenProxy } from '../../../support/token-proxy.ts';

const run = promisify(execFile);
const TIMEOUT = { timeout: 300_000 };
const SUITE = createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/dist/index.js');
const PLUGIN = join(packageRoot, 'test/fixtures/plugins/mcp-conformance');
const REVISIONS = ['2025-11-25', '2026-07-28'];

const expectedFailuresOf = (revision: string) => join(import.meta.dirname, `conformance/${revision}.yaml`);

/** Starts the platform with the fixture plugin. Returns the URL of its MCP endpoint. */
async function startFixture(): Promise<string> {
  const config = { plugins: [PLUGIN], gateway: { mcp: { callsPerMinute: 100_000, concurrentCalls: 100 } } };
  const { gateway } = await startMcp({ config });
  const { plugins } = gateway.services as { plugins: { reload(): Promise<void> } };
  // The suite cannot send a token. It calls these tools to have the lists changed, as a user does who installs a plugin.
  const url = await startTokenProxy(gateway.url, ADMIN_TOKEN, async (body) => {
    if (/"name":"test_trigger_(?:tool|prompt)_change"/.test(body)) await plugins.reload();
  });
  return `${url}/mcp`;
}

/** Runs scenarios of the suite. Returns the exit code, the output and the names of the scenarios. */
async function runSuite(url: string, options: string[]) {
  const folder = await tempDir();
  const args = [SUITE, 'server', '--url', url, ...options, '-o', folder];
  const ended = await run(process.execPath, args, { cwd: folder, maxBuffer: 64 * 1024 * 1024 }).then(
    ({ stdout }) => ({ exitCode: 0, stdout }),
    ({ code, stdout }) => ({ exitCode: code as number, stdout: stdout as string }),
  );
  const found = await readdir(folder);
  const failed = await Promise.all(
    found.map(async (name) => {
      const checks: Array<{ id: string; status: string; errorMessage?: string }> = JSON.parse(
        await readFile(join(folder, name, 'checks.json'), 'utf8'),
      );
      return checks
        .filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
        .map(({ id, status, errorMessage }) => `${name}: ${id} ${status} ${errorMessage}`);
    }),
  );
  const summary = ended.stdout.slice(ended.stdout.indexOf('=== SUMMARY'));
  const scenarios = found.map((name) => name.replace(/^server-(.+)-\d{4}-\d\d-\d\dT.*$/, '$1'));
  return { exitCode: ended.exitCode, report: `${summary}\n${failed.flat().join('\n')}`, scenarios };
}

describe.each(REVISIONS)('the conformance suite of the revision %s', (revision) => {
  test('passes, except for what is not declared', TIMEOUT, async () => {
    const expected = ['--expected-failures', expectedFailuresOf(revision)];
    const selected = ['--suite', 'all', '--spec-version', revision];
    const { exitCode, report, scenarios } = await runSuite(await startFixture(), [...selected, ...expected]);
    expect(exitCode, report).toBe(0);
    const required = await readFile(join(dirname(SUITE), `../requirements/${revision}.yaml`), 'utf8');
    expect(scenarios).toEqual(expect.arrayContaining(parse(required).server));
  });

  test('has a reason for each expected failure', async () => {
    const text = await readFile(expectedFailuresOf(revision), 'utf8');
    const listed: string[] = parse(text).server;
    const explained = [...text.matchAll(/^ {2}# [A-Z].{20,}\.\n {2}- ([\w:-]+)$/gm)].map(([, name]) => name);
    expect(explained).toEqual(listed);
  });
});

test('an expected failure that passes fails the run', TIMEOUT, async () => {
  const file = join(await tempDir(), 'expected.yaml');
  await writeFile(file, 'server:\n  - ping\n');
  const options = ['--scenario', 'ping', '--spec-version', '2025-11-25', '--expected-failures', file];
  const { exitCode, scenarios } = await runSuite(await startFixture(), options);
  expect([exitCode, scenarios]).toEqual([1, ['ping']]);
});
