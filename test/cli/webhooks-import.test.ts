import { spawn } from 'node:child_process';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sign } from '@octokit/webhooks-methods';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { probeBwrap } from '../../src/plugins/sandbox/bwrap.ts';
import { createPlatform, type Platform } from '../support/platform.ts';
import { userEnvironment } from '../support/user-environment.ts';

const SANDBOX = await probeBwrap();
const SECRET = 'made by the sender';

/** Writes what it was given to a file of its working folder, and prints it. */
const SCRIPT = `#!/bin/sh
{ echo "args:$*"; echo "env:$HOOK_TAG:$SENT_BY"; echo "file:$(cat "$PAYLOAD_FILE")"; } | tee -a log.txt
ls /root 2>&1 | head -1 >> log.txt
[ "$1" != fails ]
`;

const hooksOf = (folder: string) => {
  const command = {
    'execute-command': join(folder, 'deploy.sh'),
    'command-working-directory': folder,
    'pass-arguments-to-command': [
      { source: 'payload', name: 'commits.0.id' },
      { source: 'string', name: 'constant' },
      { source: 'url', name: 'missing' },
    ],
    'pass-environment-to-command': [
      { source: 'payload', name: 'tag', envname: 'HOOK_TAG' },
      { source: 'header', name: 'X-Sent-By', envname: 'SENT_BY' },
    ],
    'pass-file-to-command': [
      { source: 'payload', name: 'file', envname: 'PAYLOAD_FILE', base64decode: true },
    ],
  };
  const token = { match: { type: 'value', value: SECRET, parameter: { source: 'header', name: 'X-Token' } } };
  const main = { match: { type: 'value', value: 'main', parameter: { source: 'payload', name: 'ref' } } };
  const signed = (bits: string, header: string) => ({
    match: { type: `payload-hmac-sha${bits}`, secret: SECRET, parameter: { source: 'header', name: header } },
  });
  return [
    {
      ...command,
      id: 'shown',
      'include-command-output-in-response': true,
      'include-command-output-in-response-on-error': true,
      'success-http-response-code': 201,
      'response-headers': [{ name: 'X-Deployed', value: 'yes' }],
      'trigger-rule': { and: [token, main] },
      'trigger-rule-mismatch-http-response-code': 418,
    },
    {
      ...command,
      id: 'signed',
      'include-command-output-in-response': true,
      'trigger-rule': signed('256', 'X-Hub-Signature-256'),
    },
    { ...command, id: 'later', 'trigger-rule': token, 'response-message': 'Deploying' },
    {
      ...command,
      id: 'query',
      'include-command-output-in-response': true,
      'trigger-rule': {
        match: { type: 'value', value: SECRET, parameter: { source: 'url', name: 'token' } },
      },
    },
    { ...command, id: 'either', 'trigger-rule': { or: [signed('1', 'X-A'), signed('1', 'X-B')] } },
  ];
};

const PAYLOAD = {
  ref: 'main',
  tag: 'v1',
  commits: [{ id: 'c1' }],
  file: Buffer.from('héllo').toString('base64'),
};
const OUTPUT = 'args:c1 constant \nenv:v1:tests\nfile:héllo\n';

describe.skipIf(!SANDBOX.works)(SANDBOX.works ? 'imported hooks' : 'bubblewrap does not work here', () => {
  let platform: Platform;
  let url: string;
  const svc = async (...args: string[]) => {
    const { envelope } = await platform.svc(...args);
    return (envelope.ok ? envelope.result : envelope.error) as Record<string, unknown>;
  };

  beforeAll(async () => {
    platform = await createPlatform();
    const work = join(platform.folder, 'work');
    await mkdir(work);
    await writeFile(join(work, 'deploy.sh'), SCRIPT);
    await chmod(join(work, 'deploy.sh'), 0o755);
    await writeFile(join(platform.folder, 'hooks.json'), JSON.stringify(hooksOf(work)));
  });

  afterAll(() => platform?.dispose());

  /** Provisions a webhook with the secret of the file, and returns its URL. */
  async function provision(event: string): Promise<string> {
    const args = [
      'webhooks',
      'provision',
      'deploys',
      event,
      '--namespace-in-url',
      '--secret-stdin',
      '--json',
    ];
    const child = spawn(join(packageRoot, 'bin/svc'), args, { cwd: platform.folder, env: userEnvironment() });
    child.stdin.end(SECRET);
    const output = Buffer.concat(await child.stdout.toArray()).toString();
    return JSON.parse(output).result.url;
  }

  async function post(to: string, payload: object, headers: Record<string, string>) {
    const response = await fetch(to, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-sent-by': 'tests', ...headers },
      body: JSON.stringify(payload),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  }

  test('the file becomes a valid plugin without its secrets, and what is left out is said', async () => {
    const imported = await svc('webhooks', 'import', 'hooks.json', '--plugin', 'deploys');
    expect(imported).toMatchObject({
      id: 'deploys',
      webhooks: [
        { event: 'shown', hasSecret: true, notes: [] },
        { event: 'signed', hasSecret: true, notes: [] },
        { event: 'later', notes: [expect.stringContaining('response-message')] },
        { event: 'query', notes: [] },
      ],
      leftOut: [{ hook: 'either', reason: expect.stringContaining('several signatures') }],
    });
    for (const file of ['svc.plugin.json', 'hooks.json', 'hooks.js'])
      expect(await readFile(join(platform.folder, 'plugins/deploys', file), 'utf8')).not.toContain(SECRET);
    expect(await svc('plugins', 'validate', 'plugins/deploys')).toMatchObject({ id: 'deploys' });
    expect(await svc('webhooks', 'import', 'hooks.json', '--plugin', 'deploys')).toMatchObject({
      code: 'CONFLICT',
    });
    url = await platform.up();
    expect(url).toMatch(/^http/);
  }, 180_000);

  test('an allowed sender runs the command in the sandbox, and reads its output', async () => {
    const to = await provision('shown');
    const ran = await post(to, PAYLOAD, { 'x-token': SECRET });
    expect([ran.status, ran.text, ran.headers.get('x-deployed')]).toEqual([201, OUTPUT, 'yes']);
    const log = await readFile(join(platform.folder, 'work/log.txt'), 'utf8');
    expect(log).toMatch(/No such file|cannot access/);

    const failed = await post(to, { ...PAYLOAD, commits: [{ id: 'fails' }] }, { 'x-token': SECRET });
    expect([failed.status, failed.text]).toEqual([500, OUTPUT.replace('c1', 'fails')]);
    const other = await post(to, { ...PAYLOAD, ref: 'dev' }, { 'x-token': SECRET });
    expect([other.status, other.text]).toEqual([418, 'Hook rules were not satisfied.']);
    expect((await post(to, PAYLOAD, { 'x-token': 'wrong' })).status).toBe(401);
  }, 60_000);

  test('a signed delivery passes, and an unsigned one does not', async () => {
    const to = await provision('signed');
    const signature = await sign(SECRET, JSON.stringify(PAYLOAD));
    const ran = await post(to, PAYLOAD, { 'x-hub-signature-256': signature });
    expect([ran.status, ran.text]).toEqual([200, OUTPUT]);
    expect((await post(to, { ...PAYLOAD, tag: 'v2' }, { 'x-hub-signature-256': signature })).status).toBe(
      401,
    );
    const failing = { ...PAYLOAD, commits: [{ id: 'fails' }] };
    const failed = await post(to, failing, {
      'x-hub-signature-256': await sign(SECRET, JSON.stringify(failing)),
    });
    expect([failed.status, JSON.parse(failed.text).error.code]).toEqual([500, 'COMMAND_FAILED']);
  }, 60_000);

  test('a secret in the query is compared by the validator of the plugin', async () => {
    const to = await provision('query');
    const ran = await post(`${to}&token=${encodeURIComponent(SECRET)}`, PAYLOAD, {});
    expect([ran.status, ran.text]).toEqual([200, OUTPUT]);
    expect((await post(`${to}&token=wrong`, PAYLOAD, {})).status).toBe(401);
    expect((await post(to, PAYLOAD, {})).status).toBe(401);
  }, 60_000);

  test('a hook that shows no output answers at once, and its command survives', async () => {
    const to = await provision('later');
    const { status, text } = await post(to, { ...PAYLOAD, tag: 'v9' }, { 'x-token': SECRET });
    expect([status, JSON.parse(text).status]).toEqual([202, 'accepted']);
    await expect
      .poll(() => readFile(join(platform.folder, 'work/log.txt'), 'utf8'), { timeout: 30_000 })
      .toContain('env:v9:tests');
  }, 60_000);
});
