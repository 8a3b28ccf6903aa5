import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { fixtureFileName, fixtureOf, getDelivery, type WebhookFixture } from '../../../contracts/index.ts';
import { codeOf, messageOf, PlatformError } from '../../../kit/errors/errors.ts';
import { defineCommand, ok } from '../../define-command.ts';

interface SavedFixture {
  file: string;
  fixture: WebhookFixture;
}

/** @spec docs/webhooks.md "Fixtures" */
export const fixture = defineCommand({
  name: 'webhooks fixture',
  summary: 'Save a delivery as a test case, without its secrets',
  example: 'svc webhooks fixture 01b8dac5-b5c2-7c27-a83c-4825204b1967',
  idField: 'webhookId',
  args: z.object({
    id: z.uuid().describe('delivery id, from X-Webhook-Id'),
    out: z.string().optional().describe('file to write; default: <plugin>-<event>-<end of the id>.json'),
    force: z.boolean().default(false).describe('replace an existing file'),
  }),
  async run({ id, out, force }, { client, cwd }) {
    const delivery = await client.call(getDelivery, { params: { webhookId: id } });
    const fixture = fixtureOf(delivery);
    if (!fixture)
      throw new PlatformError(
        'CONFLICT',
        `The body of delivery ${id} is not stored, so it cannot be a test case.`,
        {
          details: { webhookId: id },
        },
      );
    const file = resolve(cwd, out ?? fixtureFileName(delivery));
    await save(file, fixture, force);
    return ok<SavedFixture>({ file, fixture });
  },
  text: ({ file, fixture: { event } }: SavedFixture, style) =>
    [
      `${style.green('saved')} ${file}`,
      '',
      'Replay it in a test of the plugin:',
      `  await host.replay(${JSON.stringify(file)}); // signs ${event} with the secret of the test`,
    ].join('\n'),
});

async function save(file: string, fixture: WebhookFixture, force: boolean): Promise<void> {
  try {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, `${JSON.stringify(fixture, null, 2)}\n`, { flag: force ? 'w' : 'wx' });
  } catch (error) {
    const hint =
      codeOf(error) === 'EEXIST' ? 'Choose another file with --out, or replace it with --force.' : undefined;
    throw new PlatformError('STORE_ERROR', `Cannot write ${file}: ${messageOf(error)}.`, {
      details: { file, ...(hint ? { hint } : {}) },
      cause: error,
    });
  }
}
